"""The simulator's findings and counters, with places in the learner's source.

``Report.from_json`` reads the text that libsim writes (``checks/report/report.cpp``), in which places are offsets in
the kernel library, and finds the source lines.

The totals are those of all launches of one report. ``checks/counting/counters.def`` defines them, and
``python -m grader.simulator.counters`` prints what each means.

Nsight Compute's counters were compared for loads, stores, atomics and cp.async, not for bulk and tensor copies. The
sectors of those follow from the addresses; how the hardware splits a box into requests is not modeled.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from grader.frontend import course_headers
from grader.simulator import counters, report_format
from grader.simulator.disassembly import operations_of
from grader.simulator.library import INCLUDE_DIRS
from grader.simulator.loops import endless_loop
from grader.simulator.recording import Recording, merge
from grader.simulator.symbolize import UNKNOWN, Location, Symbolizer, symbolizer
from grader.verdict import SourceLine
from grader.verdict.causes import causes_first
from grader.verdict.finding import Finding, Memory, Side, Space, merged
from grader.verdict.findings.barriers import BlockedThreads, EndlessLoop, Waiting
from grader.verdict.findings.races import NearbyAtomic

WARP, WIDEST, WAVEFRONT = 32, 16, 128
"""The lanes of a warp, the bytes of a thread's widest access, and the bytes of a wavefront of shared memory."""


@dataclass
class LineCounters:
    """The counters of one source line."""

    file: str
    line: int
    source: str = ""
    accesses: int = 0
    """Accesses by threads."""
    requests: int = 0
    """Requests of warps to global memory."""
    shared_requests: int = 0
    distributed_requests: int = 0
    """Requests to the shared memory of other blocks of the cluster."""
    constant_requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_wavefronts: int = 0
    ideal_shared_wavefronts: int = 0
    global_read_bytes: int = 0
    global_written_bytes: int = 0
    shared_bytes: int = 0
    distributed_bytes: int = 0
    constant_bytes: int = 0
    atomics: int = 0
    """Atomic operations by threads."""
    barriers: int = 0
    """Completed barriers, once per block."""
    tensor_operations: int = 0
    """Additions and multiplications on tensor cores."""
    operand_bytes: int = 0
    """Bytes that wgmma read in shared memory through matrix descriptors."""
    worst_ways: int = 0
    """Bank-conflict ways of the worst single request."""
    least_instructions: float = 0.0
    """The lower bound on executed instructions. The next two fields are lower bounds of the same kind."""
    least_wavefronts: float = 0.0
    least_l1_wavefronts: float = 0.0
    flops: int = 0
    """Floating-point operations by threads. This field and the following ones need a kernel built with operations."""
    special_functions: int = 0
    conversions: int = 0
    """Conversions between integers and floating-point numbers, by threads."""
    warp_flops: int = 0
    """The f32 and f64 operations, counted as if all 32 lanes of each executing warp took part.

    The next two fields are counted in the same way.
    """
    warp_half_flops: int = 0
    warp_special_functions: int = 0
    executions: int = 0
    """Executions by threads. If the line has several basic blocks, the count is that of the block with the fewest
    active lanes."""
    warp_executions: int = 0
    """The minimum for a warp: the largest count of one lane, summed over the warps."""
    possible_lanes: int = 0
    """The number of executions if every lane of the executing warps had taken part."""

    @property
    def active_lanes(self) -> float:
        """The average number of lanes that took part when a warp executed this line; 0 if it is unknown."""
        return self.executions / self.warp_executions if self.warp_executions else 0.0

    @property
    def diverges(self) -> bool:
        """True if existing lanes were inactive. A last warp with fewer threads is not divergence."""
        return self.executions < self.possible_lanes

    @property
    def lanes_per_request(self) -> float:
        """The average number of lanes per request: below 32, the threads of a warp diverged."""
        requests = self.requests + self.shared_requests + self.distributed_requests + self.constant_requests
        return self.accesses / requests if requests else 0.0

    @property
    def bank_conflict_ways(self) -> float:
        """Wavefronts per ideal wavefront; 1 means no conflict, 0 no access to shared memory."""
        return self.shared_wavefronts / self.ideal_shared_wavefronts if self.ideal_shared_wavefronts else 0.0

    @property
    def counters(self) -> dict[str, float]:
        """All nonzero counters by name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("file", "line", "source"):
            del values[name]
        values["lanes_per_request"] = round(self.lanes_per_request, 2)
        values["bank_conflict_ways"] = round(self.bank_conflict_ways, 2)
        values["active_lanes"] = round(self.active_lanes, 2)
        return {name: value for name, value in values.items() if value}


@dataclass
class KernelCounters:
    """The counters of all launches of one kernel."""

    name: str
    launches: int = 0
    blocks: int = 0
    """The number of blocks in all launches together. ``threads`` is summed in the same way."""
    threads: int = 0
    fits_device: bool = False
    """True if the program queried the number of SMs, so that its grid may depend on it."""
    grid: list[int] = field(default_factory=list)
    """The grid of the last launch."""
    block: list[int] = field(default_factory=list)
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    lines: list[LineCounters] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)


@dataclass
class TracedRequest:
    """One request of a warp, with the address of each active lane."""

    file: str
    line: int
    space: str
    """global, shared or constant."""
    write: bool
    name: str
    """The name of the tensor, variable or shared array."""
    kernel: str
    block: list[int]
    warp: int
    index: int
    """The number of earlier requests of this warp at this place."""
    size: int
    """Bytes per lane."""
    addresses: dict[int, int]
    """The byte offset by lane: from the tensor's first element; in shared memory from the block's first byte."""


@dataclass
class Report:
    """The simulator's findings and counters."""

    findings: list[Finding] = field(default_factory=list)
    lines: list[LineCounters] = field(default_factory=list)
    kernels: list[KernelCounters] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    trace: list[TracedRequest] = field(default_factory=list)
    """Recorded requests, if requested (``sim_configure("trace", "4")``)."""
    recording: Recording | None = None
    """The recording of one block, if requested (``sim_configure("record", "0,0,0,0")``)."""
    dropped_findings: int = 0
    """The number of findings beyond the limit, which were dropped."""
    sample: report_format.Sample | None = None
    """How much was checked, if only some blocks or launches were."""

    @classmethod
    def from_json(cls, text: str, library: Path | str, source: Path | str | None = None) -> Report:
        """Return the report from libsim's JSON, or raise ``InvalidReport``. ``source``: the learner's file."""
        data = report_format.read(text)
        return _Reader(data, Path(library), Path(source) if source is not None else None).read()

    @property
    def source_lines(self) -> list[SourceLine]:
        """The counters of the source lines in the form of the verdict, in source order."""
        return [
            SourceLine(line.file, line.line, line.source, {name: float(value) for name, value in line.counters.items()})
            for line in self.lines
        ]

    def requests(self, line: int) -> list[TracedRequest]:
        """Return the recorded requests of a source line."""
        return [request for request in self.trace if request.line == line]


