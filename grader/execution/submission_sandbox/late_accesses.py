"""Adds checks to g++'s x86-64 assembly, for memory accesses that g++ does not instrument.

g++ inserts its hooks (calls of ``__tsan_read4`` and the like) before it generates some accesses: arguments and results
that are structures, copies that it expands itself, and accesses beyond the end of a local array. This pass therefore
inserts a check before each access: a call of ``sim_load_<bytes>`` or ``sim_store_<bytes>``
(``simulator/submission_sandbox/late_accesses.cpp``). It omits the check in two cases: an earlier hook or check has the
same address, or the address is known to be harmless (a fixed place in the function's own frame, or a constant of the
compiler). The called functions preserve all registers, and do nothing for an access that the last hook has reported.

It also fills each large frame with a pattern when a function allocates it. A frame would otherwise show what another
thread left on the same stack: data could pass from block to block without counted traffic.

g++ writes the instruction endbr64 not only at the beginning of functions, but also where it catches exceptions. It is
removed there, because an indirect call may jump to any endbr64 (``simulator/submission_sandbox/indirect_calls.cpp``).
Linux does not require it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_LINE = re.compile(r"\t(?:(?P<prefix>rep\w*|lock)(?:;\s*|\s+))?(?P<name>[a-z]\w*)(?:\t(?P<operands>[^#\n]*))?")
_PLACE = re.compile(
    r"\*?(?P<segment>%[fg]s:)?(?P<offset>[^(%$]*)(?:\((?P<base>%\w+)?(?:,(?P<index>%\w+)(?:,(?P<scale>\d))?)?\))?"
)
_HOOK = re.compile(r"__tsan_(?:unaligned_|volatile_|unaligned_volatile_)?(?P<kind>read|write)(?P<bytes>\d+)(?:@PLT)?")
_OTHER_HOOK = re.compile(r"__tsan_(?:(?P<range>read|write)_range|vptr_(?P<vptr>read|update))(?:@PLT)?")
_SLOT = re.compile(r"(-[1-9]\d{0,3})\(%rbp\)")
_ALLOCATES = re.compile(r"\tsubq\t(?:\$(?P<bytes>\d+)|(?P<register>%r\w+)), %rsp")
_LARGE_FRAME = 128
"""The size in bytes from which a frame is filled. Filling takes about 10 ns."""
_COMMA = re.compile(r",(?![^(]*\))")
_ONLY_READS = re.compile(
    r"(cmp(?!xchg)|test|call|jmp|push|i?div|i?mul|fld|fild|fi?(add|sub|mul|div|com)|bt[wlq]?$|ldmxcsr)\w*"
)
_ONLY_WRITES = re.compile(r"v?mov\w*|set\w+|fn?st\w*|fist\w*|stmxcsr|pop\w*|cvt\w*|pextr\w*|extractps")
_NO_ACCESS = re.compile(r"(lea|nop|prefetch)\w*")
_SETS_FLAGS = re.compile(r"(add|sub|cmp|test|and|or|xor|neg)[bwlq]|v?u?comis[sd]|call|ret|imul[wlq]")
_LEAVES_FLAGS = re.compile(
    r"mov|lea|cvt|(add|sub|mul|div|sqrt|max|min|and|or|xor|andn|unpck\w*|shuf)[ps][sd]|p[a-z]+|not|c[lqd]t|stos"
)
_STRINGS = re.compile(r"(?P<name>stos|movs|lods|scas|cmps)(?P<size>[bwlq])$")
_EXTENDS = re.compile(r"mov[sz](?P<size>[bwl])[wlq]?")
_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}
_X87_SIZES = {"s": 4, "l": 8, "t": 10, "w": 2}
_X87_INTEGER_SIZES = {"s": 2, "l": 4, "q": 8, "ll": 8}
_WIDE = {
    **dict.fromkeys(("movlps", "movhps", "movlpd", "movhpd", "movddup", "cvtps2pd", "cvtdq2pd", "movq"), 8),
    **dict.fromkeys(("call", "jmp"), 8),
    **dict.fromkeys(("movd", "pinsrd", "pextrd", "extractps"), 4),
    **dict.fromkeys(("pinsrw", "pextrw", "fldcw", "fnstcw", "fnstsw"), 2),
    **dict.fromkeys(("pinsrb", "pextrb"), 1),
    **dict.fromkeys(("stmxcsr", "ldmxcsr"), 4),
    "cmpxchg16b": 16,
}
_NO_TARGETS = (".LBB", ".LBE", ".LVL", ".LFB", ".LFE", ".LM", ".Ltext", ".Letext")
"""Labels of debug information, which are not jump targets."""

_OF_SIMULATOR = re.compile(r"_ZN3sim10LocalArray\w+|_ZZN3sim\w+|grader_call_\w+")
"""Functions of the simulator's headers, which are not checked. Submissions cannot define functions with such names."""

