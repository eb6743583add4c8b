// A faulting thread ends its launch and nothing else.
//
// A handler on an alternate stack records the fault and jumps back to run_blocks; the fibers are abandoned. The
// watchdog is a timer of the worker's CPU time. It ends a launch in which no block ends for too long. It also suspends
// a thread that polls memory in a way the simulator cannot see (a volatile read without checks).
#include "faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__)
#include <link.h>
#include <sys/syscall.h>
#endif

#include "host_poll_detector.h"
#include "program.h"
#include "registry.h"
#include "settings.h"
#include "sim/error_codes.h"

namespace sim {

namespace {

using events::FaultKind;

constexpr int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr int fault_signal_count = 5;
constexpr int tick_signal = SIGVTALRM;
constexpr long tick_nanoseconds = 4000000;
constexpr size_t handler_stack_bytes = 64 << 10;
// The number of timer ticks after which the watchdog suspends the running thread, so that others run. With checks it is
// large: polling calls the simulator and is detected there. An early switch would change the order of threads by
// chance, and with it the place that a finding names.
constexpr unsigned alone_ticks_plain = 1, alone_ticks_checked = 25;
// When a launch is stopped, a thread inside a library function has this many ticks to return to kernel code.
constexpr unsigned patience_ticks = 50;
// If all live threads have polled for this many rounds, the watchdog names a polling thread as the cause.
constexpr unsigned certain_rounds = 1000;

struct sigaction previous[fault_signal_count];
struct sigaction previous_tick;
struct sigaction previous_interrupt;
Grid* running_grid = nullptr;

// The library with the kernel. A thread is interrupted only there, never within libsim or the C library.
uintptr_t code_begin = 0, code_end = 0;

#if defined(__linux__)
int find_library(dl_phdr_info* info, size_t, void* address) {
    auto wanted = reinterpret_cast<uintptr_t>(address);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & segment = info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        uintptr_t end = begin + segment.p_memsz;
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || wanted < begin || wanted >= end) continue;
        code_begin = begin;
        code_end = end;
        return 1;
    }
    return 0;
}

void find_code(void* address) {
    auto wanted = reinterpret_cast<uintptr_t>(address);
    if (wanted >= code_begin && wanted < code_end) return;
    dl_iterate_phdr(find_library, address);
}

bool in_kernel_code(uintptr_t pc) { return pc >= code_begin && pc < code_end; }
#else
void find_code(void* address) {
    Dl_info info;
    if (dladdr(address, &info)) code_begin = reinterpret_cast<uintptr_t>(info.dli_fbase);
}

bool in_kernel_code(uintptr_t pc) {
    Dl_info info;
    return dladdr(reinterpret_cast<void*>(pc), &info) && reinterpret_cast<uintptr_t>(info.dli_fbase) == code_begin;
}
#endif

// A register in the context of a signal, under the names that it has there.
#if defined(__linux__) && defined(__x86_64__)
#define REGISTER(linux_x86_64, linux_arm64, apple_x86_64, apple_arm64) uc_mcontext.gregs[linux_x86_64]
#elif defined(__linux__) && defined(__aarch64__)
#define REGISTER(linux_x86_64, linux_arm64, apple_x86_64, apple_arm64) uc_mcontext.linux_arm64
#elif defined(__APPLE__) && defined(__x86_64__)
#define REGISTER(linux_x86_64, linux_arm64, apple_x86_64, apple_arm64) uc_mcontext->__ss.apple_x86_64
#elif defined(__APPLE__) && defined(__aarch64__)
#define REGISTER(linux_x86_64, linux_arm64, apple_x86_64, apple_arm64) uc_mcontext->__ss.apple_arm64
#endif

#ifdef REGISTER
uintptr_t program_counter(const void* context) {
    return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->REGISTER(REG_RIP, pc, __rip, __pc));
}

uintptr_t stack_pointer(const void* context) {
    return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->REGISTER(REG_RSP, sp, __rsp, __sp));
}

uintptr_t frame_pointer(const void* context) {
    return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->REGISTER(REG_RBP, regs[29], __rbp, __fp));
}
#else
uintptr_t frame_pointer(const void*) { return 0; }
uintptr_t program_counter(const void*) { return 0; }
uintptr_t stack_pointer(const void*) { return ~static_cast<uintptr_t>(0); }
#endif

// Forwards a fault that does not belong to the launch: in another thread, or in host code.
void pass_on(int signal, siginfo_t* info, void* context) {
    for (int i = 0; i < fault_signal_count; ++i) {
        if (fault_signals[i] != signal) continue;
        if (previous[i].sa_flags & SA_SIGINFO) {
            previous[i].sa_sigaction(signal, info, context);
        } else if (previous[i].sa_handler != SIG_DFL && previous[i].sa_handler != SIG_IGN) {
            previous[i].sa_handler(signal);
        } else {
            sigaction(signal, &previous[i], nullptr);  // the instruction faults again, with the default action
        }
    }
}

