"""The recording of one block as a sequence of warp events, merged from its threads (``checks/report/recording.h``).

The simulator runs the lanes of a warp one after another. On a GPU the k-th execution of one place in the code by each
lane happens at once, so these become one event, as they are one request for the counters. Lanes meet at warp intrinsics
and barriers; between two of them an event waits until no lane that takes part has something else to do first. Where
lanes took different ways, the events of each way follow one another. The order of the warps is that of the run, which
is one of those that CUDA allows.

A thread has come to a barrier when it has done the last thing before it, so a warp with nothing to do waits from the
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from grader.simulator import report_format
from grader.simulator.report_format import HAPPENINGS, NAMED, OF_BLOCK
from grader.simulator.symbolize import UNKNOWN, Location

LANES = 32
BLOCK = -1
"""In place of a warp: the whole block."""
JOINT = ("arrives", "meets")
"""What lanes of a warp do together, waiting for each other."""
ACCESSES = ("read", "write", "atomic", "async_read", "async_write", "operand_read")


@dataclass
class Event:
    """An action of some lanes of a warp at once."""

    kind: str
    """One of ``HAPPENINGS``; or "waits": lanes that came to where they will meet others, which have yet to come."""
    warp: int
    lanes: list[int]
    file: str = ""
    line: int = 0
    """0: unknown, or of no place."""
    memory: int = -1
    """Its place in ``Recording.memories``."""
    name: str = ""
    """What is waited for."""
    size: int = 0
    """Bytes of each lane, or of a bulk copy."""
    offsets: list[int] = field(default_factory=list)
    """By lane, as ``lanes``: from the start of the memory, in shared memory from the block's first byte."""
    values: list[bytes | None] = field(default_factory=list)
    """By lane; of shared memory, what was read or what was there after the write. None: not known."""
    number: int = 0
    """Of the barrier, or how many groups of copies may still be under way."""


@dataclass
class Recording:
    """The recording of one block of one launch."""

    kernel: str
    launch: int
    grid: list[int]
    block: list[int]
    """Its shape."""
    index: list[int]
    """Its ``blockIdx``."""
    threads: int
    shared_bytes: int
    memories: list[report_format.RecordedMemory]
    events: list[Event]
    cut: bool = False
    """The block did more than was recorded."""

    @property
    def warps(self) -> int:
        """How many there are."""
        return -(-self.threads // LANES)


class _Key(NamedTuple):
    """The key of an action: lanes that act at once have the same key, and each lane has it once."""

    part: int
    """How often the lane has met all others of its warp before."""
    kind: str
    site: int
    memory: int
    size: int
    nth: int
    """The k-th time since then."""


class _Token(NamedTuple):
    """One thing that one lane did."""

    time: int
    key: _Key
    row: report_format.Happened
    since: int
    """When the lane did something last before: from then on it waits, where it meets others."""


class _Merged(NamedTuple):
    time: int
    event: Event


class _Lane:
    """The actions of one thread, and how many of them are in the warp's events already."""

    def __init__(self) -> None:
        self.tokens: list[_Token] = []
        self.next = 0
        self.last = -1
        """When it did something last."""
        self.part = 0
        self.counts: dict[tuple[str, int, int, int], int] = {}
        self.ahead: set[_Key] = set()

    def add(self, time: int, row: report_format.Happened) -> None:
        kind = HAPPENINGS[row[0]]
        what = (kind, row[2], row[3], 0 if kind in JOINT else row[5])
        count = self.counts[what] = self.counts.get(what, 0) + 1
        # Who meets is known: a place in the code may be met at by some lanes after others.
        key = _Key(self.part, *what, time if kind == "meets" else count)
        self.tokens.append(_Token(time, key, row, self.last))
        self.ahead.add(key)
        self.last = time
        if kind == "arrives" or (kind == "meets" and row[5]):
            self.part += 1
            self.counts.clear()

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        self.ahead.discard(token.key)
        return token


def merge(data: report_format.Recording, places: Mapping[int, Location]) -> Recording:
    """Merge threads into warp events. ``places``: the source place of each site."""
    threads = [_Lane() for _ in range(data.threads)]
    of_block: list[_Merged] = []
    arrived: list[int] = []
    for time, row in enumerate(data.events):
        kind, thread = HAPPENINGS[row[0]], row[1]
        if kind == "barrier_done":
            of_block.append(_Merged(time, Event(kind, BLOCK, [], number=row[4])))
            for number in arrived:
                threads[number].last = time
            arrived.clear()
        elif kind in OF_BLOCK:
            of_block.append(_Merged(time, _event(data, places, BLOCK, {0: row})))
        elif kind == "meets":
            first = thread - thread % LANES
            for lane in _lanes(row[6]):
                if first + lane < data.threads:
                    threads[first + lane].add(time, row)
        elif kind == "arrives":
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
            yield _Merged(time, _event(data, places, warp, rows, "waits"))
        rows = {}
        for number in taking:
            token = lanes[number].take()
            rows[number] = token.row
            time = max(time, token.time)
        yield _Merged(time, _event(data, places, warp, rows))


def _choose(heads: dict[_Key, list[int]], lanes: list[_Lane]) -> _Key:
    """Choose the warp's next event, preferring one that no participating lane has still to reach."""
    if len(heads) == 1:
        return next(iter(heads))
    # Lanes that have all come to where they meet go on first: they wait for nobody.
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
    rows: dict[int, report_format.Happened],
    kind: str = "",
) -> Event:
    """Return the event of lanes that did the same."""
    first = next(iter(rows.values()))
    own = HAPPENINGS[first[0]]
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


def _value(row: report_format.Happened) -> bytes:
    return (row[8] | row[9] << 64).to_bytes(16, "little")[: row[5]]
