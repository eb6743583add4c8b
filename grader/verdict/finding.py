"""The record of a finding, a fault that the simulator detected. It contains facts only.

``grader/verdict/findings`` has the texts for each kind of finding.
"""

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
    """The memory that an access was meant for, even if the access is out of bounds."""

    kind: Line
    """``tensor``, ``__shared__``, ``dynamic shared``, ``local``, ``__device__``, ``__constant__``, or the function that
    allocated it, such as ``cudaMalloc``.
    """
    space: Space
    name: Line = ""
    dtype: Line = ""
    shape: list[int] = field(default_factory=list)
    """The shape of a tensor; empty for other memory."""
    bytes: int = 0
    element_bytes: int = 0
    offset: int = 0
    """The distance in bytes from the start of the memory to the first accessed byte; negative before the start."""
    index: Index | None = None
    """The index of the accessed element of a tensor; None outside the tensor, and for other memory."""

    def index_at(self, offset: int) -> Index | None:
        """Return the index of the element at an offset in bytes; None outside the tensor, and for other memory."""
        if self.kind != "tensor" or not self.element_bytes or not 0 <= offset < self.bytes:
            return None
        flat, index = offset // self.element_bytes, []
        for extent in reversed(self.shape):
            index.append(flat % extent if extent else 0)
            flat //= extent or 1
        return index[::-1]


class Side(Record, kw_only=True):
    """One of the one or two accesses of a finding: its kind, its memory, its place in the source, and its thread."""

    access: Line = ""
    """read, write, atomic, volatile read, volatile write, async read, async write, operand read (by wgmma), tensor
    operand read (by tcgen05); empty if it is not an access.
    """
    bytes: int = 0
    """The size of the access."""
    memory: Memory | None = None
    file: Line = ""
    line: int = 0
    """The line number; 0 if it is unknown."""
    column: int = 0
    """The column number in the line; 0 if it is unknown."""
    source_line: Line = ""
    block: Index | None = None
    thread: Index | None = None
    inside: Line = ""
    """If the line calls a function of a course header, the place of the access there, such as ``llmk/reduce.cuh:31``.
    """
    work: Line = ""
    """For findings about streams: the kernel or runtime API call that made the access, or ``the host``."""
    stream: int | None = None
    """The stream of ``work``: 0 for the default stream. Others are numbered in the order of their creation."""

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of the access."""
        return self.file, self.line


class Finding(Side, kw_only=True):
    """A fault. The fields of ``Side`` describe the first thread in which it was detected."""

    check: Line
    """memcheck, initcheck, racecheck or synccheck (as in compute-sanitizer), fault (a launch or a call failed), or
    report (the simulator's report contradicts the outputs).
    """
    kind: Line
    """The name of the kind of finding: see ``grader/verdict/findings``."""
    other: Side | None = None
    """The other access of a race, or the other thread of a divergent barrier."""
    payload: AnyPayload | None = None
    """The facts that only findings of this kind have."""
    kernel: Line = ""
    count: int = 1
    """The number of occurrences."""
    hides: bool = False
    """True if findings that are consequences of this one were left out: see ``grader/verdict/causes.py``."""
    case: Line = ""
    """The name of the first case in which the finding occurred."""
    dtype: Line = ""

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """The files and lines of both sides."""
        return frozenset(side.place for side in (self, self.other) if side is not None)

    @property
    def identity(self) -> Hashable:
        """A key that is equal for findings of the same fault, in one run or in several cases.

        It consists of the check, the kind, the lines and the memory. It does not depend on the schedule of the threads:
        on the thread and element that were first, on the order of the two accesses of a race, or on whether their
        threads are in the same warp, in the same block, or in two blocks.
        """
        kind = "race" if self.check == "racecheck" else self.kind
        memory = (self.memory.kind, self.memory.name) if self.memory else None
        # Two accesses of one line to memory without a name are distinguished by their columns. For a race, the columns
        # would depend on the schedule.
        column = self.column if self.memory and not self.memory.name and self.other is None else 0
        return self.check, kind, self.places, memory, column


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings with the same identity and add their counts. Keep the order of their first occurrences.

    The merged finding is the first one. For races, it is the first of those whose threads are furthest apart.
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
    """Return the distance of the threads of a race, such as 1 in a warp and 2 in a block; 0 for other findings."""
    kind = KINDS.get(finding.kind)
    return kind.distance if kind else 0
