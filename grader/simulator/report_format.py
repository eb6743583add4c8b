"""The report as libsim writes it (``checks/report/report.cpp``): its JSON in types, with a bound on everything.

The kernel shares libsim's process and can write a report of its own. So nothing is taken that libsim would not write: a
field more or less, a number that is none or out of range, a text or list of any length, a finding without the memory
that it is about. ``read`` refuses it as a whole; what it lets through is what the rest of the grader may rely on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from grader.setup.errors import GraderError
from grader.verdict.findings import KINDS, AnyPayload
from grader.verdict.texts import clean

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""Of things that happened, bytes, and places in a library."""
Word = Annotated[int, Meta(ge=0)]
"""64 bits that may mean anything: an address, a mask, what a launch asked for. ``_Part`` checks the upper bound."""
Small = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
Offset = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""In bytes; negative before the start."""
Triple = Annotated[list[Small], Meta(min_length=3, max_length=3)]
Name = Annotated[str, Meta(max_length=64)]
KernelName = Annotated[str, Meta(max_length=256)]
MOST_FINDINGS = 4096
MOST = 1 << 20
"""Entries of a list, or characters of a text."""


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object of known members."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, str):
                setattr(self, name, clean(value, MOST))
            elif isinstance(value, int) and value >= 1 << 64:
                raise ValueError(f"{name} has more than 64 bits")


class Memory(_Part):
    """The memory in which something happened."""

    kind: Name
    name: Name
    dtype: Name
    shape: Annotated[list[Count], Meta(max_length=8)]
    id: Small
    bytes: Count
    element_bytes: Small
    offset: Offset


class Side(_Part, kw_only=True):
    """One thread's part in a finding. ``site`` 0: unknown."""

    site: Small
    access: Name
    fallback: Small | None = None
    line: Small | None = None
    stream: Small | None = None
    work: KernelName = ""
    block: Triple | None = None
    thread: Triple | None = None


class Finding(Side, kw_only=True):
    """Something that is wrong."""

    check: Literal["memcheck", "initcheck", "racecheck", "synccheck", "fault"]
    kind: Name
    kernel: KernelName = ""
    count: Count
    bytes: Small
    payload: dict[str, Any] = {}
    """What ``facts`` is made of."""
    other: Side | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = KINDS.get(self.kind)
        if kind is None or kind.check != self.check:
            raise ValueError(f"no finding of {self.check} is called {self.kind}")
        if kind.has_memory and self.memory is None:
            raise ValueError(f"{self.kind} of no memory")
        if kind.has_other and self.other is None:
            raise ValueError(f"{self.kind} without its other side")
        names = kind.payload.__struct_fields__ if kind.payload else ()
        if not self.payload.keys() <= {*names} or not _is_small(self.payload):
            raise ValueError(f"{self.kind} has no such payload")
        _ = self.facts

    @property
    def facts(self) -> AnyPayload | None:
        """The payload as the type of its kind."""
        payload: Any = KINDS[self.kind].payload
        try:
            facts: AnyPayload | None = msgspec.convert(self.payload, payload) if payload else None
            return facts
        except msgspec.ValidationError as error:
            raise ValueError(f"the payload of {self.kind}: {error}") from error


def _is_small(value: Any, depth: int = 0) -> bool:
    """Return whether a payload has only 64-bit numbers, short texts, and short lists of them."""
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return depth < 4 and len(value) <= 16 and all(_is_small(item, depth + 1) for item in items)
    if isinstance(value, str):
        return len(value) <= 400
    return value is None or (isinstance(value, int) and -(1 << 63) <= value < 1 << 64)


class Site(_Part):
    """The counters of one access of one kernel."""

    site: Small
    space: Literal["global", "shared", "constant", "distributed"]
    access: Name
    size: Small
    accesses: Count
    requests: Count
    bytes: Count
    sectors: Count
    ideal_sectors: Count
    wavefronts: Count
    ideal_wavefronts: Count
    worst_ways: Count


TENSOR_TYPES = ("f16", "f16_sums", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "f64")
"""Operands of products on tensor cores, in the order of ``runtime/tensor_type.h``. f16_sums: f16 with f16 sums."""


class Kernel(_Part):
    """The counters of all launches of one kernel."""

    name: KernelName
    launches: Count
    grid: Triple
    block: Triple
    dynamic_shared_bytes: Word
    static_shared_bytes: Count
    blocks: Count
    threads: Count
    barriers: Count
    touched_bytes_read: Count
    touched_bytes_written: Count
    touched_bytes: Count
    first_read_bytes: Count
    tensor_operations: Annotated[list[Count], Meta(min_length=len(TENSOR_TYPES), max_length=len(TENSOR_TYPES))]
    """By the types in ``TENSOR_TYPES``."""
    sites: Annotated[list[Site], Meta(max_length=MOST)]
    barrier_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]
    tensor_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]
    operand_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]


