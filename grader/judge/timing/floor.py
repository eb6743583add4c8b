"""The physical floor: the lower bound of any kernel's time on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grader.course.task import Call, Exercise

OPERATIONS_PER_CYCLE = {8: 2048, 9: 4096, 10: 8192, 12: 2048}
"""f16 operations per cycle with f32 sums on an SM's tensor cores, by the major compute capability.

Each is the largest of its family (NVIDIA's architecture whitepapers: A100, H100, B200, RTX 5090). No arithmetic within
the tolerances is faster.
"""


@dataclass(frozen=True)
class Limits:
    """The peak rates of a GPU. Unknown rates are infinite, so no time is below the floor."""

    bytes_per_second: float = math.inf
    operations_per_second: float = math.inf
    l2_bytes: int = 0
    """The bytes that the cache may hold, and that need not move."""

    def floor_us(self, task: Exercise, call: Call) -> float:
        """Return the microseconds that the bytes and the operations of a call need at the peak rates."""
        moved = max(0.0, task.roofline_bytes(call) - self.l2_bytes)
        rate = self.operations_per_second * (2 if task.flops_of == "f8" else 1)
        return 1e6 * max(moved / self.bytes_per_second, (task.operations(call) or 0.0) / rate)


def limits_of_gpu() -> Limits:
    """Return the limits of the first GPU, from its driver's clocks, memory and SM count."""
    import torch

    from grader.execution.runner.gpu import highest_clock, peak_bandwidth

    about = torch.cuda.get_device_properties(0)
    per_cycle = OPERATIONS_PER_CYCLE.get(about.major, math.inf)
    l2_bytes = int(getattr(about, "L2_cache_size", 0) or 64 << 20)
    return Limits(peak_bandwidth(), per_cycle * about.multi_processor_count * highest_clock(), l2_bytes)
