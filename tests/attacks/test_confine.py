"""The jail's system calls: decisions of the system call filters, resource limits, and Landlock rules.

``confine_calls.cpp`` prints the calls instead of making them, so the tests can evaluate the filters for any arguments.
"""

from __future__ import annotations

import os
import resource
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.execution.jail.programs import CONFINE
from grader.frontend.toolchain.compilers import find_cxx

HERE = Path(__file__).parent


def _words(text: str) -> list[str]:
    return text.split()


COMPUTES = _words("""mmap munmap mprotect mremap madvise brk read readv pread64 lseek close fstat newfstatat recvmsg
clock_gettime clock_getres gettimeofday nanosleep clock_nanosleep timer_create timer_settime timer_gettime timer_delete setitimer
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack futex sched_yield restart_syscall exit exit_group set_robust_list getrandom
getpid gettid getuid geteuid getgid getegid uname sysinfo sched_getaffinity getrusage getrlimit arch_prctl rseq""")  # noqa: E501
"""System calls that a kernel on the simulator may make with any arguments."""

REACHES = _words("""execve execveat fork vfork ptrace process_vm_readv process_vm_writev kcmp kill tkill rt_sigqueueinfo rt_tgsigqueueinfo
setpriority ioprio_set sched_setaffinity sched_setparam sched_setscheduler sched_setattr migrate_pages move_pages connect accept
accept4 sendmsg sendmmsg shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink keyctl
add_key request_key truncate fchmod fchmodat fchown fchownat utimensat setxattr lsetxattr fsetxattr removexattr lremovexattr
fremovexattr chmod chown lchown utime utimes futimesat name_to_handle_at open_by_handle_at inotify_add_watch fanotify_init
memfd_create mount umount2 pivot_root chroot unshare setns bpf perf_event_open userfaultfd personality syslog io_setup quotactl
init_module finit_module delete_module kexec_load reboot swapon swapoff modify_ldt""")  # noqa: E501
"""System calls that a kernel on a GPU must not make."""

COMPILER_REACHES = _words("""socket socketpair connect bind ptrace process_vm_readv process_vm_writev kill tgkill tkill rt_sigqueueinfo mount
umount2 pivot_root chroot unshare setns bpf perf_event_open userfaultfd keyctl add_key request_key init_module finit_module
kexec_load reboot swapon swapoff setpriority shmget msgget semget pidfd_open pidfd_send_signal io_uring_setup pidfd_getfd""")  # noqa: E501

ASKED = _words("openat tgkill prlimit64 fcntl write writev sendto clone socket prctl ioctl")
"""System calls whose arguments decide whether they are allowed."""

NEWER = {436: "close_range", 439: "faccessat2", 441: "epoll_pwait2", 449: "futex_waitv"}
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
X32 = 0x40000000


