"""The JSON report of libsim (``checks/report/report.cpp``) in types, with a limit on everything.

The kernel shares a process with libsim and can forge a report. ``read`` therefore accepts only what libsim could have
written. It rejects unknown or missing fields, numbers out of range, texts and lists of any length, and findings without
their memory. The rest of the grader can rely on an accepted report.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from grader.setup.errors import GraderError
from grader.verdict.findings import KINDS, AnyPayload
from grader.verdict.record import clean

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A count of events or bytes, or an offset in a library."""
Word = Annotated[int, Meta(ge=0)]
"""A 64-bit word that the grader only shows: an address, a mask, a launch argument. ``_Part`` checks the upper bound."""
Small = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
Offset = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""An offset in bytes; negative before the start."""
Triple = Annotated[list[Small], Meta(min_length=3, max_length=3)]
Name = Annotated[str, Meta(max_length=64)]
KernelName = Annotated[str, Meta(max_length=256)]
MOST_FINDINGS = 4096
MOST = 1 << 20
"""The maximum number of list items, or of characters of a text."""


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object with a fixed set of members."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, str):
                setattr(self, name, clean(value, MOST))
            elif isinstance(value, int) and value >= 1 << 64:
                raise ValueError(f"{name} has more than 64 bits")


class Memory(_Part):
    """The memory that a finding is about."""

    kind: Name
    name: Name
    dtype: Name
    shape: Annotated[list[Count], Meta(max_length=8)]
    id: Small
    bytes: Count
    element_bytes: Small
    offset: Offset


class Side(_Part, kw_only=True):
    """One side of a finding. ``site`` 0: unknown."""

    site: Small
    access: Name
    fallback: Small | None = None
    line: Small | None = None
    stream: Small | None = None
    work: KernelName = ""
    block: Triple | None = None
    thread: Triple | None = None


class Finding(Side, kw_only=True):
    """A finding."""

    check: Literal["memcheck", "initcheck", "racecheck", "synccheck", "fault"]
    kind: Name
    kernel: KernelName = ""
    count: Count
    bytes: Small
    payload: dict[str, Any] = {}
    """The fields of the kind's payload, which ``facts`` returns with types."""
    other: Side | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = KINDS.get(self.kind)
        if kind is None or kind.check != self.check:
            raise ValueError(f"no finding of {self.check} is called {self.kind}")
        if kind.has_memory and self.memory is None:
            raise ValueError(f"{self.kind} without its memory")
        if kind.has_other and self.other is None:
            raise ValueError(f"{self.kind} without its other side")
        names = kind.payload.__struct_fields__ if kind.payload else ()
        if not self.payload.keys() <= {*names} or not _is_small(self.payload):
            raise ValueError(f"invalid payload of {self.kind}")
        _ = self.facts

    @property
    def facts(self) -> AnyPayload | None:
        """The payload, converted to the type of its kind."""
        payload: Any = KINDS[self.kind].payload
        try:
            facts: AnyPayload | None = msgspec.convert(self.payload, payload) if payload else None
            return facts
        except msgspec.ValidationError as error:
            raise ValueError(f"the payload of the finding {self.kind} is invalid: {error}") from error


def _is_small(value: Any, depth: int = 0) -> bool:
    """Return whether a payload has only 64-bit numbers, short texts, and short lists."""
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


TENSOR_TYPES = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "f16_sums", "f64")
"""Operand types of the tensor cores, in the order of ``runtime/tensor_type.h``. f16_sums: f16 with f16 accumulators."""


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
    """Operations by type, in the order of ``TENSOR_TYPES``."""
    sites: Annotated[list[Site], Meta(max_length=MOST)]
    barrier_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]
    tensor_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]
    operand_sites: Annotated[list[tuple[Small, Count]], Meta(max_length=MOST)]


class Traced(_Part, kw_only=True):
    """One request of a warp, with the offsets of the active lanes."""

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