_LONG = 200
"""The maximum length of a line whose analysis is cached, so that a submission cannot fill the memory."""

_GUARD = 4096
"""The size of the guard page below each stack, in bytes."""

_REGISTERS = {
    part: (f"%r{letters}", size)
    for letters, parts in {
        **{f"{x}x": {f"%r{x}x": 8, f"%e{x}x": 4, f"%{x}x": 2, f"%{x}l": 1, f"%{x}h": 1} for x in "abcd"},
        **{x: {f"%r{x}": 8, f"%e{x}": 4, f"%{x}": 2, f"%{x}l": 1} for x in ("si", "di", "bp", "sp")},
        **{str(x): {f"%r{x}": 8, f"%r{x}d": 4, f"%r{x}w": 2, f"%r{x}b": 1} for x in range(8, 16)},
    }.items()
    for part, size in parts.items()
}
"""The 8-byte register that contains a register, and the register's size in bytes, by its name (``%eax``)."""

_IMPLICIT = re.compile(r"(i?mul|i?div)[bwlq]|cmpxchg\w*")
"""Instructions that change %rax and %rdx without naming them. mul and div do so only if they have one operand."""

_CHANGED_BY_CALLS = ("%rax", "%rcx", "%rdx", "%rsi", "%rdi", "%r8", "%r9", "%r10", "%r11")

FUNCTION_ENDS, _DEBUGGING = "\n\t.size\t", "\t.section\t.debug_"


def checked_parts(parts: Iterable[str]) -> Iterator[str]:
    """Apply ``with_checks`` to an assembly that arrives in parts. Yield each function when it is complete."""
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
    """Return the assembly with a check before each access that needs one."""
    known = _Known()
    label, own = "", False
    lines = []
    code, debugging, rest = assembly.partition(_DEBUGGING)
    every = code.split("\n")
    for number, line in enumerate(every):
        found = None if line.startswith("\t.") else _instruction(line)
        if found is None:
            if _is_label(line):
                known.forget()
                label = line
                if not line.startswith(".L"):
                    own = bool(_OF_SIMULATOR.fullmatch(line[:-1]))
            lines.append(line)
            continue
        if found.name == "endbr64" and label.startswith(".L"):
            continue
        if not own:
            for access in found.accesses:
                if not known.covers(access):
                    lines += _check(access, _needs_flags(every, number))
        lines.append(line)
        if not own and found.name == "subq":
            lines += _fill(line)
        known.note(found)
    return "\n".join(lines) + debugging + rest


class _Place(NamedTuple):
    """The address of an operand in memory."""

    text: str
    base: str  # a register, or empty
    index_register: str
    scale: str
    offset: int | None  # None if it is not a number
    segment: bool


class _Access(NamedTuple):
    """An access to memory by an instruction."""

    write: bool
    size: int  # bytes of the access, or of each element for a string instruction such as movsb
    place: _Place | None  # None for a string instruction
    pointer: str = ""  # the register with the address, for a string instruction
    repeated: bool = False


class _Instruction(NamedTuple):
    """An instruction, as far as the checks depend on it."""

    name: str
    accesses: tuple[_Access, ...]
    hook: tuple[bool, int] | None  # for a call of a hook: is it for a write, and its bytes (0: see its 2nd argument)
    changed: frozenset[str]  # the registers that the instruction changes
    sets: str  # the register that receives a known value, which is in `copies` or `address`
    copies: str  # the source of the value: a register, a number as "$24", or a place in the frame as "-24"
    address: _Place | None  # the value if it is an address, as from lea
    spills: str  # the register that the instruction stores in the frame
    slot: int  # the offset in the frame where it is stored


