"""Checks for stores that g++ leaves uninstrumented, added to the x86-64 assembly that it writes.

g++ instruments expressions. It omits stores that arise later: the result of a call that returns a structure, copies
that it expands itself, and an index or an offset outside of a local array. Each store whose address is not fixed in the
function's own frame, or in a variable, is therefore preceded by a call of ``sim_store_<bytes>``
(``simulator/submission_sandbox/store_checks.cpp``), which preserves all registers, unless the call that checks the same
address comes before it.

g++ writes the instruction endbr64 at landing pads of exceptions, as at the beginning of functions. It is removed there:
indirect calls may lead to it (``simulator/submission_sandbox/indirect_calls.cpp``), and Linux does not require it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_LINE = re.compile(r"\t(?:(?P<prefix>rep\w*|lock)(?:;\s*|\s+))?(?P<name>[a-z]\w*)(?:\t(?P<operands>[^#\n]*))?")
_PLACE = re.compile(r"(?P<segment>%[fg]s:)?(?P<offset>[^(%$]*)(?:\((?P<base>%\w+)?(?:,(?P<index>%\w+)(?:,\d)?)?\))?")
_HOOK = re.compile(r"__tsan_(?:unaligned_|volatile_|unaligned_volatile_)?write(?P<bytes>\d+)(?:@PLT)?")
_REGISTER = re.compile(r"%\w+")
_COMMA = re.compile(r",(?![^(]*\))")
_ONLY_READS = re.compile(
    r"(cmp(?!xchg)|test|call|jmp|push|prefetch|i?div|i?mul|fld|fild|fi?(add|sub|mul|div|com)|bt[wlq]?$|nop|ldmxcsr)\w*"
)
_SETS_FLAGS = re.compile(r"(add|sub|cmp|test|and|or|xor|neg)[bwlq]|v?u?comis[sd]|call|ret|imul[wlq]")
_LEAVES_FLAGS = re.compile(
    r"mov|lea|cvt|(add|sub|mul|div|sqrt|max|min|and|or|xor|andn|unpck\w*|shuf)[ps][sd]|p[a-z]+|not|c[lqd]t|stos"
)
_STRINGS = re.compile(r"(stos|movs)(?P<size>[bwlq])$")
_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}
_WIDE = {
    "movss": 4,
    "movsd": 8,
    "movq": 8,
    "movd": 4,
    "movlps": 8,
    "movhps": 8,
    "movlpd": 8,
    "movhpd": 8,
    "cmpxchg16b": 16,
}
_NO_TARGETS = (".LBB", ".LBE", ".LVL", ".LFB", ".LFE", ".LM", ".Ltext", ".Letext")
"""Labels of debug information, which are not jump targets."""

_LONG = 200
"""The maximum length of a text that is cached, so that a submission cannot fill the memory."""

_GUARD = 4096
"""The bytes of the guard page below each stack."""

_NAMES = {
    part: f"%r{letters}"
    for letters, parts in {
        **{f"{x}x": (f"%r{x}x", f"%e{x}x", f"%{x}x", f"%{x}l", f"%{x}h") for x in "abcd"},
        **{x: (f"%r{x}", f"%e{x}", f"%{x}", f"%{x}l") for x in ("si", "di", "bp", "sp")},
        **{str(x): (f"%r{x}", f"%r{x}d", f"%r{x}w", f"%r{x}b") for x in range(8, 16)},
    }.items()
    for part in parts
}
_KEPT_BY_CALLS = {"%rbx", "%rbp", "%rsp", "%r12", "%r13", "%r14", "%r15"}


FUNCTION_ENDS, _DEBUGGING = "\n\t.size\t", "\t.section\t.debug_"


def checked_parts(parts: Iterable[str]) -> Iterator[str]:
    """Yield the result of ``with_checks`` for an assembly that arrives in parts, function by function."""
    text, code = "", True
    for part in parts:
        text += part
        last = text.rfind(FUNCTION_ENDS, max(0, len(text) - len(part) - len(FUNCTION_ENDS))) if code else -1
        end = text.find("\n", last + 1) + 1 if last >= 0 else 0
        if end:
            yield with_checks(text[:end])
            code = _DEBUGGING not in text[:end]
            text = text[end:]
    yield with_checks(text) if code else text


def with_checks(assembly: str) -> str:
    """Return the assembly with every store checked."""
    known: dict[str, int] = {}  # the addresses checked since the last label, and their sizes in bytes
    argument = ""  # the address that the next call gets
    label = ""
    lines = []
    code, debugging, rest = assembly.partition(_DEBUGGING)
    every = code.split("\n")
    for number, line in enumerate(every):
        found = None if line.startswith("\t.") else _instruction(line)
        if found is None:
            if _is_label(line):
                known, argument, label = {}, "", line
            lines.append(line)
            continue
        if found.name == "endbr64" and label.startswith(".L"):
            continue
        if found.string:
            lines += _range_check(found.string, found.repeated, _needs_flags(every, number))
        elif found.place and known.get(_normal(found.place), 0) < found.size:
            lines += _check(found.place, found.size, _needs_flags(every, number))
        lines.append(line)
        if found.name == "call":
            known = {where: size for where, size in known.items() if _registers(where) <= _KEPT_BY_CALLS}
            if _registers(argument) <= _KEPT_BY_CALLS:
                known[argument] = max(found.checked, known.get(argument, 0))
            argument = ""
            continue
        if known and found.changed:
            known = {where: size for where, size in known.items() if not _registers(where) & found.changed}
        if "%rdi" in found.changed or _registers(argument) & found.changed:
            argument = ""
        argument = found.argument or argument
    return "\n".join(lines) + debugging + rest


class _Instruction(NamedTuple):
    """The effect of a line of assembly on the checks."""

    name: str
    string: int  # bytes of each element that a string instruction writes; 0 for others
    repeated: bool
    place: str  # the address that it stores to, unless that is fixed; empty if it does not store
    size: int
    checked: int  # bytes of the store that the called function checks
    changed: frozenset[str]  # registers
    argument: str  # the address that it loads into the register of the first argument


def _instruction(line: str) -> _Instruction | None:
    """Return the instruction; None for a label, a directive or a comment."""
    return _kept(line) if len(line) < _LONG else _read(line)


def _read(line: str) -> _Instruction | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, operands = match["name"], _operands(match["operands"] or "")
    last = operands[-1] if operands else ""
    strings = None if operands else _STRINGS.match(name)
    place = ""
    if ("(" in last and not _ONLY_READS.match(name)) or name.startswith("xchg"):
        place = next((operand for operand in reversed(operands) if "(" in operand), "")
    hook = _HOOK.fullmatch(last) if name == "call" else None
    argument = ""
    if last == "%rdi" and name == "movq" and operands[0] in _NAMES:
        argument = f"({operands[0]})"
    elif last == "%rdi" and name == "leaq" and len(operands[0]) < _LONG:
        argument = _normal(operands[0])
    return _Instruction(
        name,
        _SIZES[strings["size"]] if strings else 0,
        bool(match["prefix"]),
        "" if _is_fixed(place) else place,
        _size(name, operands),
        int(hook["bytes"]) if hook else 0,
        frozenset(_NAMES[operand] for operand in (operands if name.startswith("x") else (last,)) if operand in _NAMES),
        argument,
    )


_kept = functools.lru_cache(maxsize=65536)(_read)  # most lines of a kernel occur more than once


def _is_label(line: str) -> bool:
    """Return whether a line that is not an instruction may be a jump target."""
    return bool(line) and line[0] not in "\t#" and not line.startswith(_NO_TARGETS)


def _operands(text: str) -> tuple[str, ...]:
    """Split the operands of an instruction at the commas outside of brackets."""
    return tuple(part.strip() for part in _COMMA.split(text)) if text.strip() else ()


@functools.lru_cache(maxsize=4096)
def _registers(place: str) -> frozenset[str]:
    return frozenset(_NAMES.get(register, register) for register in _REGISTER.findall(place))


def _normal(place: str) -> str:
    return place.removeprefix("0") if place.startswith("0(") else place


def _size(name: str, operands: tuple[str, ...]) -> int:
    """Return the maximum size of a store in bytes."""
    if name in _WIDE:
        return _WIDE[name]
    if name.startswith("set"):
        return 1
    if "%xmm" in "".join(operands) or name.startswith("f"):
        return 16
    return _SIZES.get(name[-1], 16)


def _is_fixed(place: str) -> bool:
    """Return whether an address is a fixed place in a variable or in the function's own frame."""
    match = _PLACE.fullmatch(place)
    if match is None:
        return False
    if match["segment"] or match["index"]:
        return False
    if match["base"] == "%rip":
        return True
    try:
        offset = int(match["offset"] or "0", 0)
    except ValueError:
        return False
    return -_GUARD <= offset < 0 if match["base"] == "%rbp" else match["base"] == "%rsp" and 0 <= offset < 128


