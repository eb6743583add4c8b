// Switching between stacks: the one thing in the simulator that is written in assembly.
//
// A context is a stack pointer: everything else that a suspended fiber needs lies on its stack. Only the registers that
// the calling convention asks a function to keep are saved, so a switch costs a few nanoseconds where swapcontext costs
// a system call. Define SIM_UCONTEXT to use swapcontext instead, on a processor that context.cpp does not know.
#pragma once

#if !defined(SIM_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SIM_UCONTEXT
#endif

namespace sim {

// A context that calls `entry` on the stack that ends at `top` (16-byte aligned). `entry` must never return.
void* make_context(char* top, void (*entry)());

}  // namespace sim

// Suspends the caller, leaving its context in *from, and resumes `to`.
extern "C" void sim_switch_context(void** from, void* to);