#if defined(__x86_64__)
// Returns whether the instruction may be a packed SSE or AVX instruction, which can require an aligned operand. It is
// encoded as optional prefixes, followed by the byte 0F (SSE) or C4 or C5 (VEX, for AVX). The prefixes F2 and F3 mark
// scalar instructions, which require no alignment.
bool demands_alignment(const unsigned char* code) {
    for (;; ++code) {
        if (*code == 0xf2 || *code == 0xf3) return false;
        bool prefix = *code == 0x66 || *code == 0x2e || *code == 0x3e || (*code & 0xf0) == 0x40;
        if (!prefix) break;
    }
    return *code == 0x0f || *code == 0xc5 || *code == 0xc4;
}
#endif

// Returns whether the address is in a guard page, or past it because of a frame larger than the stack.
bool overflowed(const Worker& worker, const siginfo_t* info, const void* context) {
    if (worker.fibers.in_guard(info->si_addr)) return true;
    return current_thread && worker.fiber && stack_pointer(context) < reinterpret_cast<uintptr_t>(worker.fiber->low);
}

struct Diagnosis {
    FaultKind kind;
    int cuda_error;
};

Diagnosis diagnose(int signal, const siginfo_t* info, const void* context, const Worker& worker) {
    if (signal == SIGFPE) return {FaultKind::division_by_zero, cudaErrorLaunchFailure};
#if defined(__clang__)
    // The instruction behind a failed check of -fsanitize-trap=local-bounds: ud2 on x86-64, brk on arm64. A kernel's own
    // __builtin_trap() calls sim_trap.
    if (signal == SIGILL || signal == SIGTRAP) return {FaultKind::local_bounds, cudaErrorIllegalAddress};
#endif
    if (signal == SIGILL || signal == SIGTRAP) return {FaultKind::illegal_instruction, cudaErrorIllegalInstruction};
    if (overflowed(worker, info, context)) return {FaultKind::stack_overflow, cudaErrorHardwareStackError};
    bool misaligned = signal == SIGBUS && info->si_code == BUS_ADRALN;
#if defined(__linux__) && defined(__x86_64__)
    // A misaligned 16-byte access is a general protection fault, which Linux reports without an address. So is an
    // access to an address that is not canonical.
    if (signal == SIGSEGV && info->si_code == SI_KERNEL) {
        misaligned = demands_alignment(reinterpret_cast<const unsigned char*>(program_counter(context)));
    }
#endif
    if (misaligned) return {FaultKind::misaligned_address, cudaErrorMisalignedAddress};
    return {FaultKind::illegal_address, cudaErrorIllegalAddress};
}

// Returns whether a word on the stack is an address behind a call in the kernel's code.
bool is_return_address(uintptr_t word) {
    if (word < 8 || !in_kernel_code(word - 8) || !in_kernel_code(word)) return false;
#if defined(__x86_64__)
    const auto* code = reinterpret_cast<const unsigned char*>(word);
    return code[-5] == 0xe8 || (code[-6] == 0xff && code[-5] == 0x15) ||
           (code[-2] == 0xff && (code[-1] & 0x38) == 0x10) || (code[-3] == 0xff && (code[-2] & 0x38) == 0x10);
#elif defined(__aarch64__)
    unsigned instruction;
    memcpy(&instruction, reinterpret_cast<const void*>(word - 4), sizeof instruction);
    return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfffffc1f) == 0xd63f0000;  // bl, blr
#else
    return true;
#endif
}

// Returns the first words between two places on a stack that are return addresses in the program's code.
Places on_stack(uintptr_t stack, uintptr_t top) {
    Places found;
    size_t count = 0;
    for (stack = (stack + 7) & ~static_cast<uintptr_t>(7); stack < top && count < Places::most;
         stack += sizeof(uintptr_t)) {
        uintptr_t word = *reinterpret_cast<const uintptr_t*>(stack);
        if (is_return_address(word)) found.address[count++] = reinterpret_cast<const void*>(word);
    }
    return found;
}

