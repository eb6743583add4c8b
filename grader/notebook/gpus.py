"""The GPUs that rooflines are drawn for: peak rates as their makers' data sheets give them, dense, no sparsity."""

from __future__ import annotations

from dataclasses import dataclass

from grader.errors import GraderError


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

    def ridge(self, tensor_cores: bool = False) -> float:
        """Operations per byte at which memory and arithmetic take equally long."""
        return (self.f16_tensor if tensor_cores else self.f32) / self.bandwidth


GPUS = {
    gpu.name: gpu
    for gpu in (
        PeakRates("H200", 4.8e12, 67e12, 989e12, 50e6, 132),
        PeakRates("H100", 3.35e12, 67e12, 989e12, 50e6, 132),
        PeakRates("A100", 2.039e12, 19.5e12, 312e12, 40e6, 108),
        PeakRates("L4", 0.3e12, 30.3e12, 121e12, 48e6, 58),
        PeakRates("T4", 0.32e12, 8.1e12, 65e12, 4e6, 40),
        PeakRates("RTX 4090", 1.008e12, 82.6e12, 165.2e12, 72e6, 128),
    )
}


def gpu(name: str) -> PeakRates:
    """The GPU of that name, or a GraderError that lists those that are known."""
    for known, found in GPUS.items():
        if known.lower().replace(" ", "") == name.lower().replace(" ", ""):
            return found
    raise GraderError(f"no peak rates are known for a GPU {name!r}", f"Known: {', '.join(GPUS)}.")
