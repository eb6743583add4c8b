"""Times by CUDA events of work of this process on the GPU: torch's functions, copies and matmuls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BUDGET_US = 300_000.0
"""The total GPU time of the timed runs of one size."""

MOST_RUNS, FEWEST_RUNS, WARMUP = 400, 20, 5

ROUNDS, TURN_US, PAUSE = 6, 10_000.0, 0.1
"""The number of turns, the approximate duration of one in microseconds, and the pause before each in seconds.

A GPU with a high power draw lowers its clock within milliseconds, and recovers during the pause.
"""


def time_on_gpu(functions: Sequence[Callable[[], Any]], runs: int = 0, flush_bytes: int = 0) -> list[float]:
    """Return the microseconds of each run of functions called in turn; ``runs`` 0: as many as the budget allows."""
    import torch

    other = torch.empty(flush_bytes // 4, dtype=torch.int32, device="cuda") if flush_bytes else None
    began = time.perf_counter()
    for warm in range(max(WARMUP, len(functions))):
        functions[warm % len(functions)]()
    torch.cuda.synchronize()
    if not runs:
        began = time.perf_counter()
        for warm in range(3):
            functions[warm % len(functions)]()
        torch.cuda.synchronize()
        runs = runs_for((time.perf_counter() - began) / 3 * 1e6)
    began = time.perf_counter()
    functions[0]()
    host_us = (time.perf_counter() - began) * 1e6 + 30
    torch.cuda.synchronize()
    begin = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    end = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    # Cycles of a clock of at most 2 GHz; never more than a third of a second.
    torch.cuda._sleep(int(min(host_us * runs * 2000, 600e6)))
    for run in range(runs):
        if other is not None:
            other.sum()
        begin[run].record()
        functions[run % len(functions)]()
        end[run].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(begin, end)]


def runs_for(microseconds: float) -> int:
    """Return how many runs of that duration fit into the budget."""
    return int(max(FEWEST_RUNS, min(MOST_RUNS, BUDGET_US / max(microseconds, 1.0))))


def in_turns(clocks: Mapping[str, Callable[[int], list[float]]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the microseconds of each run by name, with turns after pauses; ``clocks[name](runs)`` times that many."""
    runs = {}
    for name, clock in clocks.items():
        us = min(clock(3))
        runs[name] = -(-min(runs_for(us), max(FEWEST_RUNS, int(rounds * TURN_US / max(us, 1.0)))) // rounds)
    times: dict[str, list[float]] = {name: [] for name in clocks}
    for _ in range(rounds):
        for name, clock in clocks.items():
            time.sleep(PAUSE)
            times[name] += clock(runs[name])
    return times


def percentiles(microseconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the percentiles of a Timing, by its field names."""
    import numpy

    values: Any = numpy.percentile(microseconds, [50, 90, 95, 99])
    return {"median_us": float(values[0]), **{f"p{p}_us": float(v) for p, v in zip((50, 90, 95, 99), values)}}


def statistics(microseconds: Sequence[float]) -> dict[str, float | None]:
    """Return percentiles, mean, minimum, maximum and standard deviation of the same runs, by a Timing's field names."""
    import numpy

    return {
        **percentiles(microseconds),
        "mean_us": float(numpy.mean(microseconds)),
        "minimum_us": float(min(microseconds)),
        "maximum_us": float(max(microseconds)),
        "deviation_us": float(numpy.std(microseconds, ddof=1)) if len(microseconds) > 1 else None,
    }
