// The context switch in assembly for x86-64 and arm64, and with ucontext for other processors.
#include "context.h"

#include <stdint.h>
#include <string.h>

#if defined(SIM_UCONTEXT)

// swapcontext enters the kernel twice to save and set the signal mask: portable, and 20 times slower.
#include <ucontext.h>

namespace sim {

void* make_context(char* top, void (*entry)()) {
    // The ucontext_t lies at the top of the stack that it describes; the stack itself is below it.
    constexpr size_t reserved = (sizeof(ucontext_t) + 63) & ~static_cast<size_t>(63);
    constexpr size_t enough = 16384;  // makecontext only computes top = base + size
    auto* context = reinterpret_cast<ucontext_t*>(top - reserved);
    getcontext(context);
    context->uc_stack.ss_sp = top - reserved - enough;
    context->uc_stack.ss_size = enough;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}

}  // namespace sim

extern "C" void sim_switch_context(void** from, void* to) {
    ucontext_t self;
    *from = &self;
    swapcontext(&self, static_cast<ucontext_t*>(to));
}

#else

#if defined(__APPLE__)
#define SYMBOL "_sim_switch_context"
#define TYPE_AND_SIZE ""
#else
#define SYMBOL "sim_switch_context"
#define TYPE_AND_SIZE ".type sim_switch_context, %function\n.size sim_switch_context, .-sim_switch_context\n"
#endif

#if defined(__x86_64__)

// System V: rbx, rbp and r12..r15 survive a call. `ret` rather than a jump, so that the processor's return predictor
// is not thrown off by every switch.
asm(".text\n"
    ".p2align 4\n"
    ".globl " SYMBOL
    "\n"
    ".hidden " SYMBOL "\n" SYMBOL
    ":\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n" TYPE_AND_SIZE);

namespace sim {

void* make_context(char* top, void (*entry)()) {
    auto* slot = reinterpret_cast<void**>(top);
    *--slot = nullptr;  // return address of entry: ends every backtrace
    *--slot = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--slot = nullptr;
    return slot;
}

}  // namespace sim

#else

// AAPCS64: x19..x28, the frame pointer x29, the link register x30 and the low halves of v8..v15 survive a call.
asm(".text\n"
    ".p2align 4\n"
    ".globl " SYMBOL
    "\n"
#if !defined(__APPLE__)
    ".hidden " SYMBOL "\n"
#endif
    SYMBOL
    ":\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n"
    "    stp x21, x22, [sp, #16]\n"
    "    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n"
    "    stp x27, x28, [sp, #64]\n"
    "    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n"
    "    str x9, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n" TYPE_AND_SIZE);

namespace sim {

void* make_context(char* top, void (*entry)()) {
    char* frame = top - 160;
    memset(frame, 0, 160);
    void* address = reinterpret_cast<void*>(entry);
    memcpy(frame + 88, &address, sizeof address);  // x30: where `ret` goes
    return frame;
}

}  // namespace sim

#endif
#endif