# Headers that convert 16-bit numbers to floats and back. Compilers mix that arithmetic with the kernel's, so only
# marked operations count.
_EMULATION = ("small_float.h", "half_functions.h", "cuda_fp16.h", "cuda_bf16.h")
_CONVERSIONS = ("math.h", "ptx.h")
"""Headers with conversion functions that the simulator implements by several instructions. A call in the function marks
these instructions as one conversion."""


class _Reader:
    """Turns libsim's JSON into a report."""

    def __init__(self, data: report_format.Report, library: Path, source: Path | None) -> None:
        self.data = data
        self.source = source
        self.symbols: Symbolizer = symbolizer(library, source)
        self.offsets = self._offsets(library)
        self.locations = self.symbols.locate(self.offsets.values())
        self._sources: dict[str, Sequence[str]] = {}
        """The lines of each file read so far."""

    def _offsets(self, library: Path) -> dict[int, int]:
        """Return the offset of each site in the kernel library. Leave out sites in other libraries."""
        names = [Path(name) for name in self.data.modules]
        modules = [name in (library, library.resolve()) for name in names]
        # The library may have run under another name: in a jail, or before it was moved into the cache.
        if not any(modules):
            modules = [not name.name.startswith("lib") for name in names]
        return {site: offset for site, module, offset in self.data.sites if modules[module]}

    def read(self) -> Report:
        kernels = [self._kernel(kernel, number) for number, kernel in enumerate(self.data.kernels)]
        totals = _sum_totals(kernels)
        totals |= {name: getattr(self.data, name) for name in counters.RUN}
        totals["global_bytes"] += self.data.copied_bytes
        totals["blocks"] = max((kernel.blocks for kernel in self.data.kernels), default=0)
        lines = _merge_lines(line for kernel in kernels for line in kernel.lines)
        totals["bank_conflict_ways"] = max((line.bank_conflict_ways for line in lines), default=0.0)
        if self.data.executed is not None:
            totals |= self._operation_totals(lines)
        return Report(
            findings=self._findings(),
            lines=[line for line in lines if line.line],
            kernels=kernels,
            totals=totals,
            trace=[self._traced(traced) for traced in self.data.traces],
            recording=self._recording(),
            dropped_findings=self.data.dropped_findings,
            sample=self.data.sample,
        )

    # -- counters --

    def _location(self, site: int) -> Location:
        offset = self.offsets.get(site)
        return self.locations[offset] if offset is not None else UNKNOWN

    def _operation_totals(self, lines: Sequence[LineCounters], kernel: int | None = None) -> dict[str, float]:
        """Return the totals of one kernel or of all. ``active_lanes`` is the average over all basic blocks."""
        executed = [row for row in self.data.executed or [] if kernel in (None, row[1])]
        warp_executions = sum(row[3] for row in executed)
        return {
            **{name: sum(getattr(line, name) for line in lines) for name in counters.OPERATION},
            "active_lanes": sum(row[2] for row in executed) / warp_executions if warp_executions else 0.0,
        }

    def _operations(self, kernel: int) -> list[LineCounters]:
        """Return the operations that a kernel's code executed, if they were counted."""
        executed = [row for row in self.data.executed or [] if row[1] == kernel]
        if not executed:
            return []
        blocks = operations_of(self.symbols.library)
        computing = {o.address + 1 for row in executed for o in blocks.get(row[0], ())}
        emulated = self.symbols.inlined_from(computing, _EMULATION)
        converting = {o.address + 1 for row in executed for o in blocks.get(row[0], ()) if o.conversions}
        emulated |= self.symbols.inlined_from(converting, _CONVERSIONS)
        places = self.symbols.locate(computing | {row[0] for row in executed})
        counted: list[LineCounters] = []
        worst: dict[tuple[str, int], LineCounters] = {}
        for start, _, executions, warp_executions, possible in executed:
            on_lines = {places[start]}
            for operation in blocks.get(start, ()):
                if not operation.marked and operation.address + 1 in emulated:
                    continue
                place = places[operation.address + 1]
                on_lines.add(place)
                line = LineCounters(place.file, place.line, self._source_line(place))
                line.flops = operation.flops * executions
                line.special_functions = operation.special * executions
                line.conversions = operation.conversions * executions
                issued = WARP * warp_executions
                line.warp_special_functions = operation.special * issued
                if operation.marked:
                    line.warp_half_flops = operation.flops * issued
                else:
                    line.warp_flops = operation.flops * issued
                counted.append(line)
            # Compilers attribute code where branches rejoin to a line of a branch. Of a line's basic blocks, the one
            # with the fewest active lanes is most likely the branch itself.
            for place in on_lines:
                line = LineCounters(place.file, place.line, self._source_line(place))
                line.executions, line.warp_executions, line.possible_lanes = executions, warp_executions, possible
                known = worst.setdefault((place.file, place.line), line)
                if line.active_lanes < known.active_lanes:
                    worst[place.file, place.line] = line
        return [*counted, *worst.values()]

    def _kernel(self, data: report_format.Kernel, number: int) -> KernelCounters:
        counted = []
        for site in data.sites:
            place = self._location(site.site)
            line = LineCounters(place.file, place.line, self._source_line(place))
            line.accesses = site.accesses
            write = "write" in site.access
            if site.space == "global":
                line.requests, line.sectors, line.ideal_sectors = (
                    site.requests,
                    site.sectors,
                    site.ideal_sectors,
                )
                if write or site.access == "atomic":
                    line.global_written_bytes = site.bytes
                else:
                    line.global_read_bytes = site.bytes
            elif site.space == "shared":
                line.shared_requests, line.shared_bytes = site.requests, site.bytes
                line.shared_wavefronts = site.wavefronts
                line.ideal_shared_wavefronts = site.ideal_wavefronts
                line.worst_ways = site.worst_ways
            elif site.space == "distributed":
                line.distributed_requests, line.distributed_bytes = site.requests, site.bytes
            else:
                line.constant_requests, line.constant_bytes = site.requests, site.bytes
            if site.access == "atomic":
                line.atomics = site.accesses
            elif "async" not in site.access and site.space in ("global", "shared"):
                joined = min(site.size, WIDEST) / WIDEST
                wavefronts = site.bytes / WAVEFRONT
                line.least_instructions = joined * site.requests
                if site.space == "shared":
                    line.least_wavefronts = wavefronts = max(wavefronts, joined * site.wavefronts)
                line.least_l1_wavefronts = wavefronts
            counted.append(line)
        for number_of_site, count in data.barrier_sites:
            place = self._location(number_of_site)
            counted.append(LineCounters(place.file, place.line, self._source_line(place), barriers=count))
        for number_of_site, count in data.tensor_sites:
            place = self._location(number_of_site)
            counted.append(LineCounters(place.file, place.line, self._source_line(place), tensor_operations=count))
        for number_of_site, count in data.operand_sites:
            place = self._location(number_of_site)
            counted.append(LineCounters(place.file, place.line, self._source_line(place), operand_bytes=count))
        lines = _merge_lines([*counted, *self._operations(number)])
        kernel = KernelCounters(
            data.name,
            data.launches,
            data.blocks,
            data.threads,
            bool(self.data.sms_were_asked),
            data.grid,
            data.block,
            data.static_shared_bytes,
            data.dynamic_shared_bytes,
            lines,
        )
        kernel.totals = _line_totals(lines)
        kernel.totals["launches"] = data.launches
        for kind, operations in zip(report_format.TENSOR_TYPES, data.tensor_operations):
            kernel.totals[f"tensor_operations_{kind}"] = operations
        for name in counters.KERNEL:
            kernel.totals[name] = getattr(data, name)
        if self.data.executed is not None:
            kernel.totals |= self._operation_totals(lines, number)
        return kernel

    def _recording(self) -> Recording | None:
        if self.data.recording is None:
            return None
        return merge(self.data.recording, {site: self._location(site) for site in self.offsets})

    def _traced(self, data: report_format.Traced) -> TracedRequest:
        place = self._location(data.site)
        return TracedRequest(
            file=place.file,
            line=place.line,
            space=data.space,
            write="write" in data.access,
            name=data.name,
            kernel=data.kernel,
            block=data.block,
            warp=data.warp,
            index=data.number,
            size=data.size,
            addresses=dict(zip(data.lanes, data.offsets)),
        )

    # -- findings --

    def _findings(self) -> list[Finding]:
        findings = causes_first(merged(self._finding(data) for data in self.data.findings))
        # A race often also shows as a read of an uninitialized value: keep one finding.
        races = {(_name(f), place) for f in findings if f.check == "racecheck" for place in f.places}
        findings = [f for f in findings if f.kind != "uninitialized_read" or (_name(f), f.place) not in races]
        # If the access of an out-of-bounds index also leaves the memory, keep only the finding that has the distance.
        outside = {f.place for f in findings if f.kind == "out_of_bounds"}
        return [f for f in findings if f.kind != "index_out_of_bounds" or f.place not in outside]

    def _place(self, data: report_format.Side) -> Location:
        offset = self.offsets.get(data.site)
        place = self.symbols.with_column(offset) if offset is not None else UNKNOWN
        if not place.line and data.fallback in self.offsets:
            place = self.symbols.with_column(self.offsets[data.fallback])
        if not place.line and data.line:  # compilers drop the lines of merged calls
            place = Location(self.symbols.file_name, data.line)
        return place

    def _side(self, data: report_format.Side, place: Location, size: int, memory: Memory | None) -> Side:
        return Side(
            access=data.access,
            bytes=size,
            memory=memory,
            file=place.file,
            line=place.line,
            column=place.column,
            source_line=self._source_line(place),
            block=data.block,
            thread=data.thread,
            inside=place.inside,
            work=data.work,
            stream=data.stream,
        )

    def _finding(self, data: report_format.Finding) -> Finding:
        """Convert the finding to the verdict's form."""
        place, other_place = self._place(data), self._place(data.other) if data.other else UNKNOWN
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
            places = [self._location(site.site) for site in atomics if site.space == "global"]
        else:
            places = [place for site in atomics if _LOCK.search(self._source_line(place := self._location(site.site)))]
        return next((f"{Path(place.file).name}:{place.line}" for place in places if place.line), "")

    def _loop_around(self, place: Location) -> str:
        """Return the first line of the loop that does not end, if the source shows it."""
        line = endless_loop("\n".join(self._sources.get(place.file, ())), place.line)
        return f"{Path(place.file).name}:{line}" if line else ""

    def _placed(self, waiting: Waiting) -> Waiting:
        """Return blocked threads with the file and line of their call."""
        place = self._location(waiting.site)
        file = Path(place.file or self.symbols.file_name).name
        return structs.replace(waiting, file=file, line=place.line or waiting.line, site=0)

    def _source_line(self, place: Location) -> str:
        if place.file not in self._sources:
            # Do not show other files: a #line directive can put any path of this machine into the debug information.
            header = _own_headers().get(os.path.normpath(place.file), "")
            ours = not self.source or place.file == str(self.source)
            self._sources[place.file] = _source_lines(place.file if ours else header)
        lines = self._sources[place.file]
        return lines[place.line - 1] if 0 < place.line <= len(lines) else ""