@dataclass
class Filter:
    """A seccomp filter program, and the process id and the code address for which it was built."""

    program: list[tuple[int, ...]]
    numbers: dict[str, int]
    process: int
    own_place: int
    machine: int

    def __call__(self, call: int | str, *arguments: int, at: int = 0, machine: int | None = None) -> int:
        """Return the filter's decision on a call whose system call instruction ends at the address ``at``."""
        number = self.numbers[call] if isinstance(call, str) else call
        every = [*arguments, 0, 0, 0, 0, 0, 0][:6]
        data = struct.pack("<iIQ6Q", number, self.machine if machine is None else machine, at, *every)
        line = value = 0
        while True:
            code, yes, no, k = self.program[line]
            line += 1
            if code == 0x20:
                (value,) = struct.unpack_from("<I", data, k)
            elif code == 0x54:
                value &= k
            elif code in (0x15, 0x35):
                line += yes if (value == k if code == 0x15 else value >= k) else no
            elif code == 0x06:
                return k
            else:
                raise AssertionError(f"unknown BPF instruction {code:#x}")

    def named(self, names: list[str]) -> set[int]:
        """Return the numbers of the named system calls, without those that this machine's architecture lacks."""
        return {self.numbers[name] for name in names if name in self.numbers}


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Return a function that runs the program confine_calls with arguments and returns its output lines.

    The program is built once.
    """
    folder = tmp_path_factory.mktemp("confine")
    names = sorted({*COMPUTES, *REACHES, *COMPILER_REACHES, *ASKED})
    (folder / "names.inc").write_text("".join(f'#ifdef SYS_{n}\n{{"{n}", SYS_{n}}},\n#endif\n' for n in names))
    sources = [
        HERE / "confine_calls.cpp",
        *(CONFINE / f"{name}.cpp" for name in ("limits", "landlock", "system_calls")),
    ]
    argv = [
        *find_cxx().command,
        "-std=c++17",
        "-O0",
        "-w",
        f"-I{CONFINE}",
        f"-I{folder}",
        "-o",
        "confine",
        "-Wl,--wrap=prctl,--wrap=setrlimit,--wrap=syscall",
    ]
    subprocess.run([*argv, *map(str, sources)], cwd=folder, check=True)

    def ask(*words: object, failing: int = -1) -> list[str]:
        argv = [str(folder / "confine"), *map(str, words)]
        environment = {**os.environ, "FAILING": str(failing)}
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()

    return ask


def made(asked: Callable[..., list[str]], what: str) -> Filter:
    lines = [line.split() for line in asked(what)]
    (known,) = (line for line in lines if line[0] == "is")
    program = [tuple(map(int, line[1:])) for line in lines if line[0] == "bpf"]
    numbers = {line[1]: int(line[2]) for line in lines if line[0] == "name"}
    found = Filter(program, numbers, int(known[1]), int(known[2]), int(known[3]))
    said = [line for line in lines if line[0] not in ("is", "bpf", "name")]
    assert said == [["prctl", "38", "1", "0", "0", "0"], ["prctl", "22", "2"], ["gives", "1"]], (
        "no_new_privs must be set before the filter"
    )
    assert len(program) < 4096
    return found


@pytest.mark.parametrize("what", ["computing", "gpu", "compiler"])
def test_system_calls_of_another_architecture_end_the_process(asked: Callable[..., list[str]], what: str) -> None:
    filter_ = made(asked, what)
    for machine in (0, 0x40000003, filter_.machine ^ 1):
        assert filter_("read", machine=machine) == KILL
    if filter_.machine == 0xC000003E:
        for number in (X32, X32 | filter_.numbers["read"], X32 | 520, 0xFFFFFFF):
            assert (filter_(number) == EPERM) is (number >= X32 or what == "computing")
    for failing in (0, 1):
        assert "gives 0" in asked(what, failing=failing), "a failed call must be reported"


def test_a_kernel_on_the_simulator_may_only_compute(asked: Callable[..., list[str]]) -> None:
    filter_ = made(asked, "computing")
    allowed, by_arguments = filter_.named(COMPUTES), filter_.named(ASKED[:7])
    assert len(by_arguments) == 7
    for number in range(1000):
        if number not in by_arguments:
            assert filter_(number, 5, 5, 5, 5, 5, 5) == (ALLOW if number in allowed else EPERM), number
    directory = os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
    for flags, decision in (
        *((flags, ALLOW) for flags in (0, os.O_CLOEXEC, directory)),
        *((flags, EPERM) for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_RDWR | os.O_CLOEXEC)),
    ):
        assert filter_("openat", 5, 5, flags, 5) == decision, flags
        assert filter_("openat", flags, flags, 0) == ALLOW
    for process, decision in ((filter_.process, ALLOW), (filter_.process + 1, EPERM), (0, EPERM), (1 << 31, EPERM)):
        assert filter_("tgkill", process, filter_.process) == decision
    assert filter_("prlimit64", 0, 5) == ALLOW
    assert filter_("prlimit64", 1) == filter_("prlimit64", filter_.process) == EPERM
    for command in range(1200):
        assert filter_("fcntl", 5, command) == (ALLOW if command in (1, 3) else EPERM), command


@pytest.mark.parametrize("call", ["write", "writev", "sendto"])
def test_only_the_runner_writes_to_other_files(asked: Callable[..., list[str]], call: str) -> None:
    filter_ = made(asked, "computing")
    own = filter_.own_place
    assert own > 1 << 32, "the executable should be position-independent, with its code above 4 GiB"
    for file in range(10):
        assert filter_(call, file, at=own) == ALLOW
        for place in (0, own - 1, own + 1, own ^ (1 << 32), own ^ (1 << 40), own & 0xFFFFFFFF):
            assert filter_(call, file, at=place) == (ALLOW if file in (1, 2) else EPERM), (file, place)


def test_a_kernel_on_a_gpu_cannot_reach_processes_or_networks(asked: Callable[..., list[str]]) -> None:
    filter_ = made(asked, "gpu")
    refused = filter_.named(REACHES)
    by_arguments = filter_.named([name for name in ASKED if name not in ("openat", "write", "writev")])
    for number in range(1000):
        if number in by_arguments:
            continue
        decision = EPERM if number in refused else ALLOW if number < 424 or number in NEWER else ENOSYS
        assert filter_(number, 5, 5, 5, 5, 5, 5) == decision, number
    thread, others = 0x10000, (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x04000000)
    assert filter_("clone", thread) == filter_("clone", thread | 0x3D0F00) == ALLOW
    for flags in (0, 0x11, 0x4000 | 0x100, *(thread | other for other in others)):
        assert filter_("clone", flags) == EPERM, flags
    assert filter_("tgkill", filter_.process) == ALLOW and filter_("tgkill", filter_.process ^ 1) == EPERM
    assert filter_("prlimit64", 0) == ALLOW and filter_("prlimit64", 1) == EPERM
    for family in range(50):
        assert filter_("socket", family) == (ALLOW if family == 1 else EPERM)
    for address in (1, 1 << 31, 1 << 32, 1 << 60):
        assert filter_("sendto", 5, 5, 5, 5, address) == EPERM
    assert filter_("sendto", 5, 5, 5, 5, 0, 5) == ALLOW
    for call, index, no in (
        ("prctl", 0, (1, 4)),
        ("fcntl", 1, (8, 10, 15)),
        ("ioctl", 1, (0x8901, 0x8902, 0x5412, 0x541C)),
    ):
        for value in {*range(100), *no, 0x8900, 0x8903, 0x5411, 0x541B}:
            arguments = [7] * index + [value]
            assert filter_(call, *arguments) == (EPERM if value in no else ALLOW), (call, value)


def test_a_compiler_cannot_reach_other_processes(asked: Callable[..., list[str]]) -> None:
    filter_ = made(asked, "compiler")
    refused = filter_.named(COMPILER_REACHES)
    for number in range(1000):
        assert filter_(number, 5, 5, 5, 5, 5, 5) == (EPERM if number in refused else ALLOW), number
    assert filter_("tgkill", filter_.process) == ALLOW  # raise() and abort()


def test_resource_limits_are_set(asked: Callable[..., list[str]]) -> None:
    no_rights = "capset 20080522 0 0 0 0 0 0 0"
    beginning = ["prctl 1 9", "prctl 4 0", "prctl 38 1 0 0 0", no_rights, f"limit {resource.RLIMIT_CORE} 0 0"]
    lines = [line for line in asked("limits", 3, 5, 7, 11, 13) if not line.startswith("name")]
    wanted = {
        resource.RLIMIT_AS: 3 << 20,
        resource.RLIMIT_CPU: 5,
        resource.RLIMIT_FSIZE: 7 << 20,
        resource.RLIMIT_NOFILE: 11,
        resource.RLIMIT_NPROC: 13,
    }
    assert lines == [*beginning, *(f"limit {kind} {most} {most}" for kind, most in wanted.items()), "gives 1"]
    lines = [line for line in asked("limits", 0, 0, 0, 0, 0) if not line.startswith("name")]
    assert lines == [*beginning, "gives 1"], "0 means no limit"


FIRST, TCP, SCOPE = 0x1FFF, 3, 3
RIGHTS = {1: FIRST, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF, 6: 0xFFFF, 7: 0xFFFF}
"""Landlock's file access rights, by ABI version.

