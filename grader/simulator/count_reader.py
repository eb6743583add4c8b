"""Reads the counters of a report: what each site counted, and the operations of each executed basic block."""

from __future__ import annotations

from collections.abc import Sequence

from grader.simulator import counters, report_format
from grader.simulator.disassembly import operations_of
from grader.simulator.line_counters import KernelCounters, LineCounters, line_totals, merge_lines
from grader.simulator.places import Places
from grader.simulator.symbolize import Location

WARP, WIDEST, WAVEFRONT = 32, 16, 128
"""The lanes of a warp, the bytes of a thread's widest access, and the bytes of a wavefront of shared memory."""

# Headers that convert 16-bit numbers to floats and back. Compilers mix that arithmetic with the kernel's, so only
# marked operations count.
_EMULATION = ("small_float.h", "half_type.h", "half_functions.h", "cuda_fp16.h", "cuda_bf16.h")
_CONVERSIONS = ("math.h", "ptx.h")
"""Headers with conversion functions that the simulator implements by several instructions. A call in the function marks
these instructions as one conversion."""


class CountReader:
    """Assigns the counters of a report to source lines and kernels."""

    def __init__(self, data: report_format.Report, places: Places) -> None:
        self.data = data
        self.places = places
        self.symbols = places.symbols

    def operation_totals(self, lines: Sequence[LineCounters], kernel: int | None = None) -> dict[str, float]:
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
                line = self._line(place)
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
                line = self._line(place)
                line.executions, line.warp_executions, line.possible_lanes = executions, warp_executions, possible
                known = worst.setdefault((place.file, place.line), line)
                if line.active_lanes < known.active_lanes:
                    worst[place.file, place.line] = line
        return [*counted, *worst.values()]

    def kernel(self, data: report_format.Kernel, number: int) -> KernelCounters:
        """Return the counters of a kernel, the one with this number in the report."""
        counted = [self._accesses(site) for site in data.sites]
        for name, sites in (
            ("barriers", data.barrier_sites),
            ("tensor_operations", data.tensor_sites),
            ("operand_bytes", data.operand_sites),
        ):
            for number_of_site, count in sites:
                line = self._line(self.places.location(number_of_site))
                setattr(line, name, count)
                counted.append(line)
        lines = merge_lines([*counted, *self._operations(number)])
        kernel = KernelCounters(
            name=data.name,
            launches=data.launches,
            blocks=data.blocks,
            threads=data.threads,
            fits_device=bool(self.data.sms_were_asked),
            grid=data.grid,
            block=data.block,
            static_shared_bytes=data.static_shared_bytes,
            dynamic_shared_bytes=data.dynamic_shared_bytes,
            lines=lines,
            communicates=any(site.access == "atomic" or "volatile" in site.access for site in data.sites),
        )
        kernel.totals = line_totals(lines)
        kernel.totals["launches"] = data.launches
        for kind, operations in zip(report_format.TENSOR_TYPES, data.tensor_operations):
            kernel.totals[f"tensor_operations_{kind}"] = operations
        for name in counters.KERNEL:
            kernel.totals[name] = getattr(data, name)
        if self.data.executed is not None:
            kernel.totals |= self.operation_totals(lines, number)
        return kernel

    def _accesses(self, site: report_format.Site) -> LineCounters:
        line = self._line(self.places.location(site.site))
        line.accesses = site.accesses
        write = "write" in site.access
        if site.space == "global":
            line.requests, line.sectors, line.ideal_sectors = site.requests, site.sectors, site.ideal_sectors
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
        return line

    def _line(self, place: Location) -> LineCounters:
        return LineCounters(place.file, place.line, self.places.source_line(place))
