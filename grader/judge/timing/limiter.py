"""Computes a lower bound of a kernel's time on a GPU from the simulator's counters. It does not predict the time.

Each unit of a GPU, such as the tensor cores, has a maximum rate per cycle. A unit therefore needs at least the time
work / rate. The longest of these times is a lower bound of the kernel's time, for three reasons:

* The rates are peak rates at the highest clock, from data sheets (``grader/frontend/toolchain/gpus.py``).
* Only work that any compiler and cache must leave is counted. For each unit, this is:

  * ``dram`` is the first read of each sector, because the cache is cold at the beginning, and the written sectors that
    exceed the capacity of the L2 cache.
  * ``l2`` is, for each launch, its distinct read sectors or its distinct written sectors, whichever are more. The L1
    caches are empty at the start of a launch, and may serve all other accesses.
  * ``tensor`` is the operations on tensor cores. Each type has its own rate.
  * ``special`` is the special functions. Some are emulated by 20 or more other instructions, which take longer.
  * ``f16`` and ``f32`` are additions and multiplications on CUDA cores. Each counts as half of a fused multiply-add, as
    if the compiler fused all of them. A warp's instruction takes as long for one lane as for 32. f64 counts as f32,
    which is faster.
  * ``shared`` is the wavefronts of shared memory that remain if a compiler merges neighboring accesses into accesses of
    16 bytes.
  * ``l1`` is the wavefronts of ``shared``, and those for the bytes that warps load from and store to global memory.
  * ``issue`` is the warp instructions that do the work above, without those for loops and addresses.
  * ``launches`` is the time ``LAUNCH_US`` for each launch, as for consecutive launches in a stream.

* A block runs on one SM, and a warp on a quarter of an SM, so a kernel with few blocks or warps cannot use all SMs. All
  launches of a kernel are added up for this, as if they overlapped. It is ignored if the program queries the number of
  SMs: the simulated GPU has fewer SMs than a real one, so the grid may be larger there.

The bound assumes that the GPU's compiler keeps all reads and operations that the simulator's compiler keeps. If it
merges more of them, the GPU has less work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.frontend.toolchain.gpus import Gpu
from grader.verdict import TimeBound, UnitTime
from grader.verdict.facts import Unit

if TYPE_CHECKING:
    from grader.simulator.line_counters import KernelCounters

LAUNCH_US = 0.5
"""Microseconds for each of several consecutive launches. ``python -m tests.gpu.bounds`` shows that an H200 needs more.
"""

WARP, QUARTERS = 32, 4


def time_bound(
    kernels: Sequence[KernelCounters],
    gpu: Gpu,
    case: str = "",
    dtype: str = "",
    dims: Mapping[str, Any] | None = None,
) -> TimeBound:
    """Return the bound for all launches of some kernels together.

    The units for arithmetic on CUDA cores are included only if the kernels' operations were counted.
    """
    cycle, clock = gpu.per_cycle, gpu.clock
    counted = any("warp_flops" in kernel.totals for kernel in kernels)
    units = [UnitTime("dram", _dram_bytes(kernels, gpu), 1e6 * _dram_bytes(kernels, gpu) / gpu.bandwidth)]

    def add(
        unit: Unit, work: Sequence[float], per_cycle: float, by_warps: bool = False, sums: float | None = None
    ) -> None:
        """Add the time of a unit. ``work`` is the work of each kernel, ``per_cycle`` the rate of one SM."""
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
    """Return the maximum number of SMs that a kernel can use. With ``by_warps``, a warp is a quarter of an SM."""
    if kernel.fits_device:
        return gpu.sms
    blocks = min(gpu.sms, kernel.blocks)
    if not by_warps:
        return blocks
    threads = math.prod(kernel.block)
    if kernel.threads == kernel.blocks * threads:
        warps = kernel.blocks * -(-threads // WARP)
    else:  # launches differ in block size: assume a partial last warp in each block
        warps = (kernel.threads + (WARP - 1) * kernel.blocks) // WARP
    return min(blocks, warps / QUARTERS)


def _dram_bytes(kernels: Sequence[KernelCounters], gpu: Gpu) -> float:
    read = sum(kernel.totals.get("first_read_bytes", 0.0) for kernel in kernels)
    written = max((k.totals.get("touched_bytes_written", 0.0) / max(1, k.launches) for k in kernels), default=0.0)
    return read + max(0.0, written - gpu.l2_bytes)


def _tensor_cycles(kernel: KernelCounters, gpu: Gpu) -> float:
    """Return the cycles that the tensor cores of one SM would need for all of a kernel's operations."""
    known = {
        name.removeprefix("tensor_operations_"): operations
        for name, operations in kernel.totals.items()
        if name.startswith("tensor_operations_")
    }
    rest = max(0.0, kernel.totals.get("tensor_operations", 0.0) - sum(known.values()))
    return sum(operations / gpu.tensor(name) for name, operations in {**known, "": rest}.items())


def _instructions(kernel: KernelCounters) -> float:
    """Return the minimum number of warp instructions for a kernel's work.

    A fused multiply-add does two operations in each lane, or four on a pair of 16-bit numbers.
    """
    totals = kernel.totals
    arithmetic = totals.get("warp_flops", 0.0) / 2 + totals.get("warp_half_flops", 0.0) / 4
    return totals.get("least_instructions", 0.0) + (arithmetic + totals.get("warp_special_functions", 0.0)) / WARP
