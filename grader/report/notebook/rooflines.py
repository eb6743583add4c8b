"""A plot of the roofline of a GPU, with kernels at their operations per byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.report.notebook import style
from grader.report.notebook.gpus import gpu as gpu_named

Point = tuple[float, float] | tuple[float, float, float]
"""The operations and bytes of a kernel; optionally its measured seconds."""


def intensity(flops: float, moved_bytes: float) -> float:
    """Return a point's operations per byte."""
    return flops / moved_bytes


def least_seconds(flops: float, moved_bytes: float, gpu: str = "H200", tensor_cores: bool = False) -> float:
    """Return the time that the roofline allows: memory or arithmetic, whichever takes longer."""
    peak = gpu_named(gpu)
    return max(moved_bytes / peak.bandwidth, flops / (peak.f16_tensor if tensor_cores else peak.f32))


def roofline(points: Mapping[str, Point], gpu: str = "H200", tensor_cores: bool = False, ax: Any = None) -> Any:
    """Draw the roofline of ``gpu`` with kernels. A kernel without a measured time lies on the roofline."""
    import matplotlib.pyplot as plt

    peak = gpu_named(gpu)
    top = peak.f16_tensor if tensor_cores else peak.f32
    ridge = peak.ridge(tensor_cores)
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 4.0))
    known = [intensity(point[0], point[1]) for point in points.values()] or [ridge]
    left = min(0.1, *(value / 3 for value in known))
    right = max(10 * ridge, *(value * 4 for value in known))
    ax.plot([left, ridge, right], [left * peak.bandwidth, top, top], color=style.INK, lw=1.8)
    ax.plot([ridge, ridge], [left * peak.bandwidth, top], color=style.PALE, lw=1, zorder=0)
    for number, (name, point) in enumerate(points.items()):
        x = intensity(point[0], point[1])
        roof = min(top, x * peak.bandwidth)
        y = point[0] / point[2] if len(point) == 3 else roof
        color = (style.BLUE, style.ORANGE, style.GREEN, style.RED)[number % 4]
        if len(point) == 3:
            ax.plot([x, x], [y, roof], color=color, lw=1, ls=":")
            name = f"{name} ({100 * y / roof:.0f} %)"
        ax.plot(x, y, "o", color=color, ms=7, zorder=3)
        # In the memory-bound part (the slope), a label is to the right of its point. In the compute-bound part (the
        # flat roof), labels are below their points, at alternating heights. Close to the ridge, where the parts meet,
        # they begin at the point, because a centered label would cross the slope.
        flat = x >= ridge
        centered = x >= 2 * ridge
        place = (0 if centered else 9, -16 - 14 * (number % 3)) if flat else (9, -4)
        ax.annotate(
            name,
            (x, y),
            xytext=place,
            textcoords="offset points",
            color=color,
            fontsize=9,
            ha="center" if centered else "left",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_ylim(left * peak.bandwidth, top * 3)
    ax.set_xlabel("operations per byte moved")
    ax.set_ylabel("operations per second")
    middle = left**0.3 * ridge**0.7  # a place on the slope that has room for a label
    memory = f"memory: {peak.bandwidth / 1e12:.3g} TB/s  "
    ax.text(middle, middle * peak.bandwidth * 1.1, memory, fontsize=8.5, color=style.GRAY, ha="right", va="bottom")
    kind = "tensor cores, f16" if tensor_cores else "CUDA cores, f32"
    ax.text(ridge, top * 1.15, f"{kind}: {top / 1e12:.3g} T/s", fontsize=8.5, color=style.GRAY, va="bottom")
    ax.set_title(f"Roofline of one {peak.name}", loc="left")
    return ax
