// Addresses of variables and functions in the library of the fake submission.
#pragma once

#include <stddef.h>

struct Parts {
    const void* variable;       // long[4]
    const void* constant;       // long[2]
    const void* of_the_thread;  // long[2]
    const void* table;          // a word that is read-only after the library has been loaded
    const void* bound;          // the function of another library to which `table` points
    const void* function;
    // Stores the address of a local variable, long[4], at `address`. Then calls deeper(address, inner) if `deeper` is
    // not null, otherwise inner(address).
    void (*with_local)(void (*inner)(void*), void (*deeper)(void*, void (*)(void*)), void* address);
};