_LINE_DIRECTIVE = re.compile(r"\s*#\s*line\s+(\d+)")
_MOST_LINES = 1_000_000
_LOCK = re.compile(r"\bwhile\b.*(?:CAS|Exch|exchange|test_and_set)")
"""A line of source that waits for a lock: a while loop around an atomic operation."""


@functools.cache
def _own_headers() -> dict[str, str]:
    """Return the paths of the simulator's and the course's headers: the only files shown besides the kernel's."""
    files = [*(path for folder in INCLUDE_DIRS for path in folder.rglob("*")), *course_headers.FOLDER.glob("*.cuh")]
    return {str(path): str(path) for path in files if path.is_file()}


@functools.lru_cache(maxsize=16)
def _lines_of_version(file: str, stamp: tuple[int, int]) -> Sequence[str]:
    return _as_compiled(Path(file).read_text(encoding="utf-8", errors="replace").splitlines())


def _as_compiled(lines: Sequence[str]) -> Sequence[str]:
    """Return the source lines by line number, as renumbered by ``#line`` directives."""
    if not any(_LINE_DIRECTIVE.match(line) for line in lines):
        return lines
    numbered: dict[int, str] = {}
    number = 1
    for line in lines:
        if match := _LINE_DIRECTIVE.match(line):
            number = min(int(match[1]), _MOST_LINES)
        else:
            numbered[number] = line
            number += 1
    return [numbered.get(number, "") for number in range(1, max(numbered, default=0) + 1)]


