"""A recording as the compact data that ``player.js`` reads.

An event is a list without its trailing zeros. Its elements are, in this order:

- the kind, as an index in ``KINDS``
- the warp
- the lanes, as a mask of 32 bits; -1 stands for all lanes
- the line
- the name, as an index that begins with 1; 0 stands for no name
- a number
- the memory, as an index that begins with 1; 0 stands for no memory
- the size of each lane's access
- the offsets: [first, step] if they are evenly spaced, otherwise [first, 0, index of a pattern]
- the values: the elements of the array, lane after lane, or one value if it is the same for all lanes.

A read has values only if they differ from the preceding writes. The simulator runs the lanes of a warp one after
another, so only a race causes such a difference.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.prototype import DTYPE_OF
from grader.simulator.recording import ACCESSES, BLOCK, LANES, Event, Recording
from grader.simulator.report_format import EVENT_KINDS, RecordedMemory
from grader.verdict.finding import Finding, Side
from grader.verdict.wording.findings import message

KINDS = [*dict.fromkeys(EVENT_KINDS.values()), "warp_wait"]
MOST_EVENTS = 5000
MOST_PLACES = 100
"""The maximum number of events to consider for each side of a race."""
_FORMATS = {"f64": "d", "f32": "f", "f16": "e", "bf16": "bf16", "i64": "q", "u64": "Q", "i32": "i", "u32": "I"}
_FORMATS |= {"i16": "h", "u16": "H", "i8": "b", "u8": "B", "bool": "B"}
"""The format of values, as in the module ``struct``, by the short name of their dtype."""


@dataclass
class Encoded:
    """The data of the page."""

    data: dict[str, Any]
    left_out: int
    """The number of events that did not fit."""

    def json(self) -> str:
        """Return the data as JSON that is valid inside a script element."""
        text = json.dumps(self.data, separators=(",", ":"), ensure_ascii=True)
        # no </script>, and no start of an HTML comment
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def encode(recording: Recording, source: str, findings: Sequence[Finding] = (), most_bytes: int = 1_800_000) -> Encoded:
    """Return the data of the page, in at most about ``most_bytes`` of JSON; ``source``: the text of the kernel file.

    If not everything fits, values are omitted first.
    """
    whole = _encode(recording, source, findings, most_bytes, values=True)
    return _encode(recording, source, findings, most_bytes, values=False) if whole.left_out else whole


def _encode(recording: Recording, source: str, findings: Sequence[Finding], most_bytes: int, values: bool) -> Encoded:
    file = main_file(recording)
    patterns: dict[tuple[int, ...], int] = {}
    names: dict[str, int] = {}
    memories = [_Memory(memory, source) for memory in recording.memories]
    events: list[list[Any]] = []
    size, kept = len(source), len(recording.events)
    for number, event in enumerate(recording.events):
        known = len(patterns)
        row = _row(event, memories, file, patterns, names, values)
        new = list(patterns)[known:] if len(patterns) > known else []
        size += len(json.dumps([row, *new], separators=(",", ":")))
        if number >= MOST_EVENTS or (size > most_bytes and events):
            kept = number
            break
        events.append(row)
    left_out = len(recording.events) - kept
    shown = [event for event in recording.events[:kept] if event.file == file]
    found = jumps(recording, findings, kept)
    data = {
        "kernel": recording.kernel,
        "grid": recording.grid,
        "shape": recording.block,
        "block": recording.index,
        "launch": recording.launch,
        "threads": recording.threads,
        "kinds": KINDS,
        "memories": [memory.shown() for memory in memories],
        "events": events,
        "patterns": list(patterns),
        "names": list(names),
        "cut": bool(recording.cut or left_out),
        "left_out": left_out,
        "findings": [{"text": sentence, "steps": steps} for sentence, steps in found],
        **_source(source, {event.line for event in shown}),
        "file": Path(file).name,
    }
    return Encoded(data, left_out)


def main_file(recording: Recording) -> str:
    """Return the file with the most events."""
    files = [event.file for event in recording.events if event.line]
    return max(set(files), key=lambda file: (files.count(file), file), default="")


def _source(source: str, lines: set[int]) -> dict[str, Any]:
    """Return the lines with events and the function around them."""
    text = source.expandtabs(4).split("\n")  # compilers count lines at \n only
    if not lines or not text:
        return {"source": text[:200], "first_line": 1}
    first, last = min(lines), min(max(lines), len(text))
    while first > 1 and "__global__" not in text[first - 1] and first > min(lines) - 40:
        first -= 1
    while last < len(text) and text[last - 1].rstrip() != "}" and last < max(lines) + 20:
        last += 1
    return {"source": text[first - 1 : last], "first_line": first}


class _Memory:
    """A tensor or a shared array. ``known``: its contents according to the events so far."""

    def __init__(self, memory: RecordedMemory, source: str) -> None:
        self.memory = memory
        self.format, self.element = _FORMATS["f32"], ITEM_BYTES["f32"]
        self.name = memory.name or f"{memory.space} memory"
        if memory.space == "shared":
            self._read_declaration(source)
        elif memory.element_bytes:
            self.element = memory.element_bytes
        self.known: dict[int, Any] = {}

    def shown(self) -> dict[str, Any]:
        """Return the memory's data for the page."""
        memory = self.memory
        about = {"space": memory.space, "start": memory.start, "bytes": memory.bytes, "element": self.element}
        return {"name": self.name, **about}

    def _read_declaration(self, source: str) -> None:
        """Read the element type and the name of dynamic shared memory from its declaration; float by default."""
        if self.memory.name:
            found = re.search(rf"__shared__([^;{{}}]*?)\b({re.escape(self.memory.name)})\b", source)
        else:
            found = re.search(r"extern\s+__shared__([^;{}]*?)\b(\w+)\s*\[\s*\]", source)
        if not found:
            return
        self.name = found[2]
        dtypes = [DTYPE_OF.get(word, word) for word in re.findall(r"\w+", found[1])]
        dtype = next((dtype for dtype in dtypes if dtype in _FORMATS), "f32")
        self.format, self.element = _FORMATS[dtype], ITEM_BYTES[dtype]

    def values(self, event: Event) -> list[Any]:
        """Return all values of an event; nothing for a read whose values follow from earlier writes."""
        found: list[Any] = []
        news = False
        for offset, value in zip(event.offsets, event.values):
            if value is None:
                return []
            size = max(len(value), self.element)
            for at in range(0, len(value), self.element):
                element = _number(value.ljust(size, b"\0")[at : at + self.element], self.format)
                found.append(element)
                if self.known.get(offset + at) != element:
                    news = True
        if event.kind == "read":
            # The page has no values for elements that the block never wrote.
            return found if news and all(offset in self.known for offset in event.offsets) else []
        for offset, value, number in zip(event.offsets, event.values, range(len(event.values))):
            per = max(1, len(value or b"") // self.element)
            for i in range(per):
                self.known[offset + i * self.element] = found[number * per + i]
        return found[:1] if len(set(map(str, found))) == 1 else found


def _number(value: bytes, form: str) -> Any:
    """Decode a number for display. Infinity and NaN, which JSON lacks, become texts."""
    if form == "bf16":
        number = struct.unpack("<f", b"\0\0" + value)[0]
    else:
        number = struct.unpack("<" + form, value)[0]
    if isinstance(number, int):
        return number
    if not math.isfinite(number):
        return str(number)
    short = float(f"{number:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _row(
    event: Event,
    memories: Sequence[_Memory],
    file: str,
    patterns: dict[tuple[int, ...], int],
    names: dict[str, int],
    with_values: bool,
) -> list[Any]:
    mask = sum(1 << lane for lane in event.lanes)
    line = event.line if event.file == file else 0
    values: list[Any] = []
    if with_values and event.memory >= 0 and event.values:
        values = memories[event.memory].values(event)
    row = [
        KINDS.index(event.kind),
        event.warp,
        -1 if mask == (1 << LANES) - 1 else mask,
        line,
        names.setdefault(event.name, len(names) + 1) if event.name else 0,
        event.number,
        event.memory + 1,
        event.size,
        _offsets(event.offsets, patterns),
        values or 0,
    ]
    while row[-1] == 0:
        row.pop()
    return row


def _offsets(offsets: Sequence[int], patterns: dict[tuple[int, ...], int]) -> Any:
    if not offsets:
        return 0
    step = offsets[1] - offsets[0] if len(offsets) > 1 else 0
    if all(b - a == step for a, b in itertools.pairwise(offsets)):
        return [offsets[0], step]
    relative = tuple(offset - offsets[0] for offset in offsets)
    return [offsets[0], 0, patterns.setdefault(relative, len(patterns))]


# --- where findings happened ---


def jumps(recording: Recording, findings: Sequence[Finding], kept: int = MOST_EVENTS) -> list[tuple[str, list[int]]]:
    """Return a sentence for each finding about this block, with the steps (from 1) at which it happened."""
    found = []
    for finding in findings:
        if finding.kernel and finding.kernel != recording.kernel:
            continue
        sides: list[Side] = [finding, *([finding.other] if finding.other else [])]
        steps = _together(recording, [places for side in sides if (places := _places(recording, kept, side))])
        if steps:
            found.append((f"{finding.check}: {message(finding)}", sorted({step + 1 for step in steps})))
    return found


def _together(recording: Recording, places: Sequence[Sequence[int]]) -> list[int]:
    """Return one event for each side of a race: the two events with the fewest barriers, then steps, between them."""
    if len(places) < 2:
        return [own[0] for own in places]
    barriers = list(itertools.accumulate(event.kind == "barrier_complete" for event in recording.events))

    def apart(pair: tuple[int, int]) -> tuple[int, int]:
        return abs(barriers[pair[0]] - barriers[pair[1]]), abs(pair[0] - pair[1])

    pairs = [(one, other) for one in places[0][:MOST_PLACES] for other in places[1][:MOST_PLACES]]
    nearest = min(pairs, key=apart)
    return [*nearest]


def _places(recording: Recording, kept: int, side: Side) -> list[int]:
    """Return the events of a side's line and thread. If some have the finding's address, return only these."""
    if side.block is not None and side.block != recording.index:
        return []
    thread = None
    if side.thread is not None:
        x, y, z = side.thread
        thread = x + recording.block[0] * (y + recording.block[1] * z)
    on_line = [
        number
        for number, event in enumerate(recording.events[:kept])
        if event.warp != BLOCK
        and event.line == side.line
        and event.file == side.file
        and (thread is None or (event.warp == thread // LANES and thread % LANES in event.lanes))
    ]
    exact = [number for number in on_line if _is_access(recording, recording.events[number], side, thread)]
    return exact or on_line


def _is_access(recording: Recording, event: Event, side: Side, thread: int | None) -> bool:
    """Return whether an event is the access that a finding reports."""
    if event.kind not in ACCESSES or event.memory < 0 or side.memory is None:
        return False
    if ("write" in side.access) != ("write" in event.kind) and "atomic" not in side.access:
        return False
    memory = recording.memories[event.memory]
    if memory.name != side.memory.name:
        return False
    start = memory.start if memory.space == "shared" else 0
    lanes = [event.lanes.index(thread % LANES)] if thread is not None else range(len(event.lanes))
    return any(abs(event.offsets[i] - start - side.memory.offset) < max(4, event.size) for i in lanes)
