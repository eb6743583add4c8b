"""An allowlist of the symbols that a kernel's library may import from other libraries.

The simulator's checks see each memory access of the kernel's own code, because that code is instrumented. Other
libraries are not instrumented. A kernel may therefore call a function of another library only if the function does not
access memory through pointers, or if the simulator wraps it (``hooks.LIBRARY``). The symbol table of a library lists
all functions that it imports.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Set
from pathlib import Path

from grader.simulator import hooks

_ALLOWED = re.compile(
    r"""_ZNK?3sim\w+ | sim_(cuda[A-Z]\w+ | cu[A-Z]\w+ | printf | malloc | free | clock | trap | __assert_fail)
    | __wrap_\w+
    # mathematics
    | (a?(cos|sin|tan)h? | atan2 | cbrt | ceil | copysign | erfc? | exp(2|10|m1)? | fabs | fdim | floor | fma | fmax
      | fmin
       | fmod | hypot | ilogb | j[01n] | ldexp | [lt]gamma | log(2|10|1p|b)? | l?lrint | l?lround | nearbyint
      | nextafter
       | nexttoward | pow | remainder | rint | round(even)? | scalbl?n | sqrt | trunc | y[01n])[fl]?
    # libgcc: arithmetic without an instruction
    | __(u?div | u?mod | mul | ashl | ashr | lshr | popcount | clz | ctz | ffs | parity | bswap | powi | float(un)?
         | fix(uns)? | extend | trunc | add | sub | neg | eq | ne | lt | le | gt | ge | unord)(?!mod)([sdtxqh][ifc]
      |bf){1,2}[2-4]?
    # C++ runtime: exceptions, and static initialization
    | __gxx_personality_v0 | _Unwind_Resume | __cxa_(begin_catch | end_catch | throw | rethrow | free_exception
      | guard_\w+ | atexit | finalize | pure_virtual | throw_bad_array_new_length) | _ZSt9terminatev
      | _ZSt\d+__throw_\w+
    | _ZT[IS]\w+ | _ZTVN10__cxxabiv\w+ | _ZNSt9exceptionD[012]Ev | _ZNKSt9exception4whatEv | _ZTVSt9exception
    | _ZNSt6chrono3_V21\d(steady|system)_clock3nowEv
    # C: functions without pointers, and functions that end the process
    | abs | labs | llabs | putchar | s?rand | exit | abort | _exit | _Exit | quick_exit | stdout | stderr
      | __errno_location | __tls_get_addr
    # added by linkers
    | sim_(load|store)_\w+ | __gmon_start__ | __x86_indirect_thunk_\w+ | __llvm_external_retpoline_r11 | _ITM_\w+
    | __clang_call_terminate""",
    re.VERBOSE,
)

_OF_STD = re.compile(r"_ZNK?St(?:7__cxx11)?(?P<length>\d+)(?P<rest>\w+)")

# Numbers of the ELF format for kinds of sections and symbols.
_ALL, _DYNAMIC = 2, 11
_EXECUTABLE = 4
_OF_THE_PROGRAM = 1
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_NO_TYPE, _OBJECT, _FUNCTION, _THREAD_LOCAL, _INDIRECT = 0, 1, 2, 6, 10
_EVERY = (_NO_TYPE, _OBJECT, _FUNCTION, _THREAD_LOCAL, _INDIRECT)
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def refused(library: Path, libsim: Path) -> list[str]:
    """Return the names in a library that a kernel must not use or define; ["?"] if its symbols cannot be read."""
    try:
        return refused_of(library.read_bytes(), exported(libsim) | set(hooks.INSERTED))
    except (OSError, ValueError):
        return ["?"]


def refused_of(content: bytes, exported: Set[str]) -> list[str]:
    """Return the forbidden names in a library's bytes; ``exported`` are the symbols that libsim exports."""
    try:
        used = {shown(name) for name in symbols(content, _DYNAMIC, defined=False) if not is_allowed(name)}
        # A kernel that defines a function of the simulator would replace the checks.
        used |= symbols(content, _ALL, defined=True) & exported
        # Refuse ifuncs, which run code while the library is loaded, and data objects in code sections, because they
        # could be executed as code without checks.
        used |= symbols(content, _ALL, defined=True, kinds=(_INDIRECT,))
        used |= symbols(content, _ALL, defined=True, kinds=(_OBJECT,), executable=True)
    except (ValueError, IndexError, OverflowError, struct.error):
        return ["?"]
    return sorted(used)


def entries_in_constants(content: bytes) -> bool:
    """Return whether a library's code has the bytes of the instruction endbr64 inside a function.

    Indirect calls may jump to any endbr64. A constant in the code with these bytes would be such a jump target.
    """
    sections = _sections(content)
    (texts,) = struct.unpack_from("<H", content, 62)
    begins = set()
    for section in sections:
        if section[1] == _ALL:
            for entry in range(section[4], section[4] + section[5], _SYMBOL.size):
                begins.add(_SYMBOL.unpack_from(content, entry)[4])
    for name, kind, flags, address, start, length, *_ in sections:
        called = content[sections[texts][4] + name :].startswith(b".plt")  # the linker writes these sections
        if kind != _OF_THE_PROGRAM or not flags & _EXECUTABLE or called:
            continue
        code = content[start : start + length]
        if any(address + match.start() not in begins for match in re.finditer(re.escape(_ENDBR64), code)):
            return True
    return False


def is_allowed(name: str) -> bool:
    """Return whether a kernel may import this symbol."""
    return bool(_ALLOWED.fullmatch(name))


def shown(name: str) -> str:
    """Return a name for messages: a function of the C++ library is shown as ``std::name``."""
    match = _OF_STD.fullmatch(name)
    return f"std::{match['rest'][: int(match['length'])]}" if match else name


@functools.cache
def exported(library: Path) -> Set[str]:
    """Return the symbols that a library exports."""
    return symbols(library.read_bytes(), _DYNAMIC, defined=True)


def _sections(content: bytes) -> list[tuple[int, ...]]:
    """Return the headers of a library's sections."""
    (place,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    return [_SECTION.unpack_from(content, place + size * i) for i in range(count)]


def symbols(
    content: bytes, table: int, defined: bool, kinds: tuple[int, ...] = _EVERY, executable: bool = False
) -> set[str]:
    """Return symbols of the given kinds that a 64-bit ELF library defines, or imports if ``defined`` is false.

    With ``executable``, return only symbols in code sections.
    """
    if content[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    sections = _sections(content)
    if not any(section[1] == table for section in sections):
        raise ValueError("no symbol table")
    # Tables and names that do not overlap have at most as many bytes as the file. Refuse a file if more are read.
    names, left = set(), len(content)
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind != table:
            continue
        texts, left = sections[link][4], left - length
        if left < 0:
            raise ValueError("overlapping tables")
        for entry in range(start, start + length, _SYMBOL.size):
            name, information, _, section, _, _ = _SYMBOL.unpack_from(content, entry)
            if executable and not (section < len(sections) and sections[section][2] & _EXECUTABLE):
                continue
            if name and (section != 0) == defined and information & 15 in kinds:
                end = content.index(b"\0", texts + name)
                left -= end - texts - name
                if left < 0:
                    raise ValueError("overlapping names")
                names.add(content[texts + name : end].decode("ascii", errors="replace"))
    return names
