"""What a kernel's library asks other libraries for, and what of it no kernel has business with.

The simulator's checks live in the same process as the kernel. Calling their switches, or the functions that change
memory protection, find symbols, take over signals, or use files by number (the report goes through one), is how a kernel
would get at them; the linker leaves a list of all that a library calls. This stops what is written plainly. Native code
that computes addresses is not stopped by it.
"""

from __future__ import annotations

import functools
import re
import struct
from pathlib import Path

from grader.simulator import hooks

_REFUSED = re.compile(
    r"""sim_(configure|program_starts|expect_output|report|reset|take_output|tensor_\w+|writer)
    | dl(open|mopen|sym|vsym|addr1?|info|_iterate_phdr) | __libc_dl\w+ | _dl_\w+ | _r_debug | _rtld_global\w*
    | mmap(64)? | mprotect | mremap | munmap | madvise | pkey_\w+ | memfd_create | shm_open
    | syscall | prctl | ptrace | process_vm_\w+ | setrlimit(64)? | prlimit(64)?
    | v?fork | clone | exec[lv]\w* | system | popen | posix_spawn\w* | pthread_create | thrd_create | _ZNSt6thread\w+ | kill | killpg | tgkill
    | socket(pair)? | connect | bind | listen | accept4? | send(to|msg|mmsg)? | recv(from|msg|mmsg)?
    | sigaction | sigprocmask | pthread_sigmask | signal | sigaltstack | timer_\w+ | setitimer | alarm
    | bsd_signal | ssignal | sysv_signal | sig(set|vec|hold|ignore|relse|block|setmask|interrupt)
    | backtrace\w* | _Unwind_(Backtrace|Find\w+) | getauxval
    | remap_file_pages | shm(at|dt|get|ctl) | process_m\w+ | s?brk
    | swapcontext | setcontext | makecontext
    | p?(read|write)v?(64)?(v2)? | v?dprintf | dup[23]? | close(_range)? | closefrom | fcntl(64)? | ioctl | fdopen | freopen(64)?
    | open(at)?(64)? | f?truncate(64)? | l?lseek(64)? | sendfile(64)? | splice | vmsplice | tee | copy_file_range | pipe2?
    | _ZNSt12__basic_file\w+ | _?IO_(list|file|do)_\w+
    | _?environ | __environ""",
    re.VERBOSE,
)

_OTHER_NAME = re.compile(r"_*(IO_(?!list|file|do)|libc_)?(?P<name>\w+?)(_nocancel|_chk|_2)?")
"""libc has second names for many of its functions: __write is write, __open64_2 is open64."""

# Kinds of tables and of symbols, as the ELF format numbers them.
_ALL, _DYNAMIC = 2, 11
_NO_TYPE, _OBJECT, _FUNCTION = 0, 1, 2
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def refused(library: Path, libsim: Path) -> list[str]:
    """The names that a kernel must not use or define; "?" stands for a library whose list cannot be read."""
    try:
        content = library.read_bytes()
        used = {name for name in symbols(content, _DYNAMIC, defined=False) if is_refused(name)}
        # A function of its own in place of one of the simulator's: the checks would never be called.
        used |= symbols(content, _ALL, defined=True) & _exported(libsim)
    except (ValueError, IndexError, struct.error, OSError):
        return ["?"]
    return sorted(used)


def is_refused(name: str) -> bool:
    """Whether a name, or the one that it stands for, is of those that a kernel must not use."""
    other = _OTHER_NAME.fullmatch(name)
    return bool(_REFUSED.fullmatch(name) or (other and _REFUSED.fullmatch(other["name"])))


@functools.cache
def _exported(libsim: Path) -> set[str]:
    """What a kernel takes from the simulator, by the symbols and by the names that compilers call."""
    return symbols(libsim.read_bytes(), _DYNAMIC, defined=True) | set(hooks.INSERTED)


def symbols(content: bytes, table: int, defined: bool) -> set[str]:
    """The symbols that a 64-bit ELF library defines, or leaves to others."""
    if content[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (place,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    sections = [_SECTION.unpack_from(content, place + size * i) for i in range(count)]
    if not any(section[1] == table for section in sections):
        raise ValueError("no list of symbols")
    names = set()
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind != table:
            continue
        texts = sections[link][4]
        for entry in range(start, start + length, _SYMBOL.size):
            name, information, _, section, _, _ = _SYMBOL.unpack_from(content, entry)
            if name and (section != 0) == defined and information & 15 in (_NO_TYPE, _OBJECT, _FUNCTION):
                end = content.index(b"\0", texts + name)
                names.add(content[texts + name : end].decode("ascii", errors="replace"))
    return names
