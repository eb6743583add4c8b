// The seccomp filter: a small program that Linux runs before each system call of the process.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

extern "C" const char confine_called[];  // the address after confine_call's system call instruction

namespace {

#if defined(__x86_64__)
constexpr unsigned machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned machine = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned machine = 0;  // unknown processor: no filter
#endif

// Numbers of system calls that older headers lack. They are the same on all processors.
enum {
    call_pidfd_send_signal = 424,
    call_close_range = 436,
    call_faccessat2 = 439,
    call_epoll_pwait2 = 441,
    call_futex_waitv = 449,
};

// confine_call: moves its arguments to the registers of a system call and executes the instruction.
#if defined(__x86_64__)
asm(R"(
    .text
    .globl confine_call
    .hidden confine_call
    .type confine_call, @function
confine_call:
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    mov 8(%rsp), %r9
    syscall
confine_called:
    ret
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl confine_call
    .hidden confine_call
    .type confine_call, %function
confine_call:
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
confine_called:
    ret
)");
#else
extern "C" const char confine_called[1] = {};
extern "C" long confine_call(long number, long a, long b, long c, long d, long e, long f) {
    long result = syscall(number, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
}
#endif

class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        add(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0);
        result(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0,
            1);  // the x32 ABI has other numbers for the same calls: refuse them
        result(refused);
#endif
    }

    void allow(int call) { on(call, SECCOMP_RET_ALLOW); }
    void refuse(int call, int error = EPERM) { on(call, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)); }

    // Refuses this call and all with higher numbers, with the error of a kernel that does not have them.
    void refuse_from(int call) {
        add(BPF_JMP | BPF_JGE | BPF_K, static_cast<unsigned>(call), 0, 1);
        result(SECCOMP_RET_ERRNO | ENOSYS);
    }

    // Refuses the call if its argument `index` is `value`.
    void refuse_if(int call, int index, unsigned value) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4);
        load(argument(index));
        add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        result(refused);
        load(offsetof(seccomp_data, nr));
    }

    // Allows the call if its argument `index`, a pointer, is null.
    void allow_if_null(int call, int index) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 6);
        load(argument(index));
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
        load(argument(index) + 4);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
        result(SECCOMP_RET_ALLOW);
        result(refused);
    }

    // Allows the call if the bits `mask` of argument `index` equal `value`.
    void allow_if(int call, int index, unsigned mask, unsigned value) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 5);
        load(argument(index));
        add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
        add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        result(SECCOMP_RET_ALLOW);
        result(refused);
    }

    // Allows the call for stdout and stderr (files 1 and 2), and for other files from confine_call only.
    void allow_own(int call) {
        uint64_t place = reinterpret_cast<uint64_t>(confine_called);
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 9);
        load(offsetof(seccomp_data, args));
        add(BPF_JMP | BPF_JEQ | BPF_K, 1, 5, 0);
        add(BPF_JMP | BPF_JEQ | BPF_K, 2, 4, 0);
        load(offsetof(seccomp_data, instruction_pointer));  // lower half of the caller's address
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(place), 0, 3);
        load(offsetof(seccomp_data, instruction_pointer) + 4);
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(place >> 32), 0, 1);
        result(SECCOMP_RET_ALLOW);
        result(refused);
    }

    bool install(bool allow_others) {
        result(allow_others ? SECCOMP_RET_ALLOW : refused);
        sock_fprog program{static_cast<unsigned short>(size_), code_};
        return machine != 0 && size_ < capacity && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }

  private:
    static constexpr unsigned refused = SECCOMP_RET_ERRNO | EPERM;
    static constexpr int capacity = 400;
    sock_filter code_[capacity];
    int size_ = 0;

    void add(int code, unsigned value, int yes, int no) {
        if (size_ < capacity)
            code_[size_++] = {static_cast<__u16>(code), static_cast<__u8>(yes), static_cast<__u8>(no), value};
    }
    static size_t argument(int index) {  // offset of the argument's lower half
        return offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<unsigned>(index);
    }
    void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset), 0, 0); }
    void result(unsigned what) { add(BPF_RET | BPF_K, what, 0, 0); }
    void on(int call, unsigned what) {
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1);
        result(what);
    }
};

// Calls that reach other processes or change the whole system.
constexpr int reaching_others[] = {
    // other processes of one user
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_setpriority,
    SYS_connect, SYS_shmget, SYS_msgget, SYS_semget, SYS_keyctl, SYS_add_key, SYS_request_key,
    // the whole system
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open,
    SYS_userfaultfd, SYS_init_module, SYS_finit_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff};

}  // namespace

