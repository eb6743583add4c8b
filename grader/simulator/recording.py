"""The execution of one block as events of its warps, from the recording of its threads (``checks/report/recording.h``).

The simulator runs the lanes of a warp one after another. On a GPU, all lanes execute one place in the code at once, so
the k-th executions of a place by the lanes become one event. The counters also count them as one request. Lanes
synchronize at warp intrinsics and barriers; between two of them, an event waits until each participating lane has no
earlier event. After a divergent branch, the events of each path follow one another. The order of the warps is that of
the run, one of those that CUDA allows.

A thread arrives at a barrier directly after its last event before the barrier. A warp without any event before the
barrier arrives at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from grader.simulator import report_format
from grader.simulator.report_format import EVENT_KINDS, NAMED, OF_BLOCK
from grader.simulator.symbolize import UNKNOWN, Location

LANES = 32
BLOCK = -1
"""The warp number of events that belong to the whole block."""
JOINT = ("barrier_wait", "warp_sync")
"""The kinds of events at which lanes of a warp wait for each other."""
ACCESSES = ("read", "write", "atomic", "async_read", "async_write", "operand_read")


@dataclass
class Event:
    """A simultaneous event of some lanes of a warp."""

    kind: str
    """One of ``EVENT_KINDS``, or "warp_wait": lanes that have arrived at a warp intrinsic and wait for other lanes."""
    warp: int
    lanes: list[int]
    file: str = ""
    line: int = 0
    """The line; 0 if unknown or not applicable."""
    memory: int = -1
    """The index in ``Recording.memories``."""
    name: str = ""
    """The name of the barrier or intrinsic at which the lanes wait."""
    size: int = 0
    """Bytes of each lane, or of a bulk copy."""
    offsets: list[int] = field(default_factory=list)
    """Byte offsets by lane, as in ``lanes``, from the start of the memory or of the block's shared memory."""
    values: list[bytes | None] = field(default_factory=list)
    """Values by lane, in shared memory: the value read, or the value after the write. None: unknown."""
    number: int = 0
    """The number of the barrier, or of the groups of copies that may still be pending."""


