// What a submission may touch, where its process also holds what it is graded by.
//
// The runner of the grader asks for it (sim_confine); in notebooks and whole programs nothing here is in force. From then on
// every access of the kernel file's code, on the host and on the device, every result that a call of the runtime writes for it,
// and every function that it hands over, is looked at before it happens. What is its own: the variables of its library, its
// stacks without the places where functions return to, device and shared memory, and what it was given by new and malloc. All
// else belongs to the runner, the simulator and the C library.
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

extern Range exception;  // what is thrown next: the C++ library has made room for it

// The frame of the function that stands here: where the walk over the stack begins.
#define SIM_FRAME static_cast<void* const*>(__builtin_frame_address(0))

// Ends the launch or the launcher when the access is not to its own memory. `code`: where the access is, as a return address.
void check(const void* data, size_t bytes, bool write, const void* code, void* const* frame);

// Something that leads to writes elsewhere was handed to a function of a library.
[[noreturn]] void refuse(const void* data, const void* code);

// A write to a stack of the submission itself.
void check_stack(const void* data, size_t bytes, const void* code, void* const* frame);

// Whether a place is in the frame of the function that has called the one with `frame`.
__attribute__((always_inline)) inline bool in_caller(uintptr_t address, size_t bytes, void* const* frame) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(frame + 2), end = reinterpret_cast<uintptr_t>(frame[0]);
    return address >= begin && address < end && bytes <= end - address;
}

// Whether a write may happen.
bool writable(const void* data, size_t bytes, void* const* frame);

// A function that the submission has handed over to be called: it must be its own.
void check_function(const void* function, const void* code);

// The same for one that it is about to call itself, and whose address is not the beginning of one of its own: a function of
// another library that the linker has put into its tables, or the one that `lend` names.
void check_callable(const void* function, const void* code);
void lend(const void* function);
// indirect_calls.cpp: where calls through pointers may lead. A base of 0: anywhere.
void set_callable(uintptr_t base, size_t bytes);

// stores.cpp: a range in which any store may happen, of three. From the first call on stores are checked.
void set_open(unsigned which, uintptr_t base, size_t bytes);

// A variable that the submission registers as one of the device.
void check_variable(const void* data, size_t bytes, const void* code);

// A place where a call of the runtime leaves a result for the submission.
template <typename T>
__attribute__((always_inline)) inline T* result(T* place) {
    if (confined) check(place, sizeof(T), true, __builtin_return_address(0), SIM_FRAME);
    return place;
}
__attribute__((always_inline)) inline void copies_to(const void* place, size_t bytes, const void* code) {
    if (confined && bytes) check(place, bytes, true, code, SIM_FRAME);
}

// What `new` and `malloc` give in host code: memory apart from that of the simulator. Null when there is none left.
void* allocate(size_t bytes, size_t alignment = 16);
// False for a pointer that is not of allocate().
bool release(void* pointer);

// Calls a launcher; gives cudaErrorIllegalAddress when it was stopped.
int call(int (*thunk)(void**), void** arguments);

}  // namespace sim::sandbox
