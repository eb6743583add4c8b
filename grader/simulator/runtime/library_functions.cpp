// Wrappers of C and C++ library functions. A kernel library is linked with --wrap for them (grader/simulator/hooks.py):
// functions that allocate, and functions that write through a pointer.
#include <cxxabi.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <new>

#include "device_heap.h"
#include "output.h"
#include "submission_sandbox/sandbox.h"

#define WRAP(RESULT, NAME) extern "C" __attribute__((visibility("default"))) RESULT __wrap_##NAME

namespace {

using sim::sandbox::confined;

void* allocate_or_throw(size_t bytes, size_t alignment) {
    void* given = sim::sandbox::allocate(bytes, alignment);
    if (!given) throw std::bad_alloc();
    return given;
}

// A confined submission may print to stdout and stderr; any other FILE* may be forged.
FILE* printed(FILE* file, const void* code) {
    if (confined && file != stdout && file != stderr) sim::sandbox::refuse(file, code);
    return file;
}

}  // namespace

WRAP(void*, _Znwm)(size_t bytes) { return confined ? allocate_or_throw(bytes, 16) : ::operator new(bytes); }
WRAP(void*, _Znam)(size_t bytes) { return confined ? allocate_or_throw(bytes, 16) : ::operator new[](bytes); }
WRAP(void*, _ZnwmSt11align_val_t)(size_t bytes, std::align_val_t alignment) {
    return confined ? allocate_or_throw(bytes, static_cast<size_t>(alignment)) : ::operator new(bytes, alignment);
}
WRAP(void*, _ZnamSt11align_val_t)(size_t bytes, std::align_val_t alignment) {
    return confined ? allocate_or_throw(bytes, static_cast<size_t>(alignment)) : ::operator new[](bytes, alignment);
}
WRAP(void*, _ZnwmRKSt9nothrow_t)(size_t bytes, const std::nothrow_t& nothrow) {
    return confined ? sim::sandbox::allocate(bytes) : ::operator new(bytes, nothrow);
}
WRAP(void*, _ZnamRKSt9nothrow_t)(size_t bytes, const std::nothrow_t& nothrow) {
    return confined ? sim::sandbox::allocate(bytes) : ::operator new[](bytes, nothrow);
}

// A confined submission does not own memory that was allocated before confinement.
#define DELETE(NAME, PARAMETERS, CALL)                                          \
    WRAP(void, NAME) PARAMETERS {                                               \
        if (sim::freed_by_kernel(pointer, __builtin_return_address(0))) return; \
        if (!sim::sandbox::release(pointer) && !confined) CALL;                 \
    }
DELETE(_ZdlPv, (void* pointer), ::operator delete(pointer))
DELETE(_ZdaPv, (void* pointer), ::operator delete[](pointer))
DELETE(_ZdlPvm, (void* pointer, size_t), ::operator delete(pointer))
DELETE(_ZdaPvm, (void* pointer, size_t), ::operator delete[](pointer))
DELETE(_ZdlPvSt11align_val_t, (void* pointer, std::align_val_t a), ::operator delete(pointer, a))
DELETE(_ZdaPvSt11align_val_t, (void* pointer, std::align_val_t a), ::operator delete[](pointer, a))
DELETE(_ZdlPvmSt11align_val_t, (void* pointer, size_t, std::align_val_t a), ::operator delete(pointer, a))
DELETE(_ZdaPvmSt11align_val_t, (void* pointer, size_t, std::align_val_t a), ::operator delete[](pointer, a))

// Calls that sim/c_library.h has not renamed arrive here.
extern "C" void* sim_malloc(size_t bytes);
extern "C" void sim_free(void* pointer);
WRAP(void*, malloc)(size_t bytes) { return sim_malloc(bytes); }
WRAP(void, free)(void* pointer) { sim_free(pointer); }
WRAP(void*, calloc)(size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
    void* given = sim_malloc(all);
    return given ? memset(given, 0, all) : nullptr;
}

// The C++ library allocates the exception object; the kernel file's own code then writes it.
WRAP(void*, __cxa_allocate_exception)(size_t bytes) noexcept {
    void* given = abi::__cxa_allocate_exception(bytes);
    sim::sandbox::exception = {reinterpret_cast<uintptr_t>(given), bytes};
    return given;
}

WRAP(void, sincos)(double a, double* sine, double* cosine) {
    sim::sandbox::result(sine);
    sim::sandbox::result(cosine);
    sincos(a, sine, cosine);
}
WRAP(void, sincosf)(float a, float* sine, float* cosine) {
    sim::sandbox::result(sine);
    sim::sandbox::result(cosine);
    sincosf(a, sine, cosine);
}

WRAP(time_t, time)(time_t* place) {
    if (place) sim::sandbox::result(place);
    return time(place);
}

#define CODE __builtin_return_address(0)

WRAP(int, fprintf)(FILE* file, const char* format, ...) {
    sim::refuse_writing_counts(format, CODE);
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(printed(file, CODE), format, arguments);
    va_end(arguments);
    return length;
}
WRAP(int, snprintf)(char* text, size_t bytes, const char* format, ...) {
    sim::refuse_writing_counts(format, CODE);
    sim::sandbox::copies_to(text, bytes, CODE);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, bytes, format, arguments);
    va_end(arguments);
    return length;
}
WRAP(int, fputs)(const char* text, FILE* file) { return fputs(text, printed(file, CODE)); }
WRAP(int, fputc)(int letter, FILE* file) { return fputc(letter, printed(file, CODE)); }
WRAP(int, putc)(int letter, FILE* file) { return fputc(letter, printed(file, CODE)); }
WRAP(size_t, fwrite)(const void* text, size_t bytes, size_t count, FILE* file) {
    return fwrite(text, bytes, count, printed(file, CODE));
}
WRAP(int, fflush)(FILE* file) { return fflush(file ? printed(file, CODE) : nullptr); }