@dataclass
class Recording:
    """The recording of one block of one launch."""

    kernel: str
    launch: int
    grid: list[int]
    block: list[int]
    """The shape of the block."""
    index: list[int]
    """The block's ``blockIdx``."""
    threads: int
    shared_bytes: int
    memories: list[report_format.RecordedMemory]
    events: list[Event]
    cut: bool = False
    """True if events are missing, because the block had more events than the limit."""

    @property
    def warps(self) -> int:
        """The number of warps."""
        return -(-self.threads // LANES)


class _Key(NamedTuple):
    """A key of an event. Events of different lanes with the same key are one event. No lane has two equal keys."""

    part: int
    """How often the lane has synchronized with all other lanes of its warp before."""
    kind: str
    site: int
    memory: int
    size: int
    nth: int
    """The number of earlier executions of this place since that synchronization."""


class _Token(NamedTuple):
    """One event of one lane."""

    time: int
    key: _Key
    row: report_format.RecordedEvent
    since: int
    """The time of the lane's previous event. If this event synchronizes lanes, the lane waits from that time on."""


class _Merged(NamedTuple):
    time: int
    event: Event


class _Lane:
    """The events of one thread, and the position up to which they are merged."""

    def __init__(self) -> None:
        self.tokens: list[_Token] = []
        self.next = 0
        self.last = -1
        """The time of the last event."""
        self.part = 0
        self.counts: dict[tuple[str, int, int, int], int] = {}
        self.ahead: set[_Key] = set()

    def add(self, time: int, row: report_format.RecordedEvent) -> None:
        kind = EVENT_KINDS[row[0]]
        what = (kind, row[2], row[3], 0 if kind in JOINT else row[5])
        count = self.counts[what] = self.counts.get(what, 0) + 1
        # The event names its participants. Other lanes may synchronize at the same place at another time.
        key = _Key(self.part, *what, time if kind == "warp_sync" else count)
        self.tokens.append(_Token(time, key, row, self.last))
        self.ahead.add(key)
        self.last = time
        if kind == "barrier_wait" or (kind == "warp_sync" and row[5]):
            self.part += 1
            self.counts.clear()

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        self.ahead.discard(token.key)
        return token


def merge(data: report_format.Recording, places: Mapping[int, Location]) -> Recording:
    """Merge the events of threads to those of warps. ``places``: the source location of each site."""
    threads = [_Lane() for _ in range(data.threads)]
    of_block: list[_Merged] = []
    arrived: list[int] = []
    for time, row in enumerate(data.events):
        kind, thread = EVENT_KINDS[row[0]], row[1]
        if kind == "barrier_complete":
            of_block.append(_Merged(time, Event(kind, BLOCK, [], number=row[4])))
            for number in arrived:
                threads[number].last = time
            arrived.clear()
        elif kind in OF_BLOCK:
            of_block.append(_Merged(time, _event(data, places, BLOCK, {0: row})))
        elif kind == "warp_sync":
            first = thread - thread % LANES
            for lane in _lanes(row[6]):
                if first + lane < data.threads:
                    threads[first + lane].add(time, row)
        elif kind == "barrier_wait":
            threads[thread].add(threads[thread].last, row)
            arrived.append(thread)
        else:
            threads[thread].add(time, row)
    merged = [
        item
        for first in range(0, data.threads, LANES)
        for item in _merge_warp(data, places, first // LANES, threads[first : first + LANES])
    ]
    events = [item.event for item in sorted([*of_block, *merged], key=lambda item: item.time)]
    return Recording(
        data.kernel,
        data.launch,
        data.grid,
        data.block,
        data.index,
        data.threads,
        data.shared_bytes,
        data.memories,
        events,
        bool(data.cut),
    )


def _lanes(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


def _merge_warp(
    data: report_format.Recording, places: Mapping[int, Location], warp: int, lanes: list[_Lane]
) -> Iterator[_Merged]:
    time = -1
    told: set[tuple[int, _Key]] = set()
    while True:
        heads: dict[_Key, list[int]] = {}
        for number, lane in enumerate(lanes):
            if lane.next < len(lane.tokens):
                heads.setdefault(lane.tokens[lane.next].key, []).append(number)
        if not heads:
            return
        key = _choose(heads, lanes)
        taking = heads[key]
        for other, waiting in heads.items():
            new = [number for number in waiting if (number, other) not in told]
            if other == key or other.kind not in JOINT or not new:
                continue
            told.update((number, other) for number in new)
            tokens = {number: lanes[number].tokens[lanes[number].next] for number in new}
            time = max(time, *(token.since for token in tokens.values()))
            rows = {number: token.row for number, token in tokens.items()}
            yield _Merged(time, _event(data, places, warp, rows, "warp_wait"))
        rows = {}
        for number in taking:
            token = lanes[number].take()
            rows[number] = token.row
            time = max(time, token.time)
        yield _Merged(time, _event(data, places, warp, rows))


def _choose(heads: dict[_Key, list[int]], lanes: list[_Lane]) -> _Key:
    """Return the warp's next event: if possible, one at which all participating lanes have arrived."""
    if len(heads) == 1:
        return next(iter(heads))
    # Lanes that have all arrived at a synchronization go first: they wait for no other lane.
    by_time = sorted(
        heads, key=lambda key: (key.kind not in JOINT, min(lanes[n].tokens[lanes[n].next].time for n in heads[key]))
    )
    for key in by_time:
        here = heads[key]
        if not any(key in lane.ahead for number, lane in enumerate(lanes) if number not in here):
            return key
    return next((key for key in by_time if key.kind not in JOINT), by_time[0])


def _event(
    data: report_format.Recording,
    places: Mapping[int, Location],
    warp: int,
    rows: dict[int, report_format.RecordedEvent],
    kind: str = "",
) -> Event:
    """Return one event for lanes that executed the same operation together."""
    first = next(iter(rows.values()))
    own = EVENT_KINDS[first[0]]
    place = places.get(first[2], UNKNOWN)
    event = Event(kind or own, warp, [] if warp == BLOCK else list(rows), place.file, place.line, size=first[5])
    if own in NAMED:
        event.name = data.names[first[3] - 1] if first[3] else ""
        event.number, event.size = first[4], 0
    elif first[3]:
        event.memory = first[3] - 1
        event.offsets = [row[4] for row in rows.values()]
        if any(row[7] for row in rows.values()):
            event.values = [_value(row) if row[7] else None for row in rows.values()]
    else:
        event.number = first[4]
    return event


def _value(row: report_format.RecordedEvent) -> bytes:
    return (row[8] | row[9] << 64).to_bytes(16, "little")[: row[5]]