Version 2 adds moving files between folders, version 3 truncation, and version 5 ioctl on devices.
"""


@pytest.mark.parametrize("version", RIGHTS)
def test_only_named_files_are_accessible(asked: Callable[..., list[str]], version: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "file"
    places = [3, 2, tmp_path, file, tmp_path / "missing", tmp_path, file, tmp_path]
    lines = [line for line in asked("files", version, *places) if not line.startswith("name")]
    rights = RIGHTS[version]
    size = 8 if version < 4 else 16 if version < 6 else 24
    of_files = rights & 0xC007
    assert lines == [
        f"ruleset {size} {rights:x} {TCP if version >= 4 else 0:x} {SCOPE if version >= 6 else 0:x} flags 0",
        f"rule 77 1 d flags 0 {tmp_path}",
        f"rule 77 1 5 flags 0 {file}",
        f"rule 77 1 {rights:x} flags 0 {tmp_path}",
        f"rule 77 1 {of_files:x} flags 0 {file}",
        "call 446 77",
        "left open 0",
        "gives 1",
    ]


def test_a_missing_or_failing_landlock_is_reported(asked: Callable[..., list[str]], tmp_path: Path) -> None:
    both = [1, 1, tmp_path, tmp_path]
    assert asked("files", 0, *both)[:2] == asked("files", -1, *both)[:2] == ["left open 0", "gives 0"]
    for failing in range(4):
        lines = [line for line in asked("files", 7, *both, failing=failing) if line[:4] != "name"]
        assert lines[-1] == "gives 0" and lines[-2] == "left open 0"
        assert ("call 446 77" in lines) is (failing == 3), "rights must not be restricted if a rule is missing"
