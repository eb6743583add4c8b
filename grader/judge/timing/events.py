"""Times GPU work of this process with CUDA events: torch's functions, copies and matmuls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BUDGET_US = 300_000.0
"""The GPU time, in microseconds, that the timed runs of one size may take together."""

MOST_RUNS = 400

PAUSE = 0.1
"""The pause before a turn, in seconds.

A GPU that draws much power lowers its clock within milliseconds. During the pause the clock recovers.
"""


@dataclass(frozen=True)
class Pace:
    """The effort of a measurement: how many turns the kernels take, and how long each is."""

    rounds: int = 6
    turn_us: float = 10_000.0
    """The approximate duration of a turn in microseconds."""
    fewest_runs: int = 20
    warmup: int = 5
    """The number of runs before the timed ones of each turn."""
    tried: int = 3
    """The number of runs from which the number of runs in a turn is computed."""
    rest: float = math.inf
    """The maximum pause, as a multiple of the GPU time of the turn before it."""

    def runs_for(self, microseconds: float) -> int:
        """Return how many runs of this duration fit into ``BUDGET_US``, within the limits for the number of runs."""
        return int(max(self.fewest_runs, min(MOST_RUNS, BUDGET_US / max(microseconds, 1.0))))


THOROUGH = Pace()
"""The pace of ``grader bench`` and of the recorded figures."""

QUICK = Pace(rounds=2, turn_us=2_500.0, fewest_runs=10, warmup=2, tried=1, rest=10.0)
"""The pace of a check, whose limits allow for 5 % and more. A short turn hardly lowers the clock."""


def time_on_gpu(
    functions: Sequence[Callable[[], Any]], runs: int = 0, flush_bytes: int = 0, pace: Pace = THOROUGH
) -> list[float]:
    """Call the functions in turn, ``runs`` times in all, and return the microseconds of each call.

    If ``runs`` is 0, make as many calls as ``BUDGET_US`` allows. Before each call, read ``flush_bytes`` of other
    memory.
    """
    import torch

    other = torch.empty(flush_bytes // 4, dtype=torch.int32, device="cuda") if flush_bytes else None
    for warm in range(max(pace.warmup, len(functions))):
        functions[warm % len(functions)]()
    torch.cuda.synchronize()
    if not runs:
        began = time.perf_counter()
        for warm in range(3):
            functions[warm % len(functions)]()
        torch.cuda.synchronize()
        runs = pace.runs_for((time.perf_counter() - began) / 3 * 1e6)
    began = time.perf_counter()
    functions[0]()
    host_us = (time.perf_counter() - began) * 1e6 + 30
    torch.cuda.synchronize()
    begin = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    end = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    # Let the GPU wait until the host has submitted all runs. _sleep takes clock cycles, assumed to be at 2 GHz. The
    # maximum is a third of a second.
    torch.cuda._sleep(int(min(host_us * runs * 2000, 600e6)))
    for run in range(runs):
        if other is not None:
            other.sum()
        begin[run].record()
        functions[run % len(functions)]()
        end[run].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(begin, end)]


def in_turns(clocks: Mapping[str, Callable[[int], list[float]]], pace: Pace = THOROUGH) -> dict[str, list[float]]:
    """Time several kernels that take turns, with a pause before each turn. Return the times of all runs by name.

    ``clocks[name](runs)`` executes that many runs of a kernel, and returns the microseconds of each.
    """
    runs = {}
    busy_us = 0.0
    for name, clock in clocks.items():
        tried = clock(pace.tried)
        us, busy_us = min(tried), sum(tried)
        wanted = max(pace.fewest_runs, int(pace.rounds * pace.turn_us / max(us, 1.0)))
        runs[name] = -(-min(pace.runs_for(us), wanted) // pace.rounds)
    times: dict[str, list[float]] = {name: [] for name in clocks}
    for _ in range(pace.rounds):
        for name, clock in clocks.items():
            time.sleep(min(PAUSE, pace.rest * busy_us * 1e-6))
            turn = clock(runs[name])
            times[name] += turn
            busy_us = sum(turn)
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
