"""A finding: a fault that the simulator saw, as facts. ``grader/verdict/findings`` has a text for each kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from msgspec import field, structs

from grader.verdict.findings import KINDS, AnyPayload
from grader.verdict.record import Line, Record

Index = list[int]
"""Of a block, a thread, or an element."""

Space = Literal["global", "shared", "constant", "local"]
"""The address spaces of memory. What is local is one thread's own."""


class Memory(Record, kw_only=True):
    """The memory that an access was meant for."""

    kind: Line
    """``tensor``, ``__shared__``, ``dynamic shared``, ``local``, ``__device__``, ``__constant__``, or its allocator."""
    space: Space
    name: Line = ""
    dtype: Line = ""
    shape: list[int] = field(default_factory=list)
    """Of a tensor."""
    bytes: int = 0
    element_bytes: int = 0
    offset: int = 0
    """Where the access begins, in bytes from the start; negative before it."""
    index: Index | None = None
    """The element there, where it is a tensor and the access lies inside."""

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
    """One thread's part in a finding: what it did, to which memory, where in the source, and which thread it was."""

    access: Line = ""
    """read, write, atomic, volatile read, volatile write, async read, async write, operand read (of wgmma),
    tensor operand read (of tcgen05); empty where it is no access."""
    bytes: int = 0
    """Size of the access."""
    memory: Memory | None = None
    file: Line = ""
    line: int = 0
    """0 where it is not known. So is ``column``."""
    column: int = 0
    source_line: Line = ""
    block: Index | None = None
    thread: Index | None = None
    inside: Line = ""
    """Where in a header of the course it happened, if the line calls a function of one: ``llmk/reduce.cuh:31``."""
    work: Line = ""
    """The kernel, or the call of the runtime API, where the order of streams is what matters.

    ``the host`` for its code.
    """
    stream: int | None = None
    """In which stream that was: 0 the default one, the others in the order of their creation."""

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file, self.line


class Finding(Side, kw_only=True):
    """A fault, with the thread that it was first seen in."""

    check: Line
    """memcheck, initcheck, racecheck, synccheck, fault; or report, where what was reported cannot be true."""
    kind: Line
    """The name of one of the kinds in ``grader/verdict/findings``."""
    other: Side | None = None
    """The other thread: of a race, or at another barrier."""
    payload: AnyPayload | None = None
    """The facts of its kind alone."""
    kernel: Line = ""
    count: int = 1
    """How often it was seen."""
    hides: bool = False
    """Whether others that follow from it were left out: ``grader/verdict/causes.py``."""
    case: Line = ""
    """In which case first."""
    dtype: Line = ""

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """Return the places in the source."""
        return frozenset(side.place for side in (self, self.other) if side is not None)

    @property
    def identity(self) -> Hashable:
        """Return the key that identifies the same finding in one run and over all cases.

        The same check found the same thing, on the same lines, in the same memory. Which thread, which element and
        which case came first does not matter. Nor does which of a race's sides is met first, nor whether its threads
        are in one warp, one block or two: that depends on the order in which the threads ran.
        """
        kind = "race" if self.check == "racecheck" else self.kind
        memory = (self.memory.kind, self.memory.name) if self.memory else None
        return self.check, kind, self.places, memory


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each identity, with the counts of all; in the order of the first ones.

    It is the first, unless it is a race: then the first of those whose threads are furthest apart.
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
    """Return how far apart the threads of a race are, and so how strong a barrier it takes to order them."""
    kind = KINDS.get(finding.kind)
    return kind.distance if kind else 0
