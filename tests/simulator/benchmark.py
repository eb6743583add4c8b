"""How fast the simulator runs without checks: three kernels whose work is of different kinds.

``python -m tests.simulator.benchmark`` prints the median of several runs of each on one core, with its goal: processor
time, which a busy machine does not falsify, and the time on the clock.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from tests.simulator.harness import KERNELS, SimulatedKernel


def measure(checks: bool, repetitions: int, workers: int) -> list[tuple[str, float, float, float]]:
    """Name, median of the processor's and of the clock's milliseconds, and goal of each kernel."""
    random = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    q, k, v, out = normal(1, 4, 256, 64), normal(1, 4, 256, 64), normal(1, 4, 256, 64), normal(1, 4, 256, 64)
    x, weight, normed = normal(512, 4096), normal(4096), normal(512, 4096)
    a, b, c = normal(256, 256), normal(256, 256), normal(256, 256)
    runs = [
        ("flash attention f32 (1, 4, 256, 64)", "tiled_flash_attention", (q, k, v, out, 1, 4, 256, 0.125), 25.0),
        ("RMSNorm with shuffles (512, 4096)", "shuffled_rms_norm", (x, weight, normed, 512, 4096, 1e-6), 100.0),
        ("tiled product 256^3", "tiled_product", (a, b, c, 256), 200.0),
    ]
    results = []
    for name, launcher, arguments, goal in runs:
        kernel = SimulatedKernel(KERNELS / f"{launcher}.cu", checks=checks)
        kernel.configure(workers=workers)
        cpu, clock = [], []
        for _ in range(repetitions + 1):
            outcome = kernel(launcher, *arguments)
            assert outcome.error == 0, outcome
            cpu.append(kernel.cpu_seconds * 1e3)
            clock.append(kernel.seconds * 1e3)
        results.append((name, statistics.median(cpu[1:]), statistics.median(clock[1:]), goal))
    return results


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", action="store_true", help="with all checks and counters")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    started = time.time()
    for name, cpu, clock, goal in measure(options.checks, options.repetitions, options.workers):
        judged = not options.checks and options.workers == 1
        verdict = f"   goal {goal:.0f} ms: {'met' if cpu <= goal else 'MISSED'}" if judged else ""
        print(f"{name:<40}{cpu:8.1f} ms{clock:8.1f} ms on the clock{verdict}")
    print(f"({time.time() - started:.1f} s in all)")


if __name__ == "__main__":
    main()
