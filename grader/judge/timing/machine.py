"""Describes the machine on which times are measured, and measures its copy bandwidth and matmul rate."""

from __future__ import annotations

import functools
import math
import platform
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from grader.execution.runner.gpu import require_torch
from grader.judge.timing.events import percentiles, time_on_gpu
from grader.judge.timing.floor import Limits, limits_of_gpu
from grader.verdict import Timing

RATED = ("f16", "bf16", "f32", "f8")
"""The dtypes for which torch's matmul is timed."""


@dataclass
class Machine:
    """The machine on which times were measured, with the two ceilings of its roofline."""

    device: str
    driver: str = ""
    python: str = platform.python_version()
    torch: str = ""
    cuda: str = ""
    compiler: str = ""
    l2_bytes: int = 0
    copy_gigabytes_per_second: float | None = None
    product_gigaflops: dict[str, float] = field(default_factory=dict)
    """The measured speed of torch's matmul for each dtype, in 10^9 operations per second."""
    peak_gigabytes_per_second: float | None = None
    """The peak bandwidth at the memory's highest clock: see ``grader.judge.timing.floor``."""
    peak_gigaflops: float | None = None
    """The peak rate of the tensor cores at the highest clock: see ``grader.judge.timing.floor``."""

    def limits(self) -> Limits:
        """Return the peak rates of this machine, which no kernel can exceed."""
        memory, arithmetic = self.peak_gigabytes_per_second or math.inf, self.peak_gigaflops or math.inf
        return Limits(memory * 1e9, arithmetic * 1e9, self.l2_bytes)


def roofline(timing: Timing, machine: Machine, flops_of: str = "") -> None:
    """Fill in the rates and percentages of a timing, from its median.

    ``flops_of`` is the operands' type, if it differs from the timing's dtype.
    """
    seconds = timing.median_us * 1e-6
    if seconds <= 0:
        return
    timing.gigabytes_per_second = timing.bytes / seconds * 1e-9
    floor = 0.0
    if machine.copy_gigabytes_per_second:
        timing.percent_of_copy = 100 * timing.gigabytes_per_second / machine.copy_gigabytes_per_second
        floor = timing.bytes / (machine.copy_gigabytes_per_second * 1e9)
    if timing.flops:
        timing.gigaflops_per_second = timing.flops / seconds * 1e-9
        peak = machine.product_gigaflops.get(flops_of or timing.dtype)
        if peak:
            floor = max(floor, timing.flops / (peak * 1e9))
    if floor:
        timing.percent_of_roofline = 100 * floor / seconds
    torch_times = [t for t in (timing.torch_eager_us, timing.torch_compile_us) if t]
    if torch_times and timing.median_us:
        timing.torch_ratio = min(torch_times) / timing.median_us


def gpu_name() -> str:
    """Return the name of the first GPU as the driver reports it, such as ``NVIDIA H200``."""
    import torch

    require_torch()
    return torch.cuda.get_device_properties(0).name


def measure_machine(dtypes: Collection[str] = RATED) -> Machine:
    """Describe this machine, and measure the GPU's copy bandwidth and its matmul rates for these dtypes."""
    import torch

    require_torch()
    properties = torch.cuda.get_device_properties(0)
    limits = limits_of_gpu()
    machine = Machine(
        device=properties.name,
        driver=_driver(),
        torch=str(torch.__version__),
        cuda=str(torch.version.cuda),
        l2_bytes=limits.l2_bytes,
        peak_gigabytes_per_second=limits.bytes_per_second * 1e-9,
        peak_gigaflops=limits.operations_per_second * 1e-9 if math.isfinite(limits.operations_per_second) else None,
    )
    words = min(1 << 28, properties.total_memory // 32)
    source = torch.empty(words, device="cuda").normal_()
    times = time_on_gpu([functools.partial(torch.empty_like(source).copy_, source)], runs=30)
    machine.copy_gigabytes_per_second = 2 * 4 * words / (percentiles(times)["median_us"] * 1e-6) * 1e-9
    del source
    size = 8192
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32)):
        if name not in dtypes:
            continue
        n = size if name != "f32" else size // 2
        a = torch.randn(n, n, device="cuda").to(dtype)
        times = time_on_gpu([functools.partial(torch.matmul, a, a)], runs=20)
        machine.product_gigaflops[name] = 2 * n**3 / (percentiles(times)["median_us"] * 1e-6) * 1e-9
    if "f8" in dtypes and torch.cuda.get_device_capability() >= (8, 9):
        a = torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        product = functools.partial(torch._scaled_mm, a, a.t(), one, one, out_dtype=torch.bfloat16)
        times = time_on_gpu([product], runs=20)
        machine.product_gigaflops["f8"] = 2 * size**3 / (percentiles(times)["median_us"] * 1e-6) * 1e-9
    torch.cuda.empty_cache()
    return machine


@functools.cache  # without the file, nvidia-smi takes tenths of a second, and `grader watch` asks at each save
def _driver() -> str:
    """Return the version of the driver; empty if it is unknown."""
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="utf-8").strip()
    except OSError:  # the file does not exist, for example under WSL
        pass
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else ""
