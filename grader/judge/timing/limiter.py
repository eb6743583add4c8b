"""Lower bounds of the time on a named GPU, by unit, from the simulator's counters: a bound, never a prediction.

Each unit of a GPU has a maximum rate per cycle, so its work takes at least work / rate. The longest of these times is a
lower bound for the kernel, for these reasons:

* Rates are those of a data sheet or whitepaper at the highest clock (``grader/frontend/toolchain/gpus.py``), which no
  kernel exceeds.
* Only necessary work is counted:

  ============== ==================================================================================================
  dram           sectors that were read for the first time, from a cache that is cold at the beginning; of the written
                 sectors, those beyond the capacity of the L2 cache
  l2             for each launch the distinct sectors that it read, or that it wrote, whichever are more: its L1
                 caches are empty at first, and may serve all other accesses
  tensor         operations on tensor cores, each type at its own rate
  special        special functions. Some are emulated by 20 or more other instructions, which take longer
  f16, f32       additions and multiplications on CUDA cores, as if each was half of a fused multiply-add; a warp's
                 instruction takes as long for one lane as for 32. f64 counts as f32, which is faster
  shared         wavefronts of shared memory that remain if a compiler merges neighboring accesses into one of
                 16 bytes
  l1             these, plus the wavefronts for the bytes that warps load from and store to global memory
  issue          warp instructions that the work above needs, without loops and addresses
  launches       ``LAUNCH_US`` for each launch, as consecutive launches in a stream
  ============== ==================================================================================================

* A block runs on one SM, and a warp on a quarter of one: a kernel with fewer blocks or warps cannot use the rest. (This
  is not applied if the program queries the number of SMs: the simulated GPU has few, so the grid may differ on a real
  one.) All launches of a kernel are combined for that, as if they overlapped.

One assumption remains: that the GPU's compiler computes and reads what the simulator's compiler does. If it merges two
reads or operations that the other does not, the GPU does less work.
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
"""Microseconds per launch in a sequence; ``python -m tests.gpu.bounds`` measures that an H200 takes longer."""

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
        """Add the bound of a unit for the ``work`` of each kernel, at a rate per SM and cycle."""
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
    """Return how many SMs a kernel can occupy at most; by warps, a part of one counts as such."""
    if kernel.fits_device:
        return gpu.sms
    blocks = min(gpu.sms, kernel.blocks)
    if not by_warps:
        return blocks
    threads = math.prod(kernel.block)
    if kernel.threads == kernel.blocks * threads:
        warps = kernel.blocks * -(-threads // WARP)
    else:  # launches with different blocks, each of which may have a partial last warp
        warps = (kernel.threads + (WARP - 1) * kernel.blocks) // WARP
    return min(blocks, warps / QUARTERS)


def _dram_bytes(kernels: Sequence[KernelCounters], gpu: Gpu) -> float:
    read = sum(kernel.totals.get("first_read_bytes", 0.0) for kernel in kernels)
    written = max((k.totals.get("touched_bytes_written", 0.0) / max(1, k.launches) for k in kernels), default=0.0)
    return read + max(0.0, written - gpu.l2_bytes)


def _tensor_cycles(kernel: KernelCounters, gpu: Gpu) -> float:
    """Return the tensor-core cycles on one SM."""
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
