"""A finding: a fault that the simulator detected, as facts. ``grader/verdict/findings`` has the texts of each kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from msgspec import field, structs

from grader.verdict.findings import KINDS, AnyPayload
from grader.verdict.record import Line, Record

Index = list[int]
"""The index of a block, a thread, or an element."""

Space = Literal["global", "shared", "constant", "local"]
"""The address spaces of memory. Local memory belongs to one thread."""


class Memory(Record, kw_only=True):
    """The memory that an access was meant for."""

    kind: Line
    """``tensor``, ``__shared__``, ``dynamic shared``, ``local``, ``__device__``, ``__constant__``, or its allocator."""
    space: Space
    name: Line = ""
    dtype: Line = ""
    shape: list[int] = field(default_factory=list)
    """The shape of a tensor; empty for other memory."""
    bytes: int = 0
    element_bytes: int = 0
    offset: int = 0
    """The first byte of the access, in bytes from the start of the memory; negative before it."""
    index: Index | None = None
    """The index of the accessed element; None outside the tensor, or if the memory is not a tensor."""

    def index_at(self, offset: int) -> Index | None:
        """Return the index of the element at an offset in bytes; None outside a tensor."""
        if self.kind != "tensor" or not self.element_bytes or not 0 <= offset < self.bytes:
            return None
        flat, index = offset // self.element_bytes, []
        for extent in reversed(self.shape):
            index.append(flat % extent if extent else 0)
            flat //= extent or 1
        return index[::-1]


class Side(Record, kw_only=True):
    """One side of a finding: the access, its memory, its place in the source, and its thread."""

    access: Line = ""
    """read, write, atomic, volatile read, volatile write, async read, async write, operand read (by wgmma), tensor
    operand read (by tcgen05); empty if it is not an access.
    """
    bytes: int = 0
    """The size of the access."""
    memory: Memory | None = None
    file: Line = ""
    line: int = 0
    """The line, or 0 if it is unknown; ``column`` as well."""
    column: int = 0
    source_line: Line = ""
    block: Index | None = None
    thread: Index | None = None
    inside: Line = ""
    """The place in a course header, if the line calls a function of one: ``llmk/reduce.cuh:31``."""
    work: Line = ""
    """The kernel or runtime API call, for findings about the order of streams. ``the host`` for host code."""
    stream: int | None = None
    """The stream of ``work``: 0 is the default stream, others are numbered in the order of their creation."""

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line."""
        return self.file, self.line


class Finding(Side, kw_only=True):
    """A fault, with the first thread in which it was detected."""

    check: Line
    """memcheck, initcheck, racecheck, synccheck, fault; or report, if the simulator's report contradicts the outputs.
    """
    kind: Line
    """The name of one of the kinds in ``grader/verdict/findings``."""
    other: Side | None = None
    """The other thread of a race, or at another barrier."""
    payload: AnyPayload | None = None
    """The facts that only this kind has."""
    kernel: Line = ""
    count: int = 1
    """The number of occurrences."""
    hides: bool = False
    """True if findings that follow from this one were left out: ``grader/verdict/causes.py``."""
    case: Line = ""
    """The first case in which it occurred."""
    dtype: Line = ""

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """The files and lines of both sides."""
        return frozenset(side.place for side in (self, self.other) if side is not None)

    @property
    def identity(self) -> Hashable:
        """A key that is equal for the same finding within a run and across cases.

        It has the check, the kind, the lines and the memory. It ignores what depends on the schedule: which thread,
        element and case came first, which side of a race came first, and whether its threads are in one warp, one block
        or two.
        """
        kind = "race" if self.check == "racecheck" else self.kind
        memory = (self.memory.kind, self.memory.name) if self.memory else None
        # Memory without a name is told apart by its place in the line, where that does not depend on the schedule.
        column = self.column if self.memory and not self.memory.name and self.other is None else 0
        return self.check, kind, self.places, memory, column


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings with the same identity and add their counts, in the order of their first occurrences.

    The first occurrence is kept; for a race, the first of those whose threads are furthest apart.
    """
    found: dict[Hashable, Finding] = {}
    for finding in findings:
        known = found.get(finding.identity)
        if known is not None:
            shown = finding if _width(finding) > _width(known) else known
            finding = structs.replace(shown, count=known.count + finding.count, hides=known.hides or finding.hides)
        found[finding.identity] = finding
    return list(found.values())


def _width(finding: Finding) -> int:
    """Return the distance of the threads of a race: the greater, the wider the barrier that orders them."""
    kind = KINDS.get(finding.kind)
    return kind.distance if kind else 0