class _Known:
    """The known values of registers, and the addresses that were checked, since the last label.

    A value is a pair (name, distance). The name stands for an unknown number: ("%rdi.1", 8) is the number "%rdi.1" + 8.
    """

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, int]] = {}
        self._checked: dict[tuple[bool, str], list[tuple[int, int]]] = {}
        self._slots: dict[int, tuple[str, int]] = {}  # values in the frame, by offset: spilled registers
        self._count = 0

    def forget(self) -> None:
        """Forget what is known about registers and the frame: at a label, a jump may arrive with other values."""
        self._values.clear()
        self._checked.clear()
        self._slots.clear()

    def covers(self, access: _Access) -> bool:
        """Return whether an access needs no check. If it needs one, record that its address is checked from now on."""
        place = access.place
        if place is None:
            return False
        if place.segment and not access.write:
            return True  # thread-local variables
        if _is_fixed(place, access.write):
            return True
        root, start = self._address(place)
        if root == "%rbp" and -_GUARD <= start < 0:
            return True
        end = start + access.size
        checked = self._checked.setdefault((access.write, root), [])
        if any(begin <= start and end <= last for begin, last in checked):
            return True
        checked.append((start, end))
        return False

    def note(self, found: _Instruction) -> None:
        """Record how an instruction changes the known values and the checked addresses."""
        if found.name == "call":
            if found.hook:
                write, size = found.hook
                root, start = self._value("%rdi")
                kind, number = self._value("%rsi")
                size = size or (number if kind == "$" else 0)
                self._checked.setdefault((write, root), []).append((start, start + size))
            else:
                self._slots.clear()  # the function may write to this frame
            for register in _CHANGED_BY_CALLS:
                self._values.pop(register, None)
            return
        value = None
        if found.address:
            value = self._address(found.address)
        elif found.copies.startswith("$"):
            value = ("$", int(found.copies[1:]))
        elif found.copies.startswith("-"):
            value = self._slots.setdefault(int(found.copies), self._fresh(found.copies))
        elif found.copies:
            value = self._value(found.copies)
        elif found.spills:
            value = self._value(found.spills)
        for access in found.accesses:
            if access.write:
                self._overwrite(access)
        if value and found.spills:
            self._slots[found.slot] = value
            return
        for register in found.changed:
            self._values.pop(register, None)
        if value:
            self._values[found.sets] = value

    def _overwrite(self, access: _Access) -> None:
        """Forget the values in the frame that a store may change."""
        place = access.place
        if place is None or place.base != "%rbp" or place.index_register or place.segment or place.offset is None:
            self._slots.clear()
            return
        begin, end = place.offset, place.offset + access.size
        for slot in [slot for slot in self._slots if slot < end and begin < slot + 8]:
            del self._slots[slot]

    def _fresh(self, name: str) -> tuple[str, int]:
        self._count += 1
        return f"{name}.{self._count}", 0

    def _value(self, register: str) -> tuple[str, int]:
        if register == "%rbp":
            return register, 0
        if register not in self._values:
            self._values[register] = self._fresh(register)
        return self._values[register]

    def _address(self, place: _Place) -> tuple[str, int]:
        """Return the value of an address: a name for an unknown number, and the distance from it in bytes."""
        root, start = self._value(place.base) if place.base else ("", 0)
        if place.index_register:
            index, more = self._value(place.index_register)
            root += f"+{index}*{place.scale or 1}"
            start += more * int(place.scale or 1)
        if place.offset is None:
            return f"{root}+{place.text}", start
        return root, start + place.offset


def _instruction(line: str) -> _Instruction | None:
    """Parse the instruction in a line; return None for a label, a directive or a comment."""
    return _kept(line) if len(line) < _LONG else _read(line)


