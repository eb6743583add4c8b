"""The GPUs that rooflines and bounds are for: peak rates as their makers' data sheets give them, dense, no sparsity.

Data sheets give operations per second at a clock of the maker's choice, which chips exceed (an H100's 989 T/s are those of
1.83 GHz, and it runs at up to 1.98). What must be a bound takes the rates of a cycle, ``PerCycle``, and the highest clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.setup.errors import GraderError


@dataclass(frozen=True)
class PerCycle:
    """What one multiprocessor can do in a cycle at most.

    Sources: NVIDIA's architecture whitepapers (Turing, A100, GA102, Ada, H100), and "Throughput of Native Arithmetic
    Instructions" in the CUDA programming guide.
    """

    f32: float
    """Additions, multiplications or fused multiply-adds on CUDA cores."""
    f16: float
    """The same of 16-bit numbers, in pairs."""
    tensor: Mapping[str, float]
    """Additions and multiplications on tensor cores, by the names of ``grader.simulator.report_format.TENSOR_TYPES``."""
    special: float = 16
    """Special functions."""
    instructions: float = 4
    """Of warps: one from each of its four schedulers."""
    wavefronts: float = 1
    """Of 128 bytes, between registers and the memory that is L1 cache and shared memory."""
    l2_bytes: float = 64
    """From the L2 cache, and as many to it."""


def _tensor(f16: float, tf32: float = 0, fp8: float = 0, bf16: bool = True, f64: float = 0) -> dict[str, float]:
    """Rates that are 0 are left out: there is no such product, or not on tensor cores."""
    rates = {"f16": f16, "f16_sums": f16, "bf16": f16 * bf16, "tf32": tf32, "e4m3": fp8, "e5m2": fp8, "f64": f64}
    return {name: rate for name, rate in {**rates, "s8": 2 * f16, "u8": 2 * f16}.items() if rate}


PER_CYCLE = {
    (7, 5): PerCycle(64, 128, _tensor(1024, bf16=False)),
    (8, 0): PerCycle(64, 256, _tensor(2048, tf32=1024, f64=128)),
    (8, 6): PerCycle(128, 128, _tensor(1024, tf32=512)),
    (8, 9): PerCycle(128, 128, _tensor(1024, tf32=512, fp8=2048)),
    (9, 0): PerCycle(128, 256, _tensor(4096, tf32=2048, fp8=8192, f64=256)),
}
"""By compute capability."""

F32_SUMS = ("f16", "bf16", "tf32")
"""Products on tensor cores whose sums are always f32: GeForce cards do half as many."""


@dataclass(frozen=True)
class PeakRates:
    """Peak rates of one GPU."""

    name: str
    bandwidth: float
    """Bytes per second from and to its memory."""
    f32: float
    """Floating-point operations per second on CUDA cores (a fused multiply-add counts as two)."""
    f16_tensor: float
    """The same on tensor cores: f16 or bf16 in, f32 accumulated."""
    l2_bytes: float = 0.0
    multiprocessors: int = 0
    capability: tuple[int, int] = (9, 0)
    clock: float = 0.0
    """Cycles per second at most: the highest graphics clock that the driver lets an unchanged card reach. It is the boost clock of the
    data sheet for cards of data centers, and above it for GeForce."""
    geforce: bool = False

    def ridge(self, tensor_cores: bool = False) -> float:
        """Operations per byte at which memory and arithmetic take equally long."""
        return (self.f16_tensor if tensor_cores else self.f32) / self.bandwidth

    @property
    def per_cycle(self) -> PerCycle:
        """What one of its multiprocessors can do in a cycle."""
        return PER_CYCLE[self.capability]

    def tensor(self, operands: str) -> float:
        """Operations of a multiprocessor's tensor cores in a cycle, at least; the fastest there are where the type is unknown."""
        rates = self.per_cycle.tensor
        rate = rates.get(operands, max(rates.values()))
        return rate / 2 if self.geforce and operands in F32_SUMS else rate


MIB = 2**20
GPUS = {
    gpu.name: gpu
    for gpu in (
        PeakRates("H200", 4.8e12, 67e12, 989e12, 60 * MIB, 132, (9, 0), 1.98e9),
        PeakRates("H100", 3.35e12, 67e12, 989e12, 50 * MIB, 132, (9, 0), 1.98e9),
        PeakRates("A100", 2.039e12, 19.5e12, 312e12, 40 * MIB, 108, (8, 0), 1.41e9),
        PeakRates("L4", 0.3e12, 30.3e12, 121e12, 48 * MIB, 58, (8, 9), 2.04e9),
        PeakRates("T4", 0.32e12, 8.1e12, 65e12, 4 * MIB, 40, (7, 5), 1.59e9),
        PeakRates("RTX 4090", 1.008e12, 82.6e12, 165.2e12, 72 * MIB, 128, (8, 9), 3.105e9, geforce=True),
        PeakRates("RTX 3060 Laptop", 0.336e12, 13.1e12, 26.2e12, 3 * MIB, 30, (8, 6), 2.1e9, geforce=True),
    )
}


def gpu(name: str) -> PeakRates:
    """The GPU of that name, or a GraderError that lists those that are known."""
    for known, found in GPUS.items():
        if known.lower().replace(" ", "") == name.lower().replace(" ", ""):
            return found
    raise GraderError(f"no peak rates are known for a GPU {name!r}", f"Known: {', '.join(GPUS)}.")
