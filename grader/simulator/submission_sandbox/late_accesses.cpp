// The functions that kernel libraries call before accesses that g++ did not instrument. The calls are inserted by
// grader/execution/submission_sandbox/late_accesses.py.
#include "sandbox.h"

#include "runtime/events.h"

#if defined(__x86_64__)

extern "C" {
// In `kind_and_bytes`, bit 62 is set for a write.
__attribute__((visibility("hidden"), used)) void sim_late_access(const void* data, uint64_t kind_and_bytes,
                                                                 void* const* frame) {
    constexpr uint64_t write = uint64_t(1) << 62;
    sim::events::late_access(data, kind_and_bytes & ~write, kind_and_bytes & write, frame[1]);
}
}

// r11: address of the access. All registers are preserved, the flags are not. The stack holds the return address, r11
// and, for a range, r10 (its bytes).
asm(R"(
    .text
    .macro access bytes
    .globl sim_store_\bytes
    .type sim_store_\bytes, @function
sim_store_\bytes:
    push %r10
    lea -\bytes(%rbp), %r10
    cmp %r10, %r11
    ja 1f
    cmp %rsp, %r11
    jb 1f
    pop %r10
    ret
1:  mov $\bytes, %r10
    bts $62, %r10
    jmp sim_late
    .globl sim_load_\bytes
    .type sim_load_\bytes, @function
sim_load_\bytes:
    push %r10
    mov $\bytes, %r10
    jmp sim_late
    .endm
    .irp bytes, 1, 2, 4, 8, 10, 16
    access \bytes
    .endr

    .globl sim_store_range
    .type sim_store_range, @function
sim_store_range:
    test %r10, %r10
    je 2f
    push %r10
    bts $62, %r10
    jmp sim_late

    .globl sim_load_range
    .type sim_load_range, @function
sim_load_range:
    test %r10, %r10
    je 2f
    push %r10
    jmp sim_late
2:  ret

    # As in a call from the function that accesses: where it goes on, and its frame.
sim_late:
    pushq 8(%rsp)
    push %rbp
    mov %rsp, %rbp
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    push %r11
    sub $256, %rsp
    and $-16, %rsp
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups %xmm\n, 16*\n(%rsp)
    .endr
    mov %r11, %rdi
    mov %r10, %rsi
    mov %rbp, %rdx
    call sim_late_access
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups 16*\n(%rsp), %xmm\n
    .endr
    lea -64(%rbp), %rsp
    pop %r11
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    pop %rbp
    add $8, %rsp
    pop %r10
    ret
)");

#endif
