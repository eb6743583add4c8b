"""Times GPU work of this process with CUDA events: torch's functions, copies and matmuls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BUDGET_US = 300_000.0
"""The GPU time, in microseconds, that the timed runs of one size may take together."""

MOST_RUNS, FEWEST_RUNS, WARMUP = 400, 20, 5

ROUNDS, TURN_US, PAUSE = 6, 10_000.0, 0.1
"""The number of turns, the approximate duration of a turn in microseconds, and the pause before it in seconds.

A GPU that draws much power lowers its clock within milliseconds. During the pause the clock recovers.
"""


def time_on_gpu(functions: Sequence[Callable[[], Any]], runs: int = 0, flush_bytes: int = 0) -> list[float]:
    """Call the functions in turn, ``runs`` times in all, and return the microseconds of each call.

    If ``runs`` is 0, make as many calls as ``BUDGET_US`` allows. Before each call, read ``flush_bytes`` of other
    memory.
    """
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
    # The argument is in clock cycles; the clock is assumed to be 2 GHz. The wait is at most a third of a second.
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
    """Return how many runs of this duration fit into ``BUDGET_US``, within the limits for the number of runs."""
    return int(max(FEWEST_RUNS, min(MOST_RUNS, BUDGET_US / max(microseconds, 1.0))))


def in_turns(clocks: Mapping[str, Callable[[int], list[float]]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Time several kernels that take turns, with a pause before each turn. Return the times of all runs by name.

    ``clocks[name](runs)`` executes that many runs of a kernel, and returns the microseconds of each.
    """
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
    """Return the median and percentiles of times, by the names of the fields of ``Timing``."""
    import numpy

    values: Any = numpy.percentile(microseconds, [50, 90, 95, 99])
    return {"median_us": float(values[0]), **{f"p{p}_us": float(v) for p, v in zip((50, 90, 95, 99), values)}}


def statistics(microseconds: Sequence[float]) -> dict[str, float | None]:
    """Return percentiles, mean, minimum, maximum and standard deviation, by the names of the fields of ``Timing``."""
    import numpy

    return {
        **percentiles(microseconds),
        "mean_us": float(numpy.mean(microseconds)),
        "minimum_us": float(min(microseconds)),
        "maximum_us": float(max(microseconds)),
        "deviation_us": float(numpy.std(microseconds, ddof=1)) if len(microseconds) > 1 else None,
    }