namespace confine {

bool only_computing() {
    Filter filter;
    constexpr int harmless[] = {
#ifdef SYS_getrlimit
        SYS_getrlimit,
#endif
#ifdef SYS_arch_prctl
        SYS_arch_prctl,
#endif
#ifdef SYS_rseq
        SYS_rseq,
#endif
        // memory
        SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk,
        // files that are already open; openat is below
        SYS_read, SYS_readv, SYS_pread64, SYS_lseek, SYS_close, SYS_fstat, SYS_newfstatat, SYS_recvmsg,
        // time
        SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_nanosleep, SYS_clock_nanosleep, SYS_timer_create,
        SYS_timer_settime, SYS_timer_gettime, SYS_timer_delete, SYS_setitimer,
        // signals and threads of the process itself
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_futex, SYS_sched_yield,
        SYS_restart_syscall, SYS_exit, SYS_exit_group, SYS_set_robust_list, SYS_getrandom,
        // process information
        SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname, SYS_sysinfo,
        SYS_sched_getaffinity, SYS_getrusage};
    constexpr int writing_calls[] = {SYS_write, SYS_writev, SYS_sendto};
    for (int call : harmless) filter.allow(call);
    constexpr unsigned writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
    filter.allow_if(SYS_openat, 2, writing, 0);
    filter.allow_if(SYS_tgkill, 0, 0xffffffff, static_cast<unsigned>(getpid()));  // for raise() and abort()
    filter.allow_if(SYS_prlimit64, 0, 0xffffffff, 0);  // a process may change only its own limits, and only lower them
    filter.allow_if(SYS_fcntl, 1, ~2u, F_GETFD);       // F_GETFD and F_GETFL; F_DUPFD would give a file another number
    // Reports and replies are written through confine_call. libc's write() cannot write to their descriptors, so a
    // kernel cannot forge them by calling it.
    for (int call : writing_calls) filter.allow_own(call);
    return filter.install(false);
}

bool only_computing_on_gpu() {
    Filter filter;
    constexpr int reaching[] = {
#ifdef SYS_fork
        SYS_fork, SYS_vfork,
#endif
#ifdef SYS_chmod
        SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
#ifdef SYS_modify_ldt
        SYS_modify_ldt,
#endif
        // calls that start or affect other processes
        SYS_execve, SYS_execveat, SYS_kcmp, SYS_rt_tgsigqueueinfo, SYS_ioprio_set, SYS_sched_setaffinity,
        SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_setattr, SYS_migrate_pages, SYS_move_pages,
        // sockets of other processes, which only_files() does not restrict
        SYS_accept, SYS_accept4, SYS_sendmsg, SYS_sendmmsg,
        // IPC between processes of one user
        SYS_shmat, SYS_shmctl, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_mq_open,
        SYS_mq_unlink,
        // permissions and times of files, which only_files() does not restrict
        SYS_truncate, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
        SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_name_to_handle_at,
        SYS_open_by_handle_at, SYS_inotify_add_watch, SYS_fanotify_init,
        // calls that change or observe the whole system
        SYS_memfd_create, SYS_personality, SYS_syslog, SYS_io_setup, SYS_quotactl, SYS_delete_module};
    constexpr unsigned whole = 0xffffffff;
    constexpr unsigned of_threads =
        CLONE_THREAD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    for (int call : reaching_others) filter.refuse(call);
    for (int call : reaching) filter.refuse(call);
    filter.allow_if(SYS_clone, 0, of_threads, CLONE_THREAD);
    filter.allow_if(SYS_tgkill, 0, whole, static_cast<unsigned>(getpid()));
    filter.allow_if(SYS_prlimit64, 0, whole, 0);
    filter.allow_if(SYS_socket, 0, whole, AF_UNIX);  // CUDA requires it
    filter.allow_if_null(SYS_sendto, 4);             // over an existing connection
    filter.refuse_if(SYS_prctl, 0, PR_SET_PDEATHSIG);
    filter.refuse_if(SYS_prctl, 0, PR_SET_DUMPABLE);
    // Refuse to send a signal to another process when a file becomes ready, and to insert input into a terminal.
    constexpr int of_files[] = {F_SETOWN, F_SETSIG, 15 /* F_SETOWN_EX */};
    constexpr int of_devices[] = {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX};
    for (int command : of_files) filter.refuse_if(SYS_fcntl, 1, static_cast<unsigned>(command));
    for (int command : of_devices) filter.refuse_if(SYS_ioctl, 1, static_cast<unsigned>(command));
    // Refuse all calls whose number is at least pidfd_send_signal's, except those in `newer`. clone3 is refused, too;
    // libc then uses clone.
    constexpr int newer[] = {call_close_range, call_faccessat2, call_epoll_pwait2, call_futex_waitv};
    for (int call : newer) filter.allow(call);
    filter.refuse_from(call_pidfd_send_signal);
    return filter.install(true);
}

bool no_reaching_out() {
    Filter filter;
    constexpr int reaching[] = {
#ifdef SYS_pidfd_open
        SYS_pidfd_open, SYS_pidfd_send_signal,
#endif
#ifdef SYS_io_uring_setup
        SYS_io_uring_setup,
#endif
#ifdef SYS_pidfd_getfd
        SYS_pidfd_getfd,
#endif
        // new sockets
        SYS_socket, SYS_socketpair, SYS_bind};
    filter.allow_if(SYS_tgkill, 0, 0xffffffff, static_cast<unsigned>(getpid()));  // for raise() and abort()
    for (int call : reaching_others) filter.refuse(call);
    for (int call : reaching) filter.refuse(call);
    return filter.install(true);
}

}  // namespace confine
