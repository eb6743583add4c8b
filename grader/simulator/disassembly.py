"""The floating-point operations of each basic block in a kernel library.

At run time the library counts the executions of each basic block. The operations of a block are read from its
instructions. A basic block is identified by the return address of its call of ``__sanitizer_cov_trace_pc``. An
instruction belongs to the call in its own basic block or, if that block has no call, to the last call on the path to
the instruction.

- Additions, subtractions, multiplications, divisions and square roots of floats and doubles are counted. A packed
  instruction counts once for each element, a fused multiply-add twice.
- Conversions between integers and floating-point numbers have a count of their own (a GPU's I2F and F2I).
- Minimum, maximum, comparisons, conversions between float and half, sign changes and absolute values are not counted,
  because a GPU uses no FADD, FMUL or FFMA for them.
- A call of a library function counts as one special function. The instructions inside the function are not counted.
- Operations on 16-bit types are emulated by several instructions, which are not counted. A call marks each operation
  (each half of a pair) instead: ``SIM_COUNTS`` in ``sim/small_float.h``.
- Operations on tensor cores are counted by the runtime in every build: ``tensor_operations``.

The code is that for the simulator's processor. If that compiler computes more or less than nvcc - both sides of a short
branch, or an operation on constants - the counts follow it.
"""

from __future__ import annotations

import functools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from grader.setup.errors import GraderError
from grader.simulator import hooks
from grader.simulator.tools import read_with

_TRACE = hooks.wrapped("__sanitizer_cov_trace_pc")
_ROW = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
_X86 = re.compile(r"^v?(?:add|sub|mul|div|sqrt)([sp])([sd])$")
_X86_FUSED = re.compile(r"^vfn?m(?:add|sub)(?:132|213|231)([sp])([sd])$")
_X86_CONVERSION = re.compile(r"^v?cvt(?:u?si2s[sd]|t?s[sd]2u?si)[lq]?$")
_X86_CONVERSIONS = re.compile(r"^v?cvt(?:dq2ps|t?ps2dq)$")  # converts four or eight elements
_ARM_CONVERSION = re.compile(r"^(?:[su]cvtf|fcvt[amnpz][su])$")
_ARM = re.compile(r"^f(?:n?mul|add|sub|div|sqrt|n?madd|n?msub|mla|mls)$")
_ARM_FUSED = ("fmadd", "fmsub", "fnmadd", "fnmsub", "fmla", "fmls")
_FUNCTION = re.compile(r"<(\w+?)(?:@plt|@@?[\w.]+)?>")
# Instructions after which execution never continues with the next one.
_ENDS = ("jmp", "jmpq", "b", "ret", "retq", "ud2", "br")
_SPECIAL = frozenset(
    f"{name}{suffix}"
    for name in [
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "sincos",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "pow",
        "cbrt",
        "erf",
        "erfc",
        "tgamma",
        "lgamma",
        "hypot",
    ]
    for suffix in ("", "f")
)


_MARKS = {
    "_ZL22sim_counts_1_operationv": {"flops": 1},
    "_ZL23sim_counts_2_operationsv": {"flops": 2},
    "_ZL27sim_counts_special_functionv": {"special": 1},
    "_ZL21sim_counts_conversionv": {"conversions": 1},
}


@dataclass(frozen=True)
class Operation:
    """An arithmetic instruction: its address in the library, and the counts of one execution."""

    address: int
    flops: int = 0
    special: int = 0
    conversions: int = 0
    marked: bool = False
    """True if a ``SIM_COUNTS`` call marks these operations: those of 16-bit types, and conversion functions. They count
    in every header."""


@dataclass(frozen=True)
class _Instruction:
    address: int
    name: str
    operands: str


def find_objdump() -> str:
    """Return the program that disassembles a library. If there is none, raise an error that says how to install it."""
    tool = shutil.which("objdump") or shutil.which("llvm-objdump")
    if tool is None:
        raise GraderError("objdump, which disassembles the compiled kernel, was not found", "Install binutils.")
    return tool


