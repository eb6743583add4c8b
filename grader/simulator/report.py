"""The simulator's findings and counters, with places in the learner's source.

``Report.from_json`` reads the text that libsim writes (``checks/report/report.cpp``), in which places are offsets in
the kernel library, and finds the source lines. The totals are those of all launches of one report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from grader.simulator import counters, report_format
from grader.simulator.count_reader import CountReader
from grader.simulator.finding_reader import FindingReader
from grader.simulator.line_counters import KernelCounters, LineCounters, merge_lines, sum_totals
from grader.simulator.places import Places
from grader.simulator.recording import Recording, merge
from grader.simulator.symbolize import Location
from grader.verdict import SourceLine
from grader.verdict.finding import Finding


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
        return _report(data, Places(data, Path(library), Path(source) if source is not None else None))

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


def _report(data: report_format.Report, places: Places) -> Report:
    counts = CountReader(data, places)
    kernels = [counts.kernel(kernel, number) for number, kernel in enumerate(data.kernels)]
    totals = sum_totals(kernels)
    totals |= {name: getattr(data, name) for name in counters.RUN}
    totals["global_bytes"] += data.copied_bytes
    totals["blocks"] = max((kernel.blocks for kernel in data.kernels), default=0)
    lines = merge_lines(line for kernel in kernels for line in kernel.lines)
    totals["bank_conflict_ways"] = max((line.bank_conflict_ways for line in lines), default=0.0)
    if data.executed is not None:
        totals |= counts.operation_totals(lines)
    return Report(
        findings=FindingReader(data, places).read(),
        lines=[line for line in lines if line.line],
        kernels=kernels,
        totals=totals,
        trace=[_traced(traced, places.location(traced.site)) for traced in data.traces],
        recording=merge(data.recording, places.locations()) if data.recording is not None else None,
        dropped_findings=data.dropped_findings,
        sample=data.sample,
    )


def _traced(data: report_format.Traced, place: Location) -> TracedRequest:
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
