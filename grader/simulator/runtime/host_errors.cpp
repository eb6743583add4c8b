// cudaGetLastError, and the errors' names and texts.
#include <stddef.h>

#include "cuda_runtime_api.h"
#include "last_error.h"

namespace sim {

namespace {

thread_local int last_error = 0;
int fault_error = 0;  // error of a faulted kernel, which all host threads get

struct ErrorText {
    cudaError_t code;
    const char* name;
    const char* text;
};

constexpr ErrorText texts[] = {
#define SIM_ERROR(name, value, text) {name, #name, text},
#include "sim/error_codes.def"
#undef SIM_ERROR
};

const ErrorText* find_text(cudaError_t code) {
    for (const ErrorText& text : texts) {
        if (text.code == code) return &text;
    }
    return nullptr;
}

}  // namespace

int set_error(int cuda_error) {
    if (cuda_error) last_error = cuda_error;
    return cuda_error;
}

int take_last_error() {
    int error = peek_last_error();
    last_error = 0;
    return error;
}

int peek_last_error() {
    int fault = current_fault();
    return fault ? fault : last_error;
}

void set_fault(int cuda_error) { __atomic_store_n(&fault_error, cuda_error, __ATOMIC_RELAXED); }

int current_fault() { return __atomic_load_n(&fault_error, __ATOMIC_RELAXED); }

void forget_fault() {
    set_fault(0);
    last_error = 0;
}

}  // namespace sim

extern "C" {

cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(sim::take_last_error()); }

cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(sim::peek_last_error()); }

const char* cudaGetErrorString(cudaError_t error) {
    const sim::ErrorText* text = sim::find_text(error);
    return text && *text->text ? text->text : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
    const sim::ErrorText* text = sim::find_text(error);
    return text ? text->name : "unrecognized error code";
}

}  // extern "C"
