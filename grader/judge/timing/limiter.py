"""From what the simulator counted, the least time that a named GPU needs for it, unit by unit: a bound, never a prediction.

Each unit of a GPU can do so much in a cycle and no more, so work on it takes at least work / rate, whatever else
happens meanwhile. The longest of these times is a bound of the kernel's. What makes it one:

* Rates are those of a data sheet or whitepaper at the highest clock (``grader/judge/timing/gpus.py``), which no kernel
  reaches.
* Of the work only what must be done is taken:

  ============== ==================================================================================================
  dram           sectors that were read, for the first time and from a cache that is cold at the beginning; of those
                 written, what is more than the L2 cache can keep
  l2             of each launch the distinct sectors that it read, or that it wrote, if those are more: its L1 caches
                 are empty at first, and all else they might serve
  tensor         operations on tensor cores, each type at its own rate
  special        special functions. Some are no instruction of that unit, but 20 or more others, which take longer
  f16, f32       additions and multiplications on CUDA cores, as if every one was half of a fused multiply-add; a
                 warp's instruction takes as long for one lane as for 32. f64 counts as f32, which is faster
  shared         wavefronts of shared memory that remain if a compiler joins neighboring accesses into one of 16 bytes
  l1             these, and as many as the bytes need that warps load from and store to global memory: it is one path
  issue          instructions of warps that the work above needs, loops and addresses not counted
  launches       ``LAUNCH_US`` for each launch, as they follow each other in a stream
  ============== ==================================================================================================

* A block runs on one multiprocessor, a warp on a quarter of one: a kernel with fewer blocks or warps than there are
  cannot use the rest. (Not so where the program has asked how many multiprocessors there are: the simulated GPU has
  few, and the grid may be another on a real one.) All launches of a kernel are taken together for that, as if they
  overlapped.

One thing is taken for granted: that the GPU's compiler computes and reads what the source says, as the simulator's
compiler left it. Where the former finds that two reads or operations are the same, and the latter did not, less is
done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.frontend.toolchain.gpus import Gpu
from grader.verdict import TimeBound, UnitTime
from grader.verdict.facts import Unit

if TYPE_CHECKING:
    from grader.simulator.report import KernelCounters

LAUNCH_US = 0.5
"""Microseconds of one launch after another. No data sheet gives it; ``python -m tests.gpu.bounds`` measures that an H200 takes longer."""

WARP, QUARTERS = 32, 4


def time_bound(
    kernels: Sequence[KernelCounters],
    gpu: Gpu,
    case: str = "",
    dtype: str = "",
    dims: Mapping[str, Any] | None = None,
) -> TimeBound:
    """Return the bound for all launches of these kernels together. Arithmetic units need counted operations."""
    cycle, clock = gpu.per_cycle, gpu.clock
    counted = any("warp_flops" in kernel.totals for kernel in kernels)
    units = [UnitTime("dram", _dram_bytes(kernels, gpu), 1e6 * _dram_bytes(kernels, gpu) / gpu.bandwidth)]

    def add(
        unit: Unit, work: Sequence[float], per_cycle: float, by_warps: bool = False, sums: float | None = None
    ) -> None:
        """``work`` of each kernel, of which a multiprocessor does so much in a cycle."""
        parts = [_used(kernel, gpu, by_warps) for kernel in kernels]
        whole = [sum(work) / gpu.sms, *(amount / used for amount, used in zip(work, parts) if used)]
        units.append(UnitTime(unit, sum(work) if sums is None else sums, 1e6 * max(whole) / per_cycle / clock))

    def each(name: str) -> list[float]:
        return [kernel.totals.get(name, 0.0) for kernel in kernels]

    moved = [max(pair) for pair in zip(each("touched_bytes_read"), each("touched_bytes_written"))]
    add("l2", moved, cycle.l2_bytes)
    add("tensor", [_tensor_cycles(kernel, gpu) for kernel in kernels], 1, True, sum(each("tensor_operations")))
    if counted:
        add("special", each("warp_special_functions"), cycle.special, True)
        add("f16", each("warp_half_flops"), 2 * cycle.f16, True)
        add("f32", each("warp_flops"), 2 * cycle.f32, True)
    add("shared", each("least_wavefronts"), cycle.wavefronts)
    add("l1", each("least_l1_wavefronts"), cycle.wavefronts)
    add("issue", [_instructions(kernel) for kernel in kernels], cycle.instructions, True)
    launches = sum(each("launches"))
    units.append(UnitTime("launches", launches, LAUNCH_US * launches))
    blocks = (
        0 if any(kernel.fits_device for kernel in kernels) else max((kernel.blocks for kernel in kernels), default=0)
    )
    return TimeBound(gpu.name, case, dtype, dict(dims or {}), units, counted, blocks, gpu.sms)


def _used(kernel: KernelCounters, gpu: Gpu, by_warps: bool) -> float:
    """How many multiprocessors a kernel can occupy at most; by warps, a part of one counts as such."""
    if kernel.fits_device:
        return gpu.sms
    blocks = min(gpu.sms, kernel.blocks)
    if not by_warps:
        return blocks
    threads = math.prod(kernel.block)
    if kernel.threads == kernel.blocks * threads:
        warps = kernel.blocks * -(-threads // WARP)
    else:  # launches with different blocks, each of which may have a last warp that is not full
        warps = (kernel.threads + (WARP - 1) * kernel.blocks) // WARP
    return min(blocks, warps / QUARTERS)


def _dram_bytes(kernels: Sequence[KernelCounters], gpu: Gpu) -> float:
    read = sum(kernel.totals.get("first_read_bytes", 0.0) for kernel in kernels)
    written = max((k.totals.get("touched_bytes_written", 0.0) / max(1, k.launches) for k in kernels), default=0.0)
    return read + max(0.0, written - gpu.l2_bytes)


def _tensor_cycles(kernel: KernelCounters, gpu: Gpu) -> float:
    """Cycles of one multiprocessor."""
    known = {
        name.removeprefix("tensor_operations_"): operations
        for name, operations in kernel.totals.items()
        if name.startswith("tensor_operations_")
    }
    rest = max(0.0, kernel.totals.get("tensor_operations", 0.0) - sum(known.values()))
    return sum(operations / gpu.tensor(name) for name, operations in {**known, "": rest}.items())


def _instructions(kernel: KernelCounters) -> float:
    """Return the least number of warp instructions: a multiply-add is two operations per lane, of 16-bit pairs four."""
    totals = kernel.totals
    arithmetic = totals.get("warp_flops", 0.0) / 2 + totals.get("warp_half_flops", 0.0) / 4
    return totals.get("least_instructions", 0.0) + (arithmetic + totals.get("warp_special_functions", 0.0)) / WARP