def _needs_flags(lines: list[str], number: int) -> bool:
    """Return whether code after a line may read the flags that are set before it."""
    for line in lines[number : number + 40]:
        found = None if line.startswith("\t.") else _instruction(line)
        if found is None:
            if _is_label(line):
                return True
            continue
        if _SETS_FLAGS.fullmatch(found.name):
            return False
        if not _LEAVES_FLAGS.match(found.name):
            return True
    return True


def _check(place: str, size: int, flags: bool) -> list[str]:
    if "%rsp" in place:  # deeper by then
        place = f"{16 if flags else 8}+{place}"
    check = ["\tpushq\t%r11", f"\tleaq\t{place}, %r11", f"\tcall\tsim_store_{size}@PLT", "\tpopq\t%r11"]
    return _keeping(check, flags)


def _keeping(check: list[str], flags: bool) -> list[str]:
    return ["\tpushfq", *check, "\tpopfq"] if flags else check


def _range_check(size: int, repeated: bool, flags: bool) -> list[str]:
    count = f"leaq\t(,%rcx,{size}), %r10" if repeated else f"movl\t${size}, %r10d"
    saved = ["\tpushq\t%r11", "\tpushq\t%r10", "\tmovq\t%rdi, %r11", f"\t{count}"]
    return _keeping([*saved, "\tcall\tsim_store_range@PLT", "\tpopq\t%r10", "\tpopq\t%r11"], flags)
