// A thread's own array between two red zones, where the front end (grader/source/local_arrays.py) has seen a pointer into it.
//
// A red zone repeats one word, and says at its outer end whose it is; the checks look at accesses on the stack
// (checks/local_arrays.cpp). That the zones are written is no access of the kernel: compilers tell the checks of none to a
// variable by its own name.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sim {

constexpr uint32_t red_word = 0x5edc0de5u;
constexpr unsigned red_words = 12;

// A red zone is one only where both numbers go together.
struct __attribute__((packed, aligned(4))) RedOwner {
    uint64_t name;   // address of a text
    uint64_t check;  // of `name`, and the bytes of the array
};
typedef uint32_t RedPiece __attribute__((vector_size(16), aligned(4)));

#if defined(__SANITIZE_THREAD__)
#define SIM_RED_ZONES
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define SIM_RED_ZONES
#endif
#endif

#ifdef SIM_RED_ZONES
#define SIM_RED inline __attribute__((always_inline))

template <typename Array>
struct alignas(16) LocalArray {
    RedOwner owner_before;
    RedPiece before[red_words / 4];
    Array array;
    RedPiece behind[red_words / 4];
    RedOwner owner_behind;

    // Volatile, as compilers drop stores that the function itself does not read. Each by its name: see above.
    SIM_RED Array& begin(const char* text) {
        constexpr RedPiece piece = {red_word, red_word, red_word, red_word};
        volatile LocalArray& red = *this;
        red.before[0] = piece, red.before[1] = piece, red.before[2] = piece;
        red.behind[0] = piece, red.behind[1] = piece, red.behind[2] = piece;
        uint64_t name = reinterpret_cast<uintptr_t>(text), check = ~name ^ sizeof(Array);
        red.owner_before.name = name, red.owner_before.check = check;
        red.owner_behind.name = name, red.owner_behind.check = check;
        Array* known = &array;
#if defined(__clang__)
        asm("" : "+r"(known));  // it leaves out what it knows to be a variable of the function
#endif
        return *known;
    }
    // What lies there next has no red zones.
    SIM_RED ~LocalArray() {
        volatile LocalArray& red = *this;
        red.owner_before.name = 0, red.owner_behind.name = 0;
    }
};

#undef SIM_RED
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
