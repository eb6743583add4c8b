// This file is linked into every program for the simulated GPU. It registers the program with libsim before the
// program's first line runs, and tells libsim how the program's host threads synchronize.
#include <dlfcn.h>

extern "C" void sim_program_starts(const char* const* reporter, const void* base);
extern "C" const char __executable_start[];

static const char* const reporter[] = {REPORTER, nullptr};

__attribute__((constructor(101))) static void start() {
    sim_program_starts(reporter[0] ? reporter : nullptr, __executable_start);
}

#if defined(__x86_64__)
// In instrumented objects, a call through a pointer goes through a thunk. In a jail, the thunk is libsim's and checks
// the target (simulator/submission_sandbox/indirect_calls.cpp). A program is not confined, so its thunks, defined here,
// only jump. A program cannot use libsim's thunks: their first call goes through the dynamic linker, which does not
// preserve r10 and r11, and these registers may contain the target.
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

// These functions replace the C library's thread functions, which std::thread also calls. They are declared here, not by
// <pthread.h>, because <pthread.h> declares some of them noexcept.
extern "C" void sim_host_release(const void* object);
extern "C" void sim_host_acquire(const void* object);
extern "C" int sim_host_start(int (*create)(void*, const void*, void* (*)(void*), void*), void* thread,
                              const void* attributes, void* (*function)(void*), void* argument);

// Some functions have two versions in glibc. dlsym would find the older one, so try the newer version first.
static void* find(const char* name) {
    void* found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found ? found : dlsym(RTLD_NEXT, name);
}

#define REAL(TYPE, NAME)   \
    using Function = TYPE; \
    static Function* real; \
    if (!real) real = reinterpret_cast<Function*>(find(NAME));

#define ACQUIRES(NAME, PARAMETERS, ARGUMENTS)  \
    extern "C" int NAME PARAMETERS {           \
        REAL(int PARAMETERS, #NAME)            \
        int result = real ARGUMENTS;           \
        if (!result) sim_host_acquire(object); \
        return result;                         \
    }
#define RELEASES(NAME)                  \
    extern "C" int NAME(void* object) { \
        REAL(int(void*), #NAME)         \
        sim_host_release(object);       \
        return real(object);            \
    }
#define RELEASES_AND_ACQUIRES(NAME, PARAMETERS, ARGUMENTS) \
    extern "C" int NAME PARAMETERS {                       \
        REAL(int PARAMETERS, #NAME)                        \
        sim_host_release(object);                          \
        int result = real ARGUMENTS;                       \
        sim_host_acquire(object);                          \
        return result;                                     \
    }

struct timespec;
ACQUIRES(pthread_mutex_lock, (void* object), (object))
ACQUIRES(pthread_mutex_trylock, (void* object), (object))
ACQUIRES(pthread_mutex_timedlock, (void* object, const timespec* end), (object, end))
ACQUIRES(pthread_mutex_clocklock, (void* object, int clock, const timespec* end), (object, clock, end))
RELEASES(pthread_mutex_unlock)
ACQUIRES(pthread_rwlock_rdlock, (void* object), (object))
ACQUIRES(pthread_rwlock_wrlock, (void* object), (object))
ACQUIRES(pthread_rwlock_tryrdlock, (void* object), (object))
ACQUIRES(pthread_rwlock_trywrlock, (void* object), (object))
RELEASES(pthread_rwlock_unlock)
ACQUIRES(sem_wait, (void* object), (object))
ACQUIRES(sem_trywait, (void* object), (object))
ACQUIRES(sem_timedwait, (void* object, const timespec* end), (object, end))
RELEASES(sem_post)
RELEASES_AND_ACQUIRES(pthread_barrier_wait, (void* object), (object))
RELEASES_AND_ACQUIRES(pthread_cond_wait, (void* condition, void* object), (condition, object))
RELEASES_AND_ACQUIRES(pthread_cond_timedwait, (void* condition, void* object, const timespec* end),
                      (condition, object, end))
RELEASES_AND_ACQUIRES(pthread_cond_clockwait, (void* condition, void* object, int clock, const timespec* end),
                      (condition, object, clock, end))

extern "C" int pthread_create(void* thread, const void* attributes, void* (*function)(void*), void* argument) {
    REAL(int(void*, const void*, void* (*)(void*), void*), "pthread_create")
    return sim_host_start(real, thread, attributes, function, argument);
}

extern "C" int pthread_join(unsigned long thread, void** result) {
    REAL(int(unsigned long, void**), "pthread_join")
    int error = real(thread, result);
    if (!error) sim_host_acquire(reinterpret_cast<const void*>(thread));
    return error;
}
