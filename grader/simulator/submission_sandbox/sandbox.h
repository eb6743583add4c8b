// The memory and the functions that a submission may use. Its process also holds the simulator that checks it.
//
// The grader's runner activates the sandbox with sim_confine; notebooks and whole programs run without it. From then on
// every access by the kernel file's code (host and device), every result that a runtime call writes through its
// pointers, and every function that it passes is checked beforehand. The submission owns the variables of its library,
// its stacks except for return addresses, device and shared memory, and memory from new and malloc. Everything else
// belongs to the runner, the simulator and the C library.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sim::sandbox {

extern bool confined;

struct Range {
    uintptr_t base;
    size_t bytes;
    bool contains(uintptr_t address, size_t size) const {
        return address - base < bytes && size <= bytes - (address - base);
    }
};

extern Range exception;  // storage of the exception that is thrown next, allocated by the C++ library

// The frame of the current function, where a walk over the stack begins.
#define SIM_FRAME static_cast<void* const*>(__builtin_frame_address(0))

// Ends the launch or the launcher if the access is outside the submission's own memory. `code`: return address of the
// access.
void check(const void* data, size_t bytes, bool write, const void* code, void* const* frame);

// Ends the launch or the launcher, because a library function would write through a forged pointer.
[[noreturn]] void refuse(const void* data, const void* code);

// Checks a write to one of the submission's own stacks.
void check_stack(const void* data, size_t bytes, const void* code, void* const* frame);

// Returns whether the bytes are in the frame of the caller of the function whose frame is `frame`.
__attribute__((always_inline)) inline bool in_caller(uintptr_t address, size_t bytes, void* const* frame) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(frame + 2), end = reinterpret_cast<uintptr_t>(frame[0]);
    return address >= begin && address < end && bytes <= end - address;
}

// Returns whether the submission may write these bytes.
bool writable(const void* data, size_t bytes, void* const* frame);

// Checks a function that the submission passes as a callback. It must be one of the submission's own.
void check_function(const void* function, const void* code);

// Checks the target of a call through a pointer, if it is not one of the submission's own functions. Two kinds of
// targets are allowed: functions whose addresses the linker put into the tables of the submission's library, and the
// function that was passed to lend().
void check_callable(const void* function, const void* code);
void lend(const void* function);
// In indirect_calls.cpp: sets the range of allowed targets of calls through pointers. With a base of 0 every target is
// allowed.
void set_callable(uintptr_t base, size_t bytes);

// Checks a variable that the submission registers as a device variable.
void check_variable(const void* data, size_t bytes, const void* code);

// Checks the place where a runtime call writes a result for the submission.
template <typename T>
__attribute__((always_inline)) inline T* result(T* place) {
    if (confined) check(place, sizeof(T), true, __builtin_return_address(0), SIM_FRAME);
    return place;
}
__attribute__((always_inline)) inline void copies_to(const void* place, size_t bytes, const void* code) {
    if (confined && bytes) check(place, bytes, true, code, SIM_FRAME);
}

// Memory for `new` and `malloc` in host code, separate from the simulator's. Returns null when none is left.
void* allocate(size_t bytes, size_t alignment = 16);
// Returns false for a pointer that does not come from allocate().
bool release(void* pointer);

// Calls a launcher; returns cudaErrorIllegalAddress if it was stopped.
int call(int (*thunk)(void**), void** arguments);

}  // namespace sim::sandbox