class Traced(_Part, kw_only=True):
    """One access of a warp, with the offsets of the lanes that took part."""

    site: Small
    access: Name
    space: Literal["global", "shared", "constant", "distributed"]
    size: Small
    block: Annotated[list[Small], Meta(max_length=3)] = []
    warp: Small
    number: Small
    name: Name
    kernel: KernelName
    lanes: Annotated[list[Small], Meta(max_length=32)]
    offsets: Annotated[list[Offset], Meta(max_length=32)]


NOBODY = 0xFFFF
"""In place of a thread: what a block does as a whole."""
HAPPENINGS = {
    0: "read",
    1: "write",
    2: "read",
    3: "write",
    4: "atomic",
    5: "async_read",
    6: "async_write",
    7: "operand_read",
    16: "arrives",
    17: "arrives_only",
    18: "barrier_done",
    19: "meets",
    20: "exits",
    21: "commits",
    22: "awaits_copies",
    23: "copy_arrives",
    24: "mbarrier_begins",
    25: "mbarrier_arrival",
    26: "mbarrier_waits",
    27: "mbarrier_passed",
    28: "mbarrier_phase",
    29: "bulk_read",
    30: "bulk_write",
    31: "stuck",
    32: "barrier_passed",
}
"""What a thread does, by its number in the report.

``Access`` of ``checks/core/site.h`` and ``Happening`` of ``checks/report/recording.h``.
"""
NAMED = ("arrives", "meets", "stuck")
"""Those with a name of what is waited for in place of a memory."""
OF_BLOCK = ("barrier_done", "mbarrier_phase")
"""Those that no thread does."""
Happened = tuple[Small, Small, Small, Small, Offset, Small, Small, Small, Word, Word]
"""Kind, thread, site, memory or name from 1, offset or number, bytes, lanes, whether it has a value, and 128 bits."""


class RecordedMemory(_Part):
    """A tensor or an array of shared memory.

    ``start``: in shared memory from the block's first byte, else modulo 128.
    """

    space: Literal["global", "shared", "constant", "distributed"]
    name: Name
    dtype: Name
    element_bytes: Small
    start: Offset
    bytes: Count


class Recording(_Part):
    """The recorded actions of the threads of one block, in the order of the run."""

    kernel: KernelName
    launch: Small
    grid: Triple
    block: Triple
    index: Triple
    threads: Annotated[int, Meta(ge=1, le=1024)]
    shared_bytes: Count
    cut: Annotated[int, Meta(ge=0, le=1)]
    names: Annotated[list[Name], Meta(max_length=4096)]
    memories: Annotated[list[RecordedMemory], Meta(max_length=1 << 16)]
    events: Annotated[list[Happened], Meta(max_length=MOST)]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.names = [clean(name, 64) for name in self.names]
        for kind, thread, _, memory, _, _, mask, _, low, high in self.events:
            known = HAPPENINGS.get(kind)
            if known is None or memory > len(self.names if known in NAMED else self.memories):
                raise ValueError("an event of no kind, or in no memory")
            if thread >= self.threads and not (thread == NOBODY and known in OF_BLOCK):
                raise ValueError("an event of no thread")
            if mask >> 32 or low >> 64 or high >> 64:
                raise ValueError("an event with too large a number")


class Report(_Part):
    """The whole. A report without a member says nothing of it: an empty object is a run in which nothing happened."""

    version: Literal[1] = 1
    findings: Annotated[list[Finding], Meta(max_length=MOST_FINDINGS)] = []
    dropped_findings: Count = 0
    kernels: Annotated[list[Kernel], Meta(max_length=MOST)] = []
    scratch_bytes: Count = 0
    host_bytes: Count = 0
    copied_bytes: Count = 0
    sms_were_asked: Annotated[int, Meta(ge=0, le=1)] = 0
    """Whether the program has asked how many multiprocessors there are."""
    submissions: Count = 0
    graphs: Count = 0
    async_bytes: Count = 0
    prefetched_bytes: Count = 0
    traces: Annotated[list[Traced], Meta(max_length=MOST)] = []
    executed: Annotated[list[tuple[Count, Small, Count, Count, Count]], Meta(max_length=MOST)] | None = None
    """Address in the kernel library, kernel, executions by lanes and by warps, and lanes there were.

    None: not counted.
    """
    recording: Recording | None = None
    sites: Annotated[list[tuple[Small, Small, Count]], Meta(max_length=MOST)] = []
    """Number of a site, module, and the place in it."""
    modules: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=MOST)] = []

    def __post_init__(self) -> None:
        super().__post_init__()
        self.modules = [clean(module, MOST) for module in self.modules]
        if any(module >= len(self.modules) for _, module, _ in self.sites):
            raise ValueError("a site in no module")


class MadeUp(GraderError):
    """A report that libsim did not write."""


_decoder = msgspec.json.Decoder(Report)


def read(text: str) -> Report:
    """Return the report, or raise ``MadeUp`` with what is wrong with it."""
    try:
        return _decoder.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise MadeUp(
            f"the simulator's report is not one that it would write: {error!s:.300}",
            "The kernel overwrote it, or its memory.",
        ) from error
