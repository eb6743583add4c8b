"""Theoretical occupancy: how many blocks of a kernel fit on a multiprocessor (SM) at once, and what stops more.

The limits of each architecture are those of the CUDA C++ Programming Guide ("Technical Specifications per Compute
Capability"); the rules of allocation are those of ``cuda_occupancy.h`` in the CUDA toolkit (tests compare with it where
the toolkit is installed). The number of SMs is from each product's data sheet or architecture whitepaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.setup.errors import GraderError

WARP = 32
_REGISTER_UNIT = 256  # registers are given to a warp in units of this
_PARTITIONS = 4  # of an SM, each with a quarter of the registers
_SHARED_UNIT = 128  # bytes
_RESERVED_SHARED = 1024  # bytes of shared memory that CUDA itself takes for each block


@dataclass(frozen=True)
class SmLimits:
    """What one SM of a GPU holds, by the GPU's name."""

    name: str
    arch: str  # as nvcc names it
    sms: int
    warps: int  # per SM
    blocks: int  # per SM
    shared_per_sm: int  # bytes
    shared_per_block: int  # bytes, with cudaFuncAttributeMaxDynamicSharedMemorySize
    registers: int = 65536  # per SM, and per block
    registers_per_thread: int = 255
    threads_per_block: int = 1024


_KB = 1024
GPUS = {
    gpu.name: gpu
    for gpu in (
        SmLimits("A100", "sm_80", 108, 64, 32, 164 * _KB, 163 * _KB),
        SmLimits("RTX 3090", "sm_86", 82, 48, 16, 100 * _KB, 99 * _KB),
        SmLimits("RTX 4090", "sm_89", 128, 48, 24, 100 * _KB, 99 * _KB),
        SmLimits("L4", "sm_89", 58, 48, 24, 100 * _KB, 99 * _KB),
        SmLimits("H100", "sm_90", 132, 64, 32, 228 * _KB, 227 * _KB),
        SmLimits("H200", "sm_90", 132, 64, 32, 228 * _KB, 227 * _KB),
        SmLimits("B200", "sm_100", 148, 64, 32, 228 * _KB, 227 * _KB),
        SmLimits("RTX 5090", "sm_120", 170, 48, 24, 100 * _KB, 99 * _KB),
    )
}
DEFAULT_GPU = "H100"


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps of one kernel on one SM. ``limits`` is the number of blocks that each resource allows."""

    gpu: SmLimits
    blocks: int
    warps: int
    limits: dict[str, int]

    @property
    def fraction(self) -> float:
        """Warps on the SM, of those that it could hold."""
        return self.warps / self.gpu.warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that stop one block more."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        if self.blocks == 0:
            return f"does not fit on {self.gpu.name}: {' and '.join(self.limited_by)}"
        blocks = f"{self.blocks} block{'s' if self.blocks > 1 else ''}"
        return (
            f"{self.fraction:.0%} on {self.gpu.name} ({blocks} = {self.warps} of {self.gpu.warps} warps per SM, "
            f"limited by {' and '.join(self.limited_by)})"
        )


def find_gpu(name: str) -> SmLimits:
    """A GPU by its product name ("h100", "NVIDIA H200", "rtx4090") or its architecture ("sm_80")."""
    wanted = _squeeze(name)
    for gpu in GPUS.values():
        if _squeeze(gpu.name) in wanted or wanted == _squeeze(gpu.arch):
            return gpu
    raise GraderError(f"the limits of the GPU '{name}' are not known", f"Known are {', '.join(GPUS)}.")


def runs(architecture: str, needed: str) -> bool:
    """Whether a GPU ("sm_90") runs what needs an architecture: "sm_80" and all that came later, "sm_90a" sm_90 alone."""
    have, least = (int(name.removeprefix("sm_").removesuffix("a")) for name in (architecture, needed))
    return have == least if needed.endswith("a") else have >= least


def gpu_for(needed: str) -> SmLimits:
    """The GPU whose occupancy is shown for what needs an architecture: the usual one, where that runs it."""
    known = [GPUS[DEFAULT_GPU], *GPUS.values()]
    return next((gpu for gpu in known if runs(gpu.arch, needed)), known[0])


def occupancy(
    gpu: SmLimits, block_size: int, registers: int, static_shared: int = 0, dynamic_shared: int = 0
) -> Occupancy:
    """How many blocks of ``block_size`` threads, with so many registers each and so much shared memory, fit on an SM."""
    warps = -(-block_size // WARP)
    limits = {
        "warps": gpu.warps // warps if 0 < block_size <= gpu.threads_per_block else 0,
        "blocks": gpu.blocks,
        "registers": _blocks_by_registers(gpu, warps, registers),
        "shared memory": _blocks_by_shared(gpu, static_shared + dynamic_shared),
    }
    blocks = min(limits.values())
    return Occupancy(gpu, blocks, blocks * warps, limits)


def _blocks_by_registers(gpu: SmLimits, warps: int, registers: int) -> int:
    if registers > gpu.registers_per_thread:
        return 0
    per_warp = _round_up(max(1, registers) * WARP, _REGISTER_UNIT)
    # The check of a launch assumes that each partition gets as many warps as the fullest.
    if per_warp * _round_up(warps, _PARTITIONS) > gpu.registers:
        return 0
    warps_per_sm = gpu.registers // _PARTITIONS // per_warp * _PARTITIONS
    return warps_per_sm // max(1, warps)


def _blocks_by_shared(gpu: SmLimits, used: int) -> int:
    if used > gpu.shared_per_block:
        return 0
    return gpu.shared_per_sm // _round_up(used + _RESERVED_SHARED, _SHARED_UNIT)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _squeeze(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())
