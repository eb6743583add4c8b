// What each program for the simulated GPU has beside its own code: before its first line libsim learns that it starts.
extern "C" void sim_program_starts(const char* const* reporter, const void* base);
extern "C" const char __executable_start[];

static const char* const reporter[] = {REPORTER, nullptr};

__attribute__((constructor(101))) static void start() {
    sim_program_starts(reporter[0] ? reporter : nullptr, __executable_start);
}

#if defined(__x86_64__)
// The objects are compiled as for a jail, where libsim looks at each call through a pointer (runtime/indirect_calls.cpp). A program
// is not confined, and has these functions of its own: where the loader binds libsim's at the first call, that loses r10 and r11.
asm(R"(
    .pushsection .text
    .macro straight register
    .globl __x86_indirect_thunk_\register
    .hidden __x86_indirect_thunk_\register
__x86_indirect_thunk_\register:
    jmp *%\register
    .endm
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    straight \register
    .endr
    .globl __llvm_external_retpoline_r11
    .hidden __llvm_external_retpoline_r11
    .set __llvm_external_retpoline_r11, __x86_indirect_thunk_r11
    .popsection
)");
#endif
