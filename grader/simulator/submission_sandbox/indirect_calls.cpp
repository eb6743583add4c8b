// Calls through a pointer in a kernel file's code: they must lead to the beginning of one of its functions.
//
// On x86-64, kernel libraries are compiled so that each such call goes through a thunk named after the register with
// the address (-mindirect-branch=thunk-extern of g++, -mretpoline-external-thunk of clang++), and so that possible
// targets begin with the instruction endbr64 (-fcf-protection=branch). On other processors such calls are not checked.
#include "sandbox.h"

#if defined(__x86_64__)

extern "C" {
// The range of the submission's library; base 0 if the submission is not confined. The assembly below reads it.
__attribute__((visibility("hidden"))) uintptr_t sim_callable[2] = {0, ~uintptr_t(0)};
__attribute__((visibility("hidden"), used)) void sim_check_callable(const void* target, const void* code) {
    sim::sandbox::check_callable(target, code);
}
}

asm(R"(
    .text
    .macro thunk register
    .globl __x86_indirect_thunk_\register
    .type __x86_indirect_thunk_\register, @function
__x86_indirect_thunk_\register:
    push %\register
    jmp sim_indirect
    .endm
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    thunk \register
    .endr
    .globl __llvm_external_retpoline_r11
    .set __llvm_external_retpoline_r11, __x86_indirect_thunk_r11

    # On the stack: where to go, and where that returns to.
sim_indirect:
    push %r11
    push %r10
    mov 16(%rsp), %r11
    mov %r11, %r10
    sub sim_callable(%rip), %r10
    cmp sim_callable+8(%rip), %r10
    jae 1f
    cmpq $0, sim_callable(%rip)
    je 2f
    cmpl $0xfa1e0ff3, (%r11)
    jne 1f
2:  pop %r10
    pop %r11
    ret

1:  push %rbp
    mov %rsp, %rbp
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    sub $136, %rsp
    and $-16, %rsp
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups %xmm\n, 16*\n(%rsp)
    .endr
    mov %r11, %rdi
    mov 32(%rbp), %rsi
    call sim_check_callable
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups 16*\n(%rsp), %xmm\n
    .endr
    lea -56(%rbp), %rsp
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    pop %rbp
    jmp 2b
)");

namespace sim::sandbox {
void set_callable(uintptr_t base, size_t bytes) {
    sim_callable[1] = bytes;
    sim_callable[0] = base;
}
}  // namespace sim::sandbox

#else

namespace sim::sandbox {
void set_callable(uintptr_t, size_t) {}
}  // namespace sim::sandbox

#endif