@functools.lru_cache(maxsize=64)
def operations_of(library: Path) -> dict[int, list[Operation]]:
    """Return the operations of each basic block, by its offset. A library never changes, so the result is cached."""
    command = [find_objdump(), "-d", "--no-show-raw-insn", str(library)]
    printed = read_with(command)
    if printed is None:
        raise GraderError(f"objdump cannot read {library.name}, or exceeds its limits")
    blocks: dict[int, list[Operation]] = {}
    for function in printed.split("\n\n"):
        _read_function([_instruction(row) for row in map(_ROW.match, function.splitlines()) if row], blocks)
    return blocks


def _instruction(row: re.Match[str]) -> _Instruction:
    return _Instruction(int(row[1], 16), row[2], row[3].split("//")[0].strip())


def _read_function(code: list[_Instruction], blocks: dict[int, list[Operation]]) -> None:
    """Add the basic blocks of one function. Follow every jump from its entry, and visit each basic block once."""
    places = {instruction.address: i for i, instruction in enumerate(code)}
    targets = [_jump_target(instruction, places) for instruction in code]
    starts = {target for target in targets if target is not None}
    starts |= {i + 1 for i, instruction in enumerate(code) if targets[i] is not None or instruction.name in _ENDS}
    seen: set[int] = set()
    waiting: list[tuple[int, int | None]] = [(0, None)] if code else []
    while waiting:
        begin, block = waiting.pop()
        if begin in seen or begin >= len(code):
            continue
        seen.add(begin)
        end = begin + 1
        while end < len(code) and end not in starts:
            end += 1
        # All instructions of a basic block are executed equally often, and compilers may move arithmetic before the
        # call.
        calls = [code[i + 1].address for i in range(begin, min(end, len(code) - 1)) if _called(code[i]) == _TRACE]
        for call in calls:
            blocks.setdefault(call, [])
        block = calls[0] if calls else block
        if block is not None:
            blocks[block] += [o for instruction in code[begin:end] if (o := _operation(instruction))]
        last = end - 1
        target = targets[last]
        if target is not None:
            waiting.append((target, block))
        if code[last].name not in _ENDS:
            waiting.append((end, block))


def _called(instruction: _Instruction) -> str:
    """Return the function that an instruction calls, or an empty string."""
    found = _FUNCTION.search(instruction.operands) if instruction.name in ("call", "callq", "bl") else None
    return found[1] if found else ""


def _jump_target(instruction: _Instruction, places: dict[int, int]) -> int | None:
    if not re.match(r"j|b$|b\.|cbn?z|tbn?z", instruction.name):
        return None
    address = re.search(r"(?:^|[\s,])(?:0x)?([0-9a-f]+)(?: <|$)", instruction.operands)
    return places.get(int(address[1], 16)) if address else None


def _operation(instruction: _Instruction) -> Operation | None:
    """Return the operation of an instruction, or None."""
    name, address, called = instruction.name, instruction.address, _called(instruction)
    if called in _MARKS:
        return Operation(address, **_MARKS[called], marked=True)
    if called in _SPECIAL:
        return Operation(address, special=1)
    if called in ("fma", "fmaf"):
        return Operation(address, flops=2)
    if found := _X86.match(name) or _X86_FUSED.match(name):
        wide = 2 if "%ymm" in instruction.operands else 1
        elements = wide * {"s": 4, "d": 2}[found[2]] if found[1] == "p" else 1
        return Operation(address, flops=elements * (2 if "fm" in name or "fn" in name else 1))
    if _X86_CONVERSION.match(name):
        return Operation(address, conversions=1)
    if _X86_CONVERSIONS.match(name):
        return Operation(address, conversions=8 if "%ymm" in instruction.operands else 4)
    if _ARM_CONVERSION.match(name):
        vector = re.search(r"\bv\d+\.(\d+)[hsd]", instruction.operands)
        return Operation(address, conversions=int(vector[1]) if vector else 1)
    if _ARM.match(name):
        vector = re.search(r"\bv\d+\.(\d+)[hsd]", instruction.operands)
        return Operation(address, flops=(int(vector[1]) if vector else 1) * (2 if name in _ARM_FUSED else 1))
    return None
