// printf, assert, clock, malloc, free and __builtin_trap in device and host code.
//
// The functions keep their declarations from the C library, but their calls are linked to functions of the simulator.
// In host code, the simulator's functions do what the C library does.
#pragma once

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/heap.h"
#include "sim/symbol.h"

#pragma GCC visibility push(default)
extern "C" {

int printf(const char* format, ...) SIM_SYMBOL(printf);
#if defined(__GLIBC__)
// In a kernel, memory comes from the device heap.
void* malloc(size_t bytes) __THROW SIM_SYMBOL(malloc);
void free(void* pointer) __THROW SIM_SYMBOL(free);
clock_t clock(void) __THROW SIM_SYMBOL(clock);
#endif

#if defined(__GLIBC__)
void __assert_fail(const char* expression, const char* file, unsigned int line, const char* function) __THROW
    SIM_SYMBOL(__assert_fail) __attribute__((__noreturn__));
#endif

void sim_trap(void) __attribute__((__noreturn__));
}
#pragma GCC visibility pop

// The compiler's own __builtin_trap() is an illegal instruction, with which clang++ also ends a thread that leaves a
// local variable.
#define __builtin_trap sim_trap
