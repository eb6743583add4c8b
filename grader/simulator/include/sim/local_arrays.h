// A local array between two red zones. The front end (grader/frontend/local_arrays.py) uses it for local arrays to
// which the kernel takes a pointer.
//
// A red zone repeats one word, and its outer end names the array. The checks report accesses on the stack that touch a
// zone (checks/memory/local_arrays.cpp). The code that writes the zones is not instrumented, so it is not reported.
//
// Compilers do not instrument accesses to a variable if they can prove that it is local to the function. So an empty
// asm statement hides from the compiler that a pointer refers to the local array.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sim {

constexpr uint32_t red_word = 0x5edc0de5u;
constexpr unsigned red_words = 12;

// The identification at the outer end of a red zone. A zone is valid only if `check` matches `name` and the array. This
// rejects a zone that an earlier array left on the stack beside another array.
struct __attribute__((packed, aligned(4))) RedOwner {
    uint64_t name;   // address of the name's text
    uint64_t check;  // combines `name`, the bytes of the array, and its side
    RedOwner() {}    // leaves the members uninitialized: mark() writes them
};
constexpr uint64_t behind_it = uint64_t(1) << 63;
struct RedWords {
    uint32_t words[red_words];
    RedWords() {}
};

#if defined(__SANITIZE_THREAD__)
#define SIM_RED_ZONES
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define SIM_RED_ZONES
#endif
#endif

#ifdef SIM_RED_ZONES
#define SIM_RED inline __attribute__((always_inline))
#define SIM_UNTOLD __attribute__((noinline, no_sanitize("thread", "bounds", "object-size")))

template <typename Array>
struct alignas(16) LocalArray {
    RedOwner owner_before;
    RedWords before;
    Array array;
    RedWords behind;
    RedOwner owner_behind;

    SIM_RED Array& begin(const char* text) {
        mark(this, text);
        Array* known = &array;
        asm("" : "+r"(known));
        return *known;
    }
    // Clears the red zones, because the next object at this address has none.
    SIM_RED ~LocalArray() { unmark(this); }

  private:
    static SIM_UNTOLD void mark(LocalArray* red, const char* text) {
        for (unsigned i = 0; i < red_words; ++i) red->before.words[i] = red->behind.words[i] = red_word;
        uint64_t name = reinterpret_cast<uintptr_t>(text), check = ~name ^ sizeof(Array);
        red->owner_before.name = red->owner_behind.name = name;
        red->owner_before.check = check;
        red->owner_behind.check = check ^ behind_it;
    }
    static SIM_UNTOLD void unmark(LocalArray* red) {
        red->owner_before.name = red->owner_behind.name = 0;
        asm volatile("" : : "r"(red) : "memory");  // keeps the stores, although the array's lifetime ends
    }
};

#undef SIM_RED
#undef SIM_UNTOLD
#else
template <typename Array>
struct LocalArray {
    struct {
    } owner_before, before;
    Array array;
    Array& begin(const char*) { return array; }
};
#endif

}  // namespace sim
