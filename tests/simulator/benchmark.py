"""How fast the simulator runs, without checks and with them: kernels whose work is of different kinds.

``python -m tests.simulator.benchmark`` prints the median of several runs of each on one core: processor time, which a busy
machine does not falsify, without checks with its goal, with all checks and counters, and the ratio of both with its
limit: 25 for kernels whose work is in shared memory, 5 for others.
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
    """A kernel, its arguments, and what it may cost."""

    name: str
    launcher: str
    file: Path
    arguments: tuple[Any, ...]
    limit: float
    """Of the time with checks, in times that without."""
    goal: float = float("inf")
    """Milliseconds without checks."""
    goal_with_checks: float = float("inf")


def kernels() -> list[Measured]:
    """All inputs are drawn with a fixed seed; all tensors may be written, which costs the checks more than constant ones."""
    random = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    heads, rows, square, long = (1, 4, 256, 64), (512, 4096), (256, 256), 1 << 20
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
        Measured(
            "tiled product 256^3",
            "tiled_product",
            KERNELS / "tiled_product.cu",
            (normal(*square), normal(*square), normal(*square), 256),
            limit=25,
            goal=200,
        ),
        Measured(
            "RMSNorm with shuffles (512, 4096)",
            "shuffled_rms_norm",
            KERNELS / "shuffled_rms_norm.cu",
            (normal(*rows), normal(4096), normal(*rows), 512, 4096, 1e-6),
            limit=5,
            goal=100,
        ),
        Measured(
            "addition, a thread an element (2^20)",
            "add_2",
            course_root() / "lessons" / "day01_residual_add" / "add.cu",
            (normal(long), normal(long), normal(long), long, 256),
            limit=5,
        ),
    ]


def milliseconds(measured: Measured, checks: bool, repetitions: int, workers: int) -> float:
    """The median, after one run that warms up."""
    kernel = SimulatedKernel(measured.file, checks=checks)
    kernel.configure(workers=workers)
    times = []
    for _ in range(repetitions + 1):
        outcome = kernel(measured.launcher, *measured.arguments)
        assert outcome.error == 0, outcome
        times.append(kernel.cpu_seconds * 1e3)
    return statistics.median(times[1:])


def judged(value: float, limit: float, unit: str) -> str:
    """A figure's limit, and whether it is met; nothing where there is none."""
    if limit == float("inf"):
        return ""
    return f" (at most {limit:g}{unit}: {'met' if value <= limit else 'MISSED'})"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for measured in kernels():
        plain, checked = (
            milliseconds(measured, checks, options.repetitions, options.workers) for checks in (False, True)
        )
        ratio = checked / plain
        print(measured.name)
        print(f"  without checks {plain:7.1f} ms{judged(plain, measured.goal, ' ms')}")
        print(f"  with all checks{checked:7.1f} ms{judged(checked, measured.goal_with_checks, ' ms')}")
        print(f"  ratio          {ratio:7.1f}{judged(ratio, measured.limit, '')}")


if __name__ == "__main__":
    main()
