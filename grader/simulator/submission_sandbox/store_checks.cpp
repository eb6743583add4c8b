// The functions that grader/execution/submission_sandbox/store_checks.py calls before stores that g++ did not
// instrument.
#include "sandbox.h"

#if defined(__x86_64__)

extern "C" {
// Ranges in which stores need no further check: the submission's variables, device memory, and the pool for new and
// malloc. Read by the assembly below.
__attribute__((visibility("hidden"))) uintptr_t sim_open_ranges[6] = {};
__attribute__((visibility("hidden"))) unsigned char sim_stores_checked = 0;
__attribute__((visibility("hidden"), used)) void sim_check_store(const void* data, size_t bytes, void* const* frame) {
    sim::sandbox::check(data, bytes, true, frame[1], frame);
}
}

// r11: address of the store. All registers are preserved, the flags are not. The stack holds the return address, r11
// and, for a range, r10 (its bytes).
asm(R"(
    .text
    .macro store bytes
    .globl sim_store_\bytes
    .type sim_store_\bytes, @function
sim_store_\bytes:
    cmpb $0, sim_stores_checked(%rip)
    je 1f
    push %r10
    lea -\bytes(%rbp), %r10
    cmp %r10, %r11
    ja 2f
    cmp %rsp, %r11
    jb 2f
    pop %r10
1:  ret
2:  mov $\bytes, %r10
    jmp sim_store_elsewhere
    .endm
    .irp bytes, 1, 2, 4, 8, 16
    store \bytes
    .endr

    .globl sim_store_range
    .type sim_store_range, @function
sim_store_range:
    cmpb $0, sim_stores_checked(%rip)
    je 1f
    test %r10, %r10
    je 1f
    push %r10
    jmp sim_store_elsewhere
1:  ret

sim_store_elsewhere:
    push %rax
    .irp place, 0, 16, 32
    mov %r11, %rax
    sub sim_open_ranges+\place(%rip), %rax
    jb 3f
    add %r10, %rax
    jc 3f
    cmp sim_open_ranges+\place+8(%rip), %rax
    jbe 4f
3:
    .endr
    # As in a call from the function that stores: where it goes on, and its frame.
    pushq 16(%rsp)
    push %rbp
    mov %rsp, %rbp
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    push %r11
    sub $264, %rsp
    and $-16, %rsp
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups %xmm\n, 16*\n(%rsp)
    .endr
    mov %r11, %rdi
    mov %r10, %rsi
    mov %rbp, %rdx
    call sim_check_store
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups 16*\n(%rsp), %xmm\n
    .endr
    lea -56(%rbp), %rsp
    pop %r11
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rbp
    add $8, %rsp
4:  pop %rax
    pop %r10
    ret
)");

namespace sim::sandbox {
void set_open(unsigned which, uintptr_t base, size_t bytes) {
    sim_open_ranges[2 * which] = base;
    sim_open_ranges[2 * which + 1] = bytes;
    sim_stores_checked = 1;
}
}  // namespace sim::sandbox

#else

namespace sim::sandbox {
void set_open(unsigned, uintptr_t, size_t) {}
}  // namespace sim::sandbox

#endif
