"""Speed of the simulator with and without checks, for kernels with different kinds of work.

``python -m tests.simulator.benchmark`` prints medians of several runs on one core: the time without checks, the time
with all checks and counters, and the ratio of both. It measures processor time, which a busy machine does not change.
The limit of the ratio is 25 for kernels with mainly shared-memory accesses and 5 for others. As when a kernel is
judged, tensors that a launcher takes as pointers to const are read-only.

``--workers N`` compares one core with N in alternating runs, and prints medians of wall time and of the processor time
of all cores. The ratio of wall times is the speedup on this machine under its current load. N times the ratio of
processor times is the throughput of N idle cores. As in `grader run`, nothing is read-only.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.course import course_root
from tests.simulator.harness import KERNELS, SimulatedKernel


@dataclass(frozen=True)
class Measured:
    """A kernel, its arguments, and its limits."""

    name: str
    launcher: str
    file: Path
    arguments: tuple[Any, ...]
    limit: float
    """The limit of the ratio of times with and without checks."""
    goal: float = float("inf")
    """The goal for the time without checks, in milliseconds."""
    goal_with_checks: float = float("inf")
    reason: str = ""
    """The reason if the limit is missed."""


def kernels() -> list[Measured]:
    """Return all workloads, with inputs from a fixed seed."""
    random = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    def solution(day: str, name: str) -> Path:
        return course_root() / "solutions" / day / f"{name}.cu"

    heads, rows, long = (1, 4, 256, 64), (512, 4096), 1 << 20
    turned = (512, 32, 128)  # for rotary positions: tokens, heads, head size
    ids = random.integers(0, 1000, 2048, dtype=np.int64)
    positions = np.arange(512, dtype=np.int32)
    return [
        Measured(
            "flash attention f32 (1, 4, 256, 64)",
            "tiled_flash_attention",
            KERNELS / "tiled_flash_attention.cu",
            (normal(*heads), normal(*heads), normal(*heads), normal(*heads), 1, 4, 256, 0.125),
            limit=25,
            goal=25,
            goal_with_checks=600,
        ),
        tiled_product(256, goal=200),
        Measured(
            "RMSNorm (512, 4096)",
            "rms_norm_f32",
            solution("day02_reductions", "rms_norm"),
            (normal(*rows), normal(4096), normal(*rows), 512, 4096, 1e-6),
            limit=5,
            goal=100,
        ),
        Measured(
            "addition, one thread per element (2^20)",
            "add_2",
            course_root() / "lessons" / "day01_residual_add" / "add.cu",
            (normal(long), normal(long), normal(long), long, 256),
            limit=5,
        ),
        Measured(
            "argmax (512, 4096)",
            "argmax_f32",
            solution("day02_reductions", "argmax"),
            (normal(*rows), np.zeros(512, np.int32), *rows),
            limit=5,
        ),
        Measured(
            "embedding of 2048 tokens (1000, 1024)",
            "embedding_f32",
            solution("day03_positions_and_gates", "embedding"),
            (normal(1000, 1024), ids, normal(2048, 1024), 2048, 1000, 1024),
            limit=5,
        ),
        Measured(
            "RoPE (512, 32, 128)",
            "rope_f32",
            solution("day03_positions_and_gates", "rope"),
            (normal(*turned), positions, normal(*turned), *turned, 128, 1e4),
            limit=5,
            reason="half of the accesses are 8-byte accesses to shared memory, with little computation between them",
        ),
        Measured(
            "SwiGLU (2^20)",
            "swiglu_f32",
            solution("day03_positions_and_gates", "swiglu"),
            (normal(long), normal(long), normal(long), long),
            limit=5,
        ),
        Measured(
            "400 wgmma.m64n256k16",
            "wgmma_product",
            KERNELS / "wgmma_product.cu",
            (np.full(10240, 0x3F803F80, np.int32), normal(128, 128), 100),
            limit=5,
            goal_with_checks=40,
        ),
    ]


def tiled_product(n: int, goal: float = float("inf")) -> Measured:
    """Return a product of square matrices. With n = 512, its launch is large enough for several cores."""
    file = course_root() / "lessons" / "day04_linear" / "linear.cu"
    x, weight, out = (np.full((n, n), value, np.float32) for value in (1, 2, 0))
    arguments = (x, weight, np.zeros(n, np.float32), out, n, n, n)
    return Measured(f"tiled product {n}^3", "linear_3", file, arguments, limit=25, goal=goal)


def milliseconds(measured: Measured, checks: bool, repetitions: int) -> float:
    """Return the median time, after one warm-up run."""
    kernel = SimulatedKernel(measured.file, checks=checks, constant_inputs=True)
    times = []
    for _ in range(repetitions + 1):
        outcome = kernel(measured.launcher, *measured.arguments)
        assert outcome.error == 0, outcome
        times.append(kernel.cpu_seconds * 1e3)
    return statistics.median(times[1:])


def compare_workers(measured: Measured, checks: bool, repetitions: int, workers: int) -> str:
    """Print the speedup with this number of workers compared with one."""
    kernel = SimulatedKernel(measured.file, checks=checks)
    passed: dict[int, list[float]] = {1: [], workers: []}
    worked: dict[int, list[float]] = {1: [], workers: []}
    for turn in range(2 * repetitions + 2):
        count = workers if turn % 2 else 1
        kernel.configure(workers=count)
        outcome = kernel(measured.launcher, *measured.arguments)
        assert outcome.error == 0, outcome
        if turn > 1:
            passed[count].append(kernel.seconds * 1e3)
            worked[count].append(kernel.all_cpu_seconds * 1e3)
    one, several = (statistics.median(passed[count]) for count in (1, workers))
    alone, together = (statistics.median(worked[count]) for count in (1, workers))
    return (
        f"wall time {one:7.1f} -> {several:7.1f} ms: {one / several:.2f}; "
        f"processor time {alone:7.1f} -> {together:7.1f} ms: {workers * alone / together:.2f}"
    )


def judged(value: float, limit: float, unit: str) -> str:
    """Return the limit of a figure and whether it is met, or an empty string without a limit."""
    if limit == float("inf"):
        return ""
    return f" (at most {limit:g}{unit}: {'met' if value <= limit else 'MISSED'})"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.workers > 1:
        for measured in [tiled_product(512), *kernels()]:
            print(measured.name)
            for checks, name in ((False, "without checks"), (True, "with all checks")):
                print(
                    f"  {name:15} {compare_workers(measured, checks, options.repetitions, options.workers)}", flush=True
                )
        return
    for measured in kernels():
        plain, checked = (milliseconds(measured, checks, options.repetitions) for checks in (False, True))
        ratio = checked / plain
        print(measured.name)
        print(f"  without checks {plain:7.1f} ms{judged(plain, measured.goal, ' ms')}")
        print(f"  with all checks{checked:7.1f} ms{judged(checked, measured.goal_with_checks, ' ms')}")
        print(f"  ratio          {ratio:7.1f}{judged(ratio, measured.limit, '')}")
        if ratio > measured.limit and measured.reason:
            print(f"  {measured.reason}")


if __name__ == "__main__":
    main()
