"""A table of GPUs: limits of an SM for occupancy, and peak rates for rooflines and lower bounds of a kernel's time.

The limits of an SM are from the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". The
rates per cycle are from NVIDIA's architecture whitepapers (Turing, A100, GA102, Ada, H100, Blackwell), and from
"Throughput of Native Arithmetic Instructions" in the programming guide. ``SOURCES`` names the documents
with the figures of each product.

A data sheet gives operations per second at a clock below the highest one: an H100 reaches its 989 TFLOP/s at 1.83 GHz,
and it runs at up to 1.98 GHz. A lower bound of a time therefore uses the rates per cycle and the highest clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from grader.setup.errors import GraderError

_KB = 1024
_MB = 1024 * 1024


@dataclass(frozen=True)
class SmLimits:
    """The limits of one SM: how many warps, blocks, registers and bytes of shared memory it has."""

    warps: int
    blocks: int
    shared_per_sm: int
    """The shared memory of an SM in bytes."""
    shared_per_block: int
    """The maximum bytes of shared memory of a block, with ``cudaFuncAttributeMaxDynamicSharedMemorySize``."""
    reserved_shared: int = 1024
    """The bytes of shared memory that CUDA reserves for each block."""
    shared_unit: int = 128
    """The allocation unit of shared memory in bytes."""
    registers: int = 65536
    """The number of 32-bit registers of an SM, which is also the maximum for a block."""
    registers_per_thread: int = 255
    threads_per_block: int = 1024


@dataclass(frozen=True)
class PerCycle:
    """The maximum work of one SM per cycle."""

    f32: float
    """f32 additions, multiplications or fused multiply-adds on CUDA cores."""
    f16: float
    """f16 or bf16 additions, multiplications or fused multiply-adds on CUDA cores, by instructions for two numbers."""
    tensor: Mapping[str, float]
    """Additions and multiplications on tensor cores, by type in ``grader.simulator.report_format.TENSOR_TYPES``."""
    special: float = 16
    """Results of the special function units, such as exp2, sin and reciprocals."""
    instructions: float = 4
    """Warp instructions that are issued: one by each of the four schedulers."""
    wavefronts: float = 1
    """Wavefronts, which move up to 128 bytes between registers and shared memory or the L1 cache."""
    l2_bytes: float = 64
    """Bytes that move between the L2 cache and the SM, in each direction."""


def _tensor(f16: float, tf32: float = 0, fp8: float = 0, bf16: bool = True, f64: float = 0) -> dict[str, float]:
    """Return a tensor core's rates by operand type. Omit types with a rate of 0, which it does not support."""
    rates = {"f16": f16, "f16_sums": f16, "bf16": f16 * bf16, "tf32": tf32, "e4m3": fp8, "e5m2": fp8, "f64": f64}
    return {name: rate for name, rate in {**rates, "s8": 2 * f16, "u8": 2 * f16}.items() if rate}


SM_LIMITS = {
    "sm_75": SmLimits(32, 16, 64 * _KB, 64 * _KB, reserved_shared=0, shared_unit=256),
    "sm_80": SmLimits(64, 32, 164 * _KB, 163 * _KB),
    "sm_86": SmLimits(48, 16, 100 * _KB, 99 * _KB),
    "sm_89": SmLimits(48, 24, 100 * _KB, 99 * _KB),
    "sm_90": SmLimits(64, 32, 228 * _KB, 227 * _KB),
    "sm_100": SmLimits(64, 32, 228 * _KB, 227 * _KB),
    "sm_120": SmLimits(48, 24, 100 * _KB, 99 * _KB),
}
"""The limits of an SM, by nvcc's name of the architecture."""

PER_CYCLE = {
    "sm_75": PerCycle(64, 128, _tensor(1024, bf16=False)),
    "sm_80": PerCycle(64, 256, _tensor(2048, tf32=1024, f64=128)),
    "sm_86": PerCycle(128, 128, _tensor(1024, tf32=512)),
    "sm_89": PerCycle(128, 128, _tensor(1024, tf32=512, fp8=2048)),
    "sm_90": PerCycle(128, 256, _tensor(4096, tf32=2048, fp8=8192, f64=256)),
    "sm_100": PerCycle(128, 256, _tensor(8192, tf32=4096, fp8=16384, f64=128)),
    "sm_120": PerCycle(128, 128, _tensor(1024, tf32=512, fp8=2048)),
}
"""The rates of an SM, by architecture."""

F32_SUMS = ("f16", "bf16", "tf32")
"""Operand types of tensor cores whose accumulators are f32. GeForce cards compute them at half the rate."""


