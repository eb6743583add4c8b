// Addresses in the library of the fake submission.
#pragma once

#include <stddef.h>

struct Parts {
    const void* variable;       // long[4]
    const void* constant;       // long[2]
    const void* of_the_thread;  // long[2]
    const void* table;          // a word that is read-only once it is loaded
    const void* bound;          // the function of another library that it holds
    const void* function;
    // Calls `inner`, or `deeper` with it, with a place that holds the address of a local variable, long[4].
    void (*with_local)(void (*inner)(void*), void (*deeper)(void*, void (*)(void*)), void* address);
};