// Returns the first return address in the program's code by the chain of frame pointers, which the kernel and the
// simulator keep, or null. A function that has just been called has not yet stored its caller's frame pointer; its
// return address is then on the top of the stack.
const void* by_frames(uintptr_t stack, uintptr_t frame, uintptr_t top) {
    for (uintptr_t place = stack; place < stack + 2 * sizeof(uintptr_t) && place + sizeof(uintptr_t) <= top;
         place += sizeof(uintptr_t)) {
        uintptr_t word = *reinterpret_cast<const uintptr_t*>(place);
        if (is_return_address(word)) return reinterpret_cast<const void*>(word);
    }
    // Code without frame pointers may have any number in this register.
    for (uintptr_t below = stack;
         frame >= below && frame % sizeof(uintptr_t) == 0 && frame < top - sizeof(uintptr_t);) {
        const auto* words = reinterpret_cast<const uintptr_t*>(frame);
        if (is_return_address(words[1])) return reinterpret_cast<const void*>(words[1]);
        below = frame + 1;
        frame = words[0];
    }
    return nullptr;
}

// Returns whether an address is in a stub of the procedure linkage table: a jump to a function of another library, whose
// return address is on the top of the stack. The stub has no source line.
bool in_stub(uintptr_t pc) {
#if defined(__x86_64__)
    const auto* code = reinterpret_cast<const unsigned char*>(pc);
    if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) code += 4;  // endbr64
    if (*code == 0xf2) ++code;                            // bnd
    return code[0] == 0xff && code[1] == 0x25;            // jmp *offset(%rip)
#else
    (void)pc;
    return false;
#endif
}

// Returns the place to report, in the kernel's own code, as a return address: behind the instruction. Inside a function
// that the kernel has called, this is the first return address on the stack that leads back to the kernel; failing
// that, the thread's last call of the simulator.
const void* place_of(const void* context, const Worker& worker) {
    uintptr_t pc = program_counter(context);
    const Thread* thread = current_thread;
    if (in_kernel_code(pc) && !in_stub(pc)) return reinterpret_cast<const void*>(pc + 1);
    if (!thread || !worker.fiber) return reinterpret_cast<const void*>(pc);
    uintptr_t low = reinterpret_cast<uintptr_t>(worker.fiber->low);
    uintptr_t top = reinterpret_cast<uintptr_t>(worker.fiber->top);
    uintptr_t stack = stack_pointer(context);
    const void* found = stack >= low ? by_frames(stack, frame_pointer(context), top) : nullptr;
    if (!found && stack >= low) found = on_stack(stack, top).address[0];
    return found ? found : thread->call_address;
}

void on_fault(int signal, siginfo_t* info, void* context) {
    Worker* worker = current_worker;
    if (was_poll_sample(signal, info, context)) {
        if (worker && current_thread) current_thread->seen_from = place_of(context, *worker);
        return;
    }
    if (!worker || !worker->grid) {
        pass_on(signal, info, context);
        return;
    }
    Thread* thread = current_thread;
    Diagnosis found = diagnose(signal, info, context, *worker);
    events::Fault& fault = worker->fault = {};
    fault.kind = found.kind;
    fault.thread = thread;
    fault.data = fault.kind == FaultKind::illegal_address ? info->si_addr : nullptr;
    fault.address = place_of(context, *worker);
    fault.data_known = fault.data != nullptr || info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR;
    worker->fault_error = found.cuda_error;
    worker->faulted = true;
    siglongjmp(worker->landing, 1);
}

void on_tick(int, siginfo_t*, void* context) {
    Worker* worker = current_worker;
    if (!worker || !worker->grid) return;
    Grid& grid = *worker->grid;
    Thread* thread = current_thread;
    uintptr_t pc = program_counter(context);
    bool in_kernel = thread && locks_held == 0 && in_kernel_code(pc);

    program_notes_time();
    bool progress = worker->blocks_ended != worker->seen_blocks_ended;
    worker->seen_blocks_ended = worker->blocks_ended;
    worker->idle_ticks = progress ? 0 : worker->idle_ticks + 1;
    double idle_seconds = worker->idle_ticks * 1e-9 * tick_nanoseconds;
    if (idle_seconds > settings.watchdog_seconds) {
        events::Fault fault = {};
        fault.kind = FaultKind::infinite_loop;
        fault.thread = thread;
        fault.address = place_of(context, *worker);
        // If all threads poll without progress, the running one is no more responsible than the others: always report
        // the same thread.
        Thread* spinning = worker->stalled_rounds > certain_rounds ? first_spinning(*worker) : nullptr;
        if (spinning) {
            fault.thread = spinning;
            fault.address = spinning->call_address;
        }
        name_seen_polling(*worker, thread, fault);
        record_fault(grid, fault, cudaErrorLaunchTimeout);
    }
    bool checked = thread && thread->block->checked;
    bool may_wait = !checked && is_program() && idle_seconds > settings.watchdog_seconds / 2;
    worker->samples_polls = may_wait;
    if (may_wait && in_kernel) sample_next_access();
    if (grid.stop.is_raised()) {
        if (in_kernel || (++worker->stop_ticks > patience_ticks && locks_held == 0)) siglongjmp(worker->landing, 1);
        return;
    }
    // The same thread has run since the last tick. It may poll memory that only another thread can change.
    bool alone = worker->switches == worker->seen_switches && thread == worker->seen_thread && !progress;
    worker->seen_switches = worker->switches;
    worker->seen_thread = thread;
    worker->alone_ticks = alone ? worker->alone_ticks + 1 : 0;
    if (in_kernel && worker->alone_ticks >= (checked ? alone_ticks_checked : alone_ticks_plain)) {
        worker->alone_ticks = 0;
        thread->call_address = place_of(context, *worker);
        worker->spin_rounds += spin_patience;  // exceed the limit, so that another block starts
        spin(*thread);
    }
}