def _read(line: str) -> _Instruction | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, operands = match["name"], _operands(match["operands"] or "")
    last = operands[-1] if operands else ""
    hook = None
    if name == "call" and (plain := _HOOK.fullmatch(last)):
        hook = (plain["kind"] == "write", int(plain["bytes"]))
    elif name == "call" and (other := _OTHER_HOOK.fullmatch(last)):
        hook = ("write" in (other["range"], "") or other["vptr"] == "update", 8 if other["vptr"] else 0)
    sets, copies, address, spills, slot = "", "", None, "", 0
    if last in _REGISTERS and len(operands) == 2:
        whole, size = _REGISTERS[last]
        first = operands[0]
        if name == "movq" and size == 8 and _REGISTERS.get(first, ("", 0))[1] == 8:
            sets, copies = whole, first
        elif name == "leaq":
            sets, address = whole, _place(first)
        elif name == "movq" and size == 8 and (found := _SLOT.fullmatch(first)):
            sets, copies = whole, found[1]
        elif name in ("movl", "movq") and re.fullmatch(r"\$\d+", first):
            sets, copies = whole, first
        elif name == "addq" and re.fullmatch(r"\$-?\d+", first):
            sets, address = whole, _Place(first, whole, "", "", int(first[1:]), False)
    elif name == "movq" and operands and (found := _SLOT.fullmatch(last)) and operands[0] in _REGISTERS:
        spills, slot = operands[0], int(found[1])
    changed = {_REGISTERS[operand][0] for operand in (operands if name[0] == "x" else (last,)) if operand in _REGISTERS}
    if not operands:
        changed.update(("%rax", "%rcx", "%rdx", "%rsi", "%rdi"))
    elif _IMPLICIT.fullmatch(name) and (len(operands) == 1 or name.startswith("cmpxchg")):
        changed.update(("%rax", "%rdx"))
    return _Instruction(
        name,
        tuple(_accesses(name, match["prefix"] or "", operands)),
        hook,
        frozenset(changed),
        sets,
        copies,
        address,
        spills,
        slot,
    )


_kept = functools.lru_cache(maxsize=65536)(_read)  # most lines of a kernel occur more than once


def _accesses(name: str, prefix: str, operands: tuple[str, ...]) -> Iterator[_Access]:
    """Yield an instruction's accesses to memory."""
    strings = None if operands else _STRINGS.match(name)
    if strings:
        size = _SIZES[strings["size"]]
        for write, pointer, names in (
            (False, "%rsi", ("movs", "lods", "cmps")),
            (False, "%rdi", ("scas", "cmps")),
            (True, "%rdi", ("stos", "movs")),
        ):
            if strings["name"] in names:
                yield _Access(write, size, None, pointer, prefix.startswith("rep"))
        return
    # %st(1) is a register, unlike the place (%rdi)
    text = next((operand for operand in reversed(operands) if "(" in operand and not operand.startswith("%st")), "")
    if not text or _NO_ACCESS.match(name):
        return
    place, size = _place(text), _size(name, operands)
    exchanges = name.startswith("xchg")
    writes = exchanges or (operands[-1] == text and not _ONLY_READS.match(name))
    if exchanges or not (writes and _ONLY_WRITES.match(name)):
        yield _Access(False, size, place)
    if writes:
        yield _Access(True, size, place)


def _is_label(line: str) -> bool:
    """Return whether a line that is not an instruction may be a jump target."""
    return bool(line) and line[0] not in "\t#" and not line.startswith(_NO_TARGETS)


def _operands(text: str) -> tuple[str, ...]:
    """Split the operands of an instruction at the commas outside of brackets."""
    return tuple(part.strip() for part in _COMMA.split(text)) if text.strip() else ()


def _place(text: str) -> _Place:
    match = _PLACE.fullmatch(text)
    if match is None:
        return _Place(text, "", "", "", None, True)
    try:
        offset: int | None = int(match["offset"] or "0", 0)
    except ValueError:
        offset = None
    names = match["base"] or "", match["index"] or ""
    return _Place(text.removeprefix("*"), *names, match["scale"] or "", offset, bool(match["segment"]))


