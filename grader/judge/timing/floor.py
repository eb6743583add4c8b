"""Computes the physical floor of a task on a GPU: a time that no kernel can beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grader.course.task import Call, Exercise

OPERATIONS_PER_CYCLE = {8: 2048, 9: 4096, 10: 8192, 12: 2048}
"""f16 operations per cycle of an SM's tensor cores with f32 accumulators, by the major compute capability.

Each is the highest rate of its generation, from NVIDIA's architecture whitepapers (A100, H100, B200, RTX 5090). Faster
arithmetic would exceed the exercises' tolerances.
"""


@dataclass(frozen=True)
class Limits:
    """The peak rates of a GPU. An unknown rate is infinite, so that the floor is never too high."""

    bytes_per_second: float = math.inf
    operations_per_second: float = math.inf
    l2_bytes: int = 0
    """The size of the L2 cache. Bytes that are already in this cache need not be read from device memory."""

    def floor_us(self, task: Exercise, call: Call) -> float:
        """Return the floor of a call in microseconds: the time for its bytes or its operations at the peak rates."""
        moved = max(0.0, task.roofline_bytes(call) - self.l2_bytes)
        rate = self.operations_per_second * (2 if task.flops_of == "f8" else 1)
        return 1e6 * max(moved / self.bytes_per_second, (task.operations(call) or 0.0) / rate)


def limits_of_gpu() -> Limits:
    """Return the limits of the first GPU, from the clocks, memory and SM count that the driver reports."""
    import torch

    from grader.execution.runner.gpu import highest_clock, peak_bandwidth

    about = torch.cuda.get_device_properties(0)
    per_cycle = OPERATIONS_PER_CYCLE.get(about.major, math.inf)
    l2_bytes = int(getattr(about, "L2_cache_size", 0) or 64 << 20)
    return Limits(peak_bandwidth(), per_cycle * about.multi_processor_count * highest_clock(), l2_bytes)
