"""Functions that describe places, accesses and memory in words, for the texts of findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from grader.verdict import words

if TYPE_CHECKING:
    from grader.verdict.finding import Finding, Memory, Side

ENGINES = {"operand read": "wgmma (wgmma.mma_async)", "tensor operand read": "tcgen05.mma or tcgen05.cp"}
"""The tensor-core instructions that read operands from shared memory, by the kind of access."""


def facts(finding: Finding) -> dict[str, Any]:
    """Return what the texts of findings may name: the fields of the payload, and descriptions of the two sides."""
    return {
        **(structs.asdict(finding.payload) if finding.payload is not None else {}),
        "access": access(finding),
        "position": position(finding),
        "where": where(finding),
        "other": other_place(finding),
        "both": both(finding),
    }


def place(side: Side) -> str:
    """Return the place in the source: ``attention.cu:31``, or ``attention.cu:31 (in llmk/reduce.cuh:20)``."""
    text = f"{Path(side.file).name}:{side.line}" if side.line else Path(side.file).name
    return f"{text} (in {side.inside})" if side.inside else text


def where(side: Side) -> str:
    """Return the known parts of `` at flash_attention.cu:31, block (3, 0, 0) thread (17, 0, 0)``."""
    text = f" at {place(side)}" if side.line else ""
    who = words.place(side.block, side.thread)
    return f"{text}, {who}" if who else text


def work(side: Side) -> str:
    """Return the kernel or call and its stream, such as `` by scale in stream 1``; empty if streams do not matter."""
    if not side.work:
        return ""
    stream = "" if side.stream is None else f" in stream {side.stream}" if side.stream else " in the default stream"
    return f" by {side.work}{stream}"


def memory_name(memory: Memory) -> str:
    """Return a description of memory: ``k[2, 4, 65, 64] (float32)``, ``the shared array tile (4,096 bytes)``..."""
    size = words.count(memory.bytes, "byte")
    match memory.kind:
        case "tensor":
            return f"{memory.name}{words.position(memory.shape)}" + (f" ({memory.dtype})" if memory.dtype else "")
        case "__shared__":
            return f"the shared array {memory.name} ({size})"
        case "dynamic shared":
            return f"the dynamic shared memory ({size})"
        case "local":
            return f"the local array {memory.name} ({size})"
        case "host":
            return f"host memory ({size})"
        case "__device__" | "__constant__":
            return f"the {memory.kind} variable {memory.name} ({size})"
    return f"memory from {memory.kind} ({size})"


def position(side: Side) -> str:
    """Return a description of the accessed element.

    Examples are ``x[2, 5] of x[4, 64] (float32)`` and ``element 33 (byte 132) of the shared array tile (4,096 bytes)``.
    """
    memory = side.memory
    if memory is None:
        return "device memory"
    if memory.index is not None:
        return f"{memory.name}{words.position(memory.index)} of {memory_name(memory)}"
    if side.bytes in (2, 4, 8, 16) and memory.offset % side.bytes == 0:
        return f"element {memory.offset // side.bytes:,} (byte {memory.offset:,}) of {memory_name(memory)}"
    return f"byte {memory.offset:,} of {memory_name(memory)}"


def distance(memory: Memory, access_bytes: int) -> str:
    """Return how far an access is from the memory: ``0 bytes past the end of k[...]``.

    If only a part of the access is outside, return how many of its bytes are.
    """
    offset, size, name = memory.offset, memory.bytes, memory_name(memory)
    if offset >= size:
        return f"{words.count(offset - size, 'byte')} past the end of {name}"
    if offset >= 0:
        return f"{words.count(offset + access_bytes - size, 'byte')} of it past the end of {name}"
    return f"{words.count(-offset, 'byte')} before the start of {name}"


def access(side: Side) -> str:
    """Return the size and kind of an access: ``4-byte read``."""
    names = {
        "atomic": "atomic operation",
        "async read": "read by an asynchronous copy",
        "async write": "write by an asynchronous copy",
        "operand read": "read by wgmma (wgmma.mma_async)",
        "tensor operand read": "read by tcgen05",
    }
    name = names.get(side.access, side.access) or "access"
    if side.access in ("allocation", "free"):
        return name
    return f"{side.bytes}-byte {name}" if side.bytes else "access"


def an_access(side: Side) -> str:
    """Return the size and kind of an access with an article: ``a 4-byte read``, ``an 8-byte read``."""
    said = access(side)
    return f"{'an' if said[0] in '8aeiou' else 'a'} {said}"


def memory_of(side: Side) -> str:
    """Return a description of the accessed memory, or ``a device variable`` if it is unknown."""
    return memory_name(side.memory) if side.memory else "a device variable"


def both(finding: Finding) -> str:
    """Return both sides: ``4-byte write at a.cu:3, thread (0, 0, 0) and 4-byte read at a.cu:5, thread (1, 0, 0)``."""
    sides = [finding] if finding.other is None else [finding, finding.other]
    return " and ".join(f"{access(side)}{work(side)}{where(side)}" for side in sides)


def other_place(finding: Finding) -> str:
    """Return the place of the other side, such as `` at a.cu:5, thread (1, 0, 0)``; empty if there is none."""
    return where(finding.other) if finding.other else ""


def reader_and_writer(finding: Finding) -> tuple[Side, Side | None]:
    """Return the asynchronous read and the write of a finding, in this order. Either may be the first side."""
    if finding.other is not None and finding.other.access in ("async read", *ENGINES):
        return finding.other, finding
    return finding, finding.other
