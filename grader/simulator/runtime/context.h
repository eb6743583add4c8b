// Switching between stacks, the simulator's only hand-written assembly apart from the submission sandbox.
//
// A context is a stack pointer: the suspended fiber's other state lies on its stack. Only the callee-saved registers of
// the calling convention are saved. So a switch costs a few nanoseconds, where swapcontext costs a system call. Define
// SIM_UCONTEXT to use swapcontext instead, on a processor that context.cpp does not support.
#pragma once

#if !defined(SIM_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SIM_UCONTEXT
#endif

namespace sim {

// Creates a context that calls `entry` on the stack that ends at `top` (16-byte aligned). `entry` must never return.
void* make_context(char* top, void (*entry)());

}  // namespace sim

// Saves the caller's context in *from and resumes `to`.
extern "C" void sim_switch_context(void** from, void* to);
