"""Theoretical occupancy: the number of blocks of a kernel that fit on an SM at once, and the limiting resource.

The allocation rules are those of ``cuda_occupancy.h`` in the CUDA toolkit; tests compare with it where the toolkit is
installed.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.frontend.toolchain.gpus import Gpu, SmLimits

WARP = 32
_REGISTER_UNIT = 256  # a warp's registers are allocated in multiples of this
_PARTITIONS = 4  # partitions of an SM, each with a quarter of the registers


@dataclass(frozen=True)
class Occupancy:
    """A kernel's blocks and warps that fit on one SM. ``limits`` has the blocks that each resource alone allows."""

    gpu: Gpu
    blocks: int
    warps: int
    limits: dict[str, int]

    @property
    def fraction(self) -> float:
        """The occupancy: the warps on the SM as a fraction of the maximum."""
        return self.warps / self.gpu.limits.warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The names of the resources that do not allow one more block."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        if self.blocks == 0:
            return f"no block fits on {self.gpu.name}: {' and '.join(self.limited_by)}"
        blocks = f"{self.blocks} block{'s' if self.blocks > 1 else ''}"
        return (
            f"{self.fraction:.0%} on {self.gpu.name} ({blocks} = {self.warps} of {self.gpu.limits.warps} warps per SM, "
            f"limited by {' and '.join(self.limited_by)})"
        )


def occupancy(gpu: Gpu, block_size: int, registers: int, static_shared: int = 0, dynamic_shared: int = 0) -> Occupancy:
    """Return how many blocks of ``block_size`` threads with these registers and shared memory fit on an SM."""
    warps = -(-block_size // WARP)
    sm = gpu.limits
    limits = {
        "warps": sm.warps // warps if 0 < block_size <= sm.threads_per_block else 0,
        "blocks": sm.blocks,
        "registers": _blocks_by_registers(sm, warps, registers),
        "shared memory": _blocks_by_shared(sm, static_shared + dynamic_shared),
    }
    blocks = min(limits.values())
    return Occupancy(gpu, blocks, blocks * warps, limits)


def _blocks_by_registers(sm: SmLimits, warps: int, registers: int) -> int:
    if registers > sm.registers_per_thread:
        return 0
    per_warp = _round_up(max(1, registers) * WARP, _REGISTER_UNIT)
    # CUDA's check at a launch rounds the block's warps up to a multiple of the partitions.
    if per_warp * _round_up(warps, _PARTITIONS) > sm.registers:
        return 0
    warps_per_sm = sm.registers // _PARTITIONS // per_warp * _PARTITIONS
    return warps_per_sm // max(1, warps)


def _blocks_by_shared(sm: SmLimits, used: int) -> int:
    if used > sm.shared_per_block:
        return 0
    allocated = _round_up(used + sm.reserved_shared, sm.shared_unit)
    return sm.shared_per_sm // allocated if allocated else sm.blocks


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