// Ctrl-C in a notebook: the process's own handler runs first (Python's sets a flag). The launch ends at the next tick,
// so that Python can check the flag.
void on_interrupt(int signal, siginfo_t* info, void* context) {
    if (previous_interrupt.sa_flags & SA_SIGINFO) {
        previous_interrupt.sa_sigaction(signal, info, context);
    } else {
        previous_interrupt.sa_handler(signal);
    }
    Grid* grid = running_grid;
    if (grid && grid->stop.raise()) grid->error = cudaErrorLaunchFailure;
}

bool has_handler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace

void keep_place_of_program(void* address) { find_code(address); }

bool was_write([[maybe_unused]] const void* context) {
#if defined(__linux__) && defined(__x86_64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    return false;
#endif
}

Places places_in_program(const void* context, uintptr_t top) {
    Worker* worker = current_worker;
    if (worker && worker->grid && current_thread) return {{place_of(context, *worker)}};
    uintptr_t pc = program_counter(context);
    if (in_kernel_code(pc)) return {{reinterpret_cast<const void*>(pc + 1)}};
    if (top) return on_stack(stack_pointer(context), top);
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
    void* lowest = nullptr;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    uintptr_t stack = stack_pointer(context), low = reinterpret_cast<uintptr_t>(lowest);
    if (stack >= low && stack < low + bytes) return on_stack(stack, low + bytes);
#endif
    return {};
}

bool stop_running_grid() {
    Grid* grid = running_grid;
    if (!grid) return false;
    if (grid->stop.raise()) grid->error = cudaErrorLaunchFailure;
    return true;
}

FaultHandlers::FaultHandlers(Grid& grid) {
    find_code(reinterpret_cast<void*>(grid.body));
    running_grid = &grid;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_fault;
    // SA_NODEFER, because the handler exits by a jump and the signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < fault_signal_count; ++i) sigaction(fault_signals[i], &action, &previous[i]);
    // A tick is handled on the fiber's own stack: the thread may be suspended within its handler.
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    sigaction(tick_signal, &action, &previous_tick);
    sigaction(SIGINT, nullptr, &previous_interrupt);
    if (!has_handler(previous_interrupt)) return;  // the default action then ends the process
    action.sa_sigaction = on_interrupt;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
}

FaultHandlers::~FaultHandlers() {
    end_poll_sampling();
    running_grid = nullptr;
    if (has_handler(previous_interrupt)) sigaction(SIGINT, &previous_interrupt, nullptr);
    sigaction(tick_signal, &previous_tick, nullptr);
    for (int i = 0; i < fault_signal_count; ++i) sigaction(fault_signals[i], &previous[i], nullptr);
}

WorkerSignals::WorkerSignals(Worker& worker) {
    worker.seen_blocks_ended = worker.blocks_ended;
    worker.seen_switches = worker.switches;
    worker.seen_thread = nullptr;
    worker.idle_ticks = worker.stop_ticks = worker.alone_ticks = 0;
    worker.samples_polls = false;
    if (!worker.handler_stack) {
        void* stack = mmap(nullptr, handler_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack != MAP_FAILED) worker.handler_stack = stack;
    }
    if (worker.handler_stack) {
        stack_t stack = {};
        stack.ss_sp = worker.handler_stack;
        stack.ss_size = handler_stack_bytes;
        has_stack_ = sigaltstack(&stack, &previous_) == 0;
    }
#if defined(__linux__)
    sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal;
#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif
    event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    // The watchdog measures CPU time, because on a busy machine a kernel may need much wall time without being in an
    // infinite loop. If no timer can be created, there is no watchdog.
    has_timer_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
    if (has_timer_) {
        itimerspec every = {{0, tick_nanoseconds}, {0, tick_nanoseconds}};
        timer_settime(timer_, 0, &every, nullptr);
    }
#endif
}

WorkerSignals::~WorkerSignals() {
#if defined(__linux__)
    // A tick that is already pending arrives when this call returns, with the handler still in place.
    if (has_timer_) timer_delete(timer_);
#endif
    if (has_stack_) sigaltstack(&previous_, nullptr);
}

}  // namespace sim