NO_THREAD = 0xFFFF
"""The thread number in an event that belongs to a whole block rather than to a thread."""
EVENT_KINDS = {
    0: "read",
    1: "write",
    2: "read",
    3: "write",
    4: "atomic",
    5: "async_read",
    6: "async_write",
    7: "operand_read",
    16: "barrier_wait",
    17: "barrier_arrive",
    18: "barrier_complete",
    19: "warp_sync",
    20: "thread_exit",
    21: "cp_async_commit",
    22: "cp_async_wait",
    23: "copy_complete",
    24: "mbarrier_init",
    25: "mbarrier_arrive",
    26: "mbarrier_wait",
    27: "mbarrier_wait_done",
    28: "mbarrier_phase_complete",
    29: "bulk_read",
    30: "bulk_write",
    31: "blocked",
    32: "barrier_wait_done",
}
"""The kinds of recorded events, by their number in the report.

The numbers are those of ``Access`` in ``checks/core/site.h`` and ``EventKind`` in ``checks/report/recording.h``.
"""
NAMED = ("barrier_wait", "warp_sync", "blocked")
"""The kinds of events whose fourth field names a barrier or an intrinsic instead of a memory (``RecordedEvent``)."""
OF_BLOCK = ("barrier_complete", "mbarrier_phase_complete")
"""The kinds of events that belong to a whole block, not to a thread."""
RecordedEvent = tuple[Small, Small, Small, Small, Offset, Small, Small, Small, Word, Word]
"""Kind, thread, site, memory or name (from 1), offset or number, bytes, lanes, whether it has a value, and the two
halves of the 128-bit value.
"""


class RecordedMemory(_Part):
    """A tensor or a shared array.

    ``start``: in shared memory from the block's first byte, else the address modulo 128.
    """

    space: Literal["global", "shared", "constant", "distributed"]
    name: Name
    dtype: Name
    element_bytes: Small
    start: Offset
    bytes: Count


class Recording(_Part):
    """The recorded events of the threads of one block, in execution order."""

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
    events: Annotated[list[RecordedEvent], Meta(max_length=MOST)]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.names = [clean(name, 64) for name in self.names]
        for kind, thread, _, memory, _, _, mask, _, low, high in self.events:
            known = EVENT_KINDS.get(kind)
            if known is None or memory > len(self.names if known in NAMED else self.memories):
                raise ValueError("an event with an unknown kind or memory")
            if thread >= self.threads and not (thread == NO_THREAD and known in OF_BLOCK):
                raise ValueError("an event with an unknown thread")
            if mask >> 32 or low >> 64 or high >> 64:
                raise ValueError("an event with a number out of range")


class Sample(_Part):
    """How much of a run was checked: some blocks (``checked_blocks``) of some launches (``checked_launches``)."""

    launches: Count
    checked_launches: Count
    blocks: Count
    """The blocks of the launches that were checked."""
    checked_blocks: Count
    seed: Count


class Report(_Part):
    """The whole report. Every member is optional: an empty object is a run without events."""

    version: Literal[1] = 1
    findings: Annotated[list[Finding], Meta(max_length=MOST_FINDINGS)] = []
    dropped_findings: Count = 0
    sample: Sample | None = None
    """None: all blocks of all launches were checked, or none."""
    kernels: Annotated[list[Kernel], Meta(max_length=MOST)] = []
    scratch_bytes: Count = 0
    host_bytes: Count = 0
    copied_bytes: Count = 0
    sms_were_asked: Annotated[int, Meta(ge=0, le=1)] = 0
    """True if the program queried the number of SMs."""
    submissions: Count = 0
    graphs: Count = 0
    async_bytes: Count = 0
    prefetched_bytes: Count = 0
    early_bytes: Count = 0
    traces: Annotated[list[Traced], Meta(max_length=MOST)] = []
    executed: Annotated[list[tuple[Count, Small, Count, Count, Count]], Meta(max_length=MOST)] | None = None
    """For each basic block: address in the kernel library, kernel, executions by lanes, executions by warps, possible
    lanes.

    None: not counted.
    """
    recording: Recording | None = None
    sites: Annotated[list[tuple[Small, Small, Count]], Meta(max_length=MOST)] = []
    """For each site: its number, its module, and the offset in that module."""
    modules: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=MOST)] = []

    def __post_init__(self) -> None:
        super().__post_init__()
        self.modules = [clean(module, MOST) for module in self.modules]
        if any(module >= len(self.modules) for _, module, _ in self.sites):
            raise ValueError("an access site refers to a library that the report does not list")


class InvalidReport(GraderError):
    """The error for a report that libsim cannot have written, for example because the kernel overwrote it."""


_decoder = msgspec.json.Decoder(Report)


def read(text: str) -> Report:
    """Return the report, or raise ``InvalidReport`` with the reason."""
    try:
        return _decoder.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidReport(
            f"the simulator's report is invalid: {error!s:.300}",
            "The kernel probably overwrote the report, or the memory from which it is made.",
        ) from error
