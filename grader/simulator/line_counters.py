"""The counters of source lines and kernels. ``checks/counting/counters.def`` defines them.

``python -m grader.simulator.counters`` prints what each means.

Nsight Compute's counters were compared for loads, stores, atomics and cp.async, not for bulk and tensor copies. The
sectors of those follow from the addresses; how the hardware splits a box into requests is not modeled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grader.simulator import counters, report_format


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
    communicates: bool = False
    """True if threads executed atomic operations or volatile accesses, through which they may synchronize."""


_NO_SUM = ("file", "line", "source", "worst_ways")
_SUMMED = tuple(item.name for item in dataclasses.fields(LineCounters) if item.name not in _NO_SUM)


def merge_lines(lines: Iterable[LineCounters]) -> list[LineCounters]:
    """Merge the counters by source line, in source order."""
    merged: dict[tuple[str, int], LineCounters] = {}
    for line in lines:
        known = merged.setdefault((line.file, line.line), LineCounters(line.file, line.line, line.source))
        for name in _SUMMED:
            if value := getattr(line, name):
                setattr(known, name, getattr(known, name) + value)
        known.worst_ways = max(known.worst_ways, line.worst_ways)
    return sorted(merged.values(), key=lambda line: (line.file, line.line))


def line_totals(lines: Sequence[LineCounters]) -> dict[str, float]:
    """Return the totals that are sums over lines."""
    totals: dict[str, float] = {name: sum(getattr(line, name) for line in lines) for name in counters.LINE}
    totals["global_bytes"] = totals["global_read_bytes"] + totals["global_written_bytes"]
    totals["ideal"] = totals["ideal_sectors"]
    totals["ideal_wavefronts"] = totals["ideal_shared_wavefronts"]
    totals["bank_conflict_ways"] = max((line.bank_conflict_ways for line in lines), default=0.0)
    return totals


def sum_totals(kernels: Sequence[KernelCounters]) -> dict[str, float]:
    """Return the sums of the kernels' totals."""
    totals = line_totals([])
    for name in ("launches", *counters.KERNEL, *(f"tensor_operations_{kind}" for kind in report_format.TENSOR_TYPES)):
        totals[name] = 0
    for kernel in kernels:
        for name, value in kernel.totals.items():
            totals[name] = totals.get(name, 0) + value
    return totals
