"""Reads the findings of a report, with their places, and leaves out those that follow from another finding."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from grader.simulator import report_format
from grader.simulator.loops import endless_loop
from grader.simulator.places import Places
from grader.simulator.symbolize import UNKNOWN, Location
from grader.verdict.causes import causes_first
from grader.verdict.finding import Finding, Memory, Side, Space, merged
from grader.verdict.findings.barriers import BlockedThreads, EndlessLoop, Waiting
from grader.verdict.findings.races import NearbyAtomic

_LOCK = re.compile(r"\bwhile\b.*(?:CAS|Exch|exchange|test_and_set)")
"""A line of source that waits for a lock: a while loop around an atomic operation."""
_TAKES_A_NUMBER = re.compile(
    r"(?:(?<![=!<>])=(?!=)|\breturn\b)[^;]*?(?:\batomic(?:Add|Inc|Sub|Dec)\w*|fetch_(?:add|sub))\((?!.*,\s*0[uU]?\))"
)
"""Matches a line that stores or returns the old value of a counter, for example to take a tile from a queue.

An addition of 0 only reads the counter, so it does not match.
"""


class FindingReader:
    """Turns the findings of libsim's report into those of a verdict."""

    def __init__(self, data: report_format.Report, places: Places) -> None:
        self.data = data
        self.places = places

    def read(self) -> list[Finding]:
        """Return the findings, those first that may cause others."""
        findings = causes_first(merged(self._finding(data) for data in self.data.findings))
        # A race often also shows as a read of an uninitialized value: keep one finding.
        races = {(_name(f), place) for f in findings if f.check == "racecheck" for place in f.places}
        findings = [f for f in findings if f.kind != "uninitialized_read" or (_name(f), f.place) not in races]
        # If the access of an out-of-bounds index also leaves the memory, keep only the finding that has the distance.
        outside = {f.place for f in findings if f.kind == "out_of_bounds"}
        return [f for f in findings if f.kind != "index_out_of_bounds" or f.place not in outside]

    def _side(self, data: report_format.Side, place: Location, size: int, memory: Memory | None) -> Side:
        return Side(
            access=data.access,
            bytes=size,
            memory=memory,
            file=place.file,
            line=place.line,
            column=place.column,
            source_line=self.places.source_line(place),
            block=data.block,
            thread=data.thread,
            inside=place.inside,
            work=data.work,
            stream=data.stream,
        )

    def _finding(self, data: report_format.Finding) -> Finding:
        """Convert the finding to the verdict's form."""
        place, other_place = self.places.of_side(data), self.places.of_side(data.other) if data.other else UNKNOWN
        if data.other and data.line and data.other.line and _at(place) == _at(other_place) and not place.inside:
            # The compiler merged the calls of two barriers, so their return addresses are equal. Show the line numbers
            # that the calls passed (``__LINE__``) instead, unless they are lines of a header.
            place, other_place = Location(place.file, data.line), Location(other_place.file, data.other.line)
        memory = _memory(data.memory)
        side, other = self._side(data, place, data.bytes, memory), None
        if data.other and (other_place.line or data.other.block is not None or data.other.work):
            other = self._side(data.other, other_place, data.bytes, memory)
            if data.check == "racecheck" and (not other.line, other.place) < (not side.line, side.place):
                # The schedule decides which side comes first; sort them in source order.
                side, other = other, side
        payload = data.facts
        if isinstance(payload, NearbyAtomic):
            payload = NearbyAtomic(atomic=self._atomic_of(data, side, other))
        elif isinstance(payload, BlockedThreads):
            payload = structs.replace(payload, waits=[self._placed(waiting) for waiting in payload.waits])
        elif isinstance(payload, EndlessLoop):
            payload = structs.replace(payload, loop=self._loop_around(place))
        return Finding(
            **structs.asdict(side),
            check=data.check,
            kind=data.kind,
            other=other,
            payload=payload,
            kernel=data.kernel,
            count=data.count,
        )

    def _atomic_of(self, data: report_format.Finding, *sides: Side | None) -> str:
        """Return the place of an atomic operation that a reader might believe to order the two accesses.

        Within a block, a barrier could order the accesses as well. So there, only atomic operations that may take a
        lock are considered.
        """
        if any(side is not None and side.access == "atomic" for side in sides):
            return ""
        sites = [site for counted in self.data.kernels if counted.name == data.kernel for site in counted.sites]
        atomics = [site for site in sites if site.access == "atomic"]
        if data.kind == "between_blocks":
            places = [self.places.location(site.site) for site in atomics if site.space == "global"]
            # An operation that takes a tile before both accesses signals nothing about them.
            first = min((side.line for side in sides if side is not None), default=0)
            places = [
                place
                for place in places
                if place.in_kernel >= first or not _TAKES_A_NUMBER.search(self.places.source_line(place))
            ]
        else:
            places = [self.places.location(site.site) for site in atomics]
            places = [place for place in places if _LOCK.search(self.places.source_line(place))]
        return next((f"{Path(place.file).name}:{place.in_kernel or place.line}" for place in places if place.line), "")

    def _loop_around(self, place: Location) -> str:
        """Return the first line of the loop that does not end, if the source shows it."""
        line = endless_loop(self.places.file_text(place), place.line, place.in_kernel)
        return f"{Path(place.file).name}:{line}" if line else ""

    def _placed(self, waiting: Waiting) -> Waiting:
        """Return blocked threads with the file and line of their call."""
        place = self.places.location(waiting.site)
        file = Path(place.file or self.places.symbols.file_name).name
        return structs.replace(waiting, file=file, line=place.line or waiting.line, site=0)


def _at(place: Location) -> tuple[str, int, str]:
    return Path(place.file).name, place.line, place.inside


def _name(finding: Finding) -> str:
    return finding.memory.name or finding.memory.kind if finding.memory else ""


_SPACES: dict[str, Space] = {
    "__shared__": "shared",
    "dynamic shared": "shared",
    "__constant__": "constant",
    "local": "local",
}


def _memory(data: report_format.Memory | None) -> Memory | None:
    if data is None:
        return None
    facts = {name: getattr(data, name) for name in data.__struct_fields__ if name != "id"}
    memory = Memory(**facts, space=_SPACES.get(data.kind, "global"))
    return structs.replace(memory, index=memory.index_at(memory.offset))