def _source_lines(file: str) -> Sequence[str]:
    try:
        stat = Path(file).stat()
        return _lines_of_version(file, (stat.st_mtime_ns, stat.st_size)) if file else ()
    except OSError:
        return ()


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


_NO_SUM = ("file", "line", "source", "worst_ways")
_SUMMED = tuple(item.name for item in dataclasses.fields(LineCounters) if item.name not in _NO_SUM)


def _merge_lines(lines: Iterable[LineCounters]) -> list[LineCounters]:
    """Merge the counters by source line, in source order."""
    merged: dict[tuple[str, int], LineCounters] = {}
    for line in lines:
        known = merged.setdefault((line.file, line.line), LineCounters(line.file, line.line, line.source))
        for name in _SUMMED:
            if value := getattr(line, name):
                setattr(known, name, getattr(known, name) + value)
        known.worst_ways = max(known.worst_ways, line.worst_ways)
    return sorted(merged.values(), key=lambda line: (line.file, line.line))


def _line_totals(lines: Sequence[LineCounters]) -> dict[str, float]:
    totals: dict[str, float] = {name: sum(getattr(line, name) for line in lines) for name in counters.LINE}
    totals["global_bytes"] = totals["global_read_bytes"] + totals["global_written_bytes"]
    totals["ideal"] = totals["ideal_sectors"]
    totals["ideal_wavefronts"] = totals["ideal_shared_wavefronts"]
    totals["bank_conflict_ways"] = max((line.bank_conflict_ways for line in lines), default=0.0)
    return totals


def _sum_totals(kernels: Sequence[KernelCounters]) -> dict[str, float]:
    totals = _line_totals([])
    for name in ("launches", *counters.KERNEL, *(f"tensor_operations_{kind}" for kind in report_format.TENSOR_TYPES)):
        totals[name] = 0
    for kernel in kernels:
        for name, value in kernel.totals.items():
            totals[name] = totals.get(name, 0) + value
    return totals