@dataclass(frozen=True)
class Gpu:
    """A GPU product."""

    name: str
    arch: str
    """nvcc's name of the architecture, such as sm_90."""
    sms: int
    clock: float
    """The highest graphics clock of an unmodified card in Hz. For data-center cards it is the boost clock in the data
    sheet; for GeForce cards it is higher.
    """
    bandwidth: float
    """The bandwidth of device memory in bytes per second, reads and writes together."""
    f32: float
    """Floating-point operations per second on CUDA cores; a fused multiply-add counts as two."""
    f16_tensor: float
    """Floating-point operations per second on tensor cores: f16 or bf16 operands, f32 accumulators."""
    l2_bytes: float
    """The size of the L2 cache in bytes."""
    geforce: bool = False

    @property
    def limits(self) -> SmLimits:
        """The resources of one SM."""
        return SM_LIMITS[self.arch]

    @property
    def per_cycle(self) -> PerCycle:
        """The maximum work of one SM per cycle."""
        return PER_CYCLE[self.arch]

    def ridge(self, tensor_cores: bool = False) -> float:
        """Return the roofline's ridge point in operations per byte: there, memory and arithmetic take equal times."""
        return (self.f16_tensor if tensor_cores else self.f32) / self.bandwidth

    def tensor(self, operands: str) -> float:
        """Return an SM's tensor-core operations per cycle for an operand type; for an unknown one, the highest rate."""
        rates = self.per_cycle.tensor
        rate = rates.get(operands, max(rates.values()))
        return rate / 2 if self.geforce and operands in F32_SUMS else rate


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("H200", "sm_90", 132, 1.98e9, 4.8e12, 67e12, 989e12, 60 * _MB),
        Gpu("H100", "sm_90", 132, 1.98e9, 3.35e12, 67e12, 989e12, 50 * _MB),
        Gpu("A100", "sm_80", 108, 1.41e9, 2.039e12, 19.5e12, 312e12, 40 * _MB),
        Gpu("L4", "sm_89", 58, 2.04e9, 0.3e12, 30.3e12, 121e12, 48 * _MB),
        Gpu("T4", "sm_75", 40, 1.59e9, 0.32e12, 8.1e12, 65e12, 4 * _MB),
        Gpu("RTX 3090", "sm_86", 82, 2.1e9, 0.936e12, 35.6e12, 71e12, 6 * _MB, geforce=True),
        Gpu("RTX 4090", "sm_89", 128, 3.105e9, 1.008e12, 82.6e12, 165.2e12, 72 * _MB, geforce=True),
        Gpu("RTX 3060 Laptop", "sm_86", 30, 2.1e9, 0.336e12, 13.1e12, 26.2e12, 3 * _MB, geforce=True),
        Gpu("B200", "sm_100", 148, 1.98e9, 8e12, 75e12, 2250e12, 126 * _MB),
        Gpu("RTX 5090", "sm_120", 170, 3.09e9, 1.792e12, 104.8e12, 209.5e12, 96 * _MB, geforce=True),
    )
}
SOURCES = {
    "H200": "H200 Tensor Core GPU data sheet (SXM)",
    "H100": "H100 Tensor Core GPU data sheet (SXM)",
    "A100": "A100 Tensor Core GPU data sheet (80 GB, SXM)",
    "L4": "L4 Tensor Core GPU data sheet",
    "T4": "T4 Tensor Core GPU data sheet",
    "RTX 3090": "Ampere GA102 GPU Architecture whitepaper",
    "RTX 4090": "Ada GPU Architecture whitepaper",
    "RTX 3060 Laptop": "GeForce RTX 30 Series Laptops, comparison of specifications",
    "B200": "HGX B200 data sheet, divided by its eight GPUs",
    "RTX 5090": "RTX Blackwell GPU Architecture whitepaper",
}
"""NVIDIA's documents from which the figures of ``GPUS`` are. Rates are without sparsity."""

DEFAULT_GPU = "H100"
"""The GPU for which occupancy is shown, unless the kernel needs another architecture."""


def find_gpu(name: str) -> Gpu:
    """Return a GPU by its product name ("h100", "NVIDIA H200", "rtx4090", "5090") or its architecture ("sm_80").

    Raises:
        GraderError: the name is not known; the hint lists the known names.
    """
    words = _words(name)
    for gpu in GPUS.values():
        if "".join(words) in ("".join(_words(gpu.name)), "".join(_words(gpu.arch))):
            return gpu
    short = [gpu for gpu in GPUS.values() if words == _words(gpu.name)[1:]]  # "5090", "3060 laptop"
    if words and len(short) == 1:
        return short[0]
    for gpu in GPUS.values():  # find H100 in "NVIDIA H100 80GB HBM3"
        own = _words(gpu.name)
        if any(words[i : i + len(own)] == own for i in range(len(words))):
            return gpu
    raise GraderError(f"unknown GPU {name!r}", f"Known GPUs: {', '.join(GPUS)}.")


def runs(architecture: str, needed: str) -> bool:
    """Return whether a GPU, such as "sm_90", runs code for the architecture ``needed``.

    Code for "sm_80" runs on that architecture and all newer ones; code for "sm_90a" runs on sm_90 only.
    """
    have, least = (int(name.removeprefix("sm_").removesuffix("a")) for name in (architecture, needed))
    return have == least if needed.endswith("a") else have >= least


def compiled_architecture(architecture: str) -> str:
    """Return the architecture to pass to nvcc: from "sm_90" on, the variant with architecture-specific features.

    For "sm_90" that is "sm_90a", which has wgmma and other features of Hopper only.
    """
    number = architecture.removeprefix("sm_").removeprefix("compute_")
    return f"sm_{number}a" if number.isdigit() and int(number) >= 90 else f"sm_{number}"


def gpu_for(needed: str, asked: Gpu | None = None) -> Gpu:
    """Return the GPU for which occupancy is shown: the one asked for or the default, if it runs code for ``needed``."""
    known = [*([asked] if asked else []), GPUS[DEFAULT_GPU], *GPUS.values()]
    return next((gpu for gpu in known if runs(gpu.arch, needed)), known[0])


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())