def _size(name: str, operands: tuple[str, ...]) -> int:
    """Return the number of bytes that an instruction accesses in memory; 1 for an unknown instruction."""
    if (extends := _EXTENDS.fullmatch(name)) and len(operands) == 2 and operands[1] in _REGISTERS:
        return _SIZES[extends["size"]]
    if name in _WIDE:
        return _WIDE[name]
    if name.startswith("set"):
        return 1
    if name.startswith("f"):
        integer = name.startswith("fi")
        letters = name[-2:] if integer and name.endswith("ll") else name[-1]
        return (_X87_INTEGER_SIZES if integer else _X87_SIZES).get(letters, 1)
    if any(operand.startswith("%xmm") for operand in operands) or name.startswith("cvt"):
        if re.fullmatch(r"cvtt?s[sd]2si[lq]?", name):
            return 4 if "ss2" in name else 8
        if name.startswith("cvtsi2"):
            return _SIZES.get(name[-1], 4)
        if name.startswith(("cvtss", "movss")) or name.endswith("ss"):
            return 4
        return 8 if name.startswith(("cvtsd", "movsd")) or name.endswith("sd") else 16
    registers = [_REGISTERS[operand][1] for operand in operands if operand in _REGISTERS and operand != "%cl"]
    return registers[-1] if registers else _SIZES.get(name[-1], 1)


def _is_fixed(place: _Place, write: bool) -> bool:
    """Return whether an access is certainly to a fixed place in the function's own frame, or to a constant."""
    if place.index_register or place.segment:
        return False
    if place.base == "%rip":
        return place.text.startswith(".L") or "@" in place.text
    if place.offset is None:
        return False
    if place.base == "%rsp":
        return 0 <= place.offset < 128
    # A function's arguments are above its frame. Reads of them count as fixed. Writes there do not, because they could
    # overwrite the return address.
    return place.base == "%rbp" and -_GUARD <= place.offset < (0 if write else _GUARD)


def _needs_flags(lines: list[str], number: int) -> bool:
    """Return whether code from a line on may read the processor's flags, so that a check must preserve them."""
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


def _fill(line: str) -> list[str]:
    """Return the instructions that fill what a line allocates on the stack; none for other lines and small frames."""
    match = _ALLOCATES.match(line)
    if match is None or int(match["bytes"] or _LARGE_FRAME) < _LARGE_FRAME:
        return []
    words = [f"\tmovl\t${int(match['bytes']) // 8}, %ecx"] if match["bytes"] else []
    words = words or [f"\tmovq\t{match['register']}, %rcx", "\tshrq\t$3, %rcx"]
    saved = ("%rcx", "%rdi", "%rax")
    pattern = ["\tleaq\t24(%rsp), %rdi", "\tmovq\t$-1, %rax", "\trep stosq"]
    saves = [f"\tpushq\t{register}" for register in saved]
    restores = [f"\tpopq\t{register}" for register in reversed(saved)]
    return [*saves, *words, *pattern, *restores]


def _check(access: _Access, flags: bool) -> list[str]:
    kind = "store" if access.write else "load"
    if access.place is None:
        count = f"leaq\t(,%rcx,{access.size}), %r10" if access.repeated else f"movl\t${access.size}, %r10d"
        saved = ["\tpushq\t%r11", "\tpushq\t%r10", f"\tmovq\t{access.pointer}, %r11", f"\t{count}"]
        check = [*saved, f"\tcall\tsim_{kind}_range@PLT", "\tpopq\t%r10", "\tpopq\t%r11"]
    else:
        place = access.place.text
        if "%rsp" in place:  # pushq and pushfq have moved %rsp
            place = f"{16 if flags else 8}+{place}"
        check = ["\tpushq\t%r11", f"\tleaq\t{place}, %r11", f"\tcall\tsim_{kind}_{access.size}@PLT", "\tpopq\t%r11"]
        if not access.write and access.place.base != "%rip":
            # Most reads that get here are of the function's own frame: skip the call if the address is in the frame.
            check[2:3] = ["\tcmpq\t%rsp, %r11", "\tjb\t7f", "\tcmpq\t%rbp, %r11", "\tjb\t8f", f"7:{check[2]}", "8:"]
    return ["\tpushfq", *check, "\tpopfq"] if flags else check
