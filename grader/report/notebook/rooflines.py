"""Plots of the roofline of a GPU, and of two GPUs, with kernels at their operations per byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.course import Course, course_root
from grader.report.notebook import style
from grader.report.notebook.gpus import gpu as gpu_named
from grader.verdict import Timing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grader.judge.timing.here import Compared
    from grader.judge.timing.machine import Machine

MOST_NAMES = 10
"""The maximum number of exercises whose names ``draw_rooflines`` shows."""

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
    on_flat_roof = 0
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
        place = (0 if centered else 9, -16 - 14 * (on_flat_roof % 3)) if flat else (9, -4)
        on_flat_roof += flat
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


def rooflines_here() -> Any:
    """Draw what ``grader bench --here`` measured on this machine beside an H200; nothing if it measured nothing."""
    from grader.judge.timing.here import compared, newest_file

    course = Course(course_root())
    file = newest_file(course.root)
    found = compared(course, file) if file else []
    return draw_rooflines(found) if found else None


def draw_rooflines(found: Sequence[Compared]) -> Figure:
    """Draw the measured rooflines of both GPUs, and each exercise at its longest size: a line joins its two points."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    from grader.judge.timing.here import machines

    figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    points = list(_points(found))
    intensities = [here.flops / here.bytes for _, here, _ in points if here.flops]
    left = min([0.1, *(value / 2 for value in intensities)])
    right = max([2000.0, *(value * 8 for value in intensities)])
    lines, labels = [], []
    sides = ("here", style.BLUE, right / 2), ("recorded", style.ORANGE, right)
    for machine, (whose, color, at) in zip(machines(found).values(), sides):
        _draw_roofline(ax, machine, (left, right), color, at)
        lines.append(Line2D([], [], color=color, marker="o", lw=1.8))
        labels.append(f"{machine.device}, {whose}")
    for name, here, h200 in points:
        x = here.flops / here.bytes if here.flops else left
        rates = [timing.flops / timing.median_us * 1e6 for timing in (here, h200) if timing and timing.flops]
        ax.plot([x] * len(rates), rates, color=style.GRAY, lw=0.8, zorder=2)
        for rate, color in zip(rates, (style.BLUE, style.ORANGE)):
            ax.plot(x, rate, "o", color=color, ms=5, zorder=3)
        if len(points) <= MOST_NAMES:
            where = {"xytext": (6, -12), "textcoords": "offset points"}
            ax.annotate(name, (x, min(rates)), fontsize=8, color=style.INK, **where)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_xlabel("operations per byte moved")
    ax.set_ylabel("operations per second")
    ax.set_title("Solutions below the rooflines of two GPUs, each measured", loc="left")
    ax.legend(lines, labels, loc="upper left")
    return figure


def _draw_roofline(ax: Any, machine: Machine, ends: tuple[float, float], color: str, at: float) -> None:
    """Draw the bandwidth of a copy as a slope, and torch's matmul rates as flat roofs with their names at ``at``."""
    left, right = ends
    if not machine.copy_gigabytes_per_second:
        return
    slope = machine.copy_gigabytes_per_second * 1e9
    rates = machine.product_gigaflops
    roofs = {"f32": rates.get("f32"), "f16": max(rates.get("f16", 0), rates.get("bf16", 0)), "f8": rates.get("f8")}
    known = {dtype: rate * 1e9 for dtype, rate in roofs.items() if rate}
    top = max(known.values(), default=slope * right)
    ax.plot([left, min(right, top / slope)], [left * slope, min(right * slope, top)], color=color, lw=1.8)
    for dtype, rate in known.items():
        ax.plot([rate / slope, right], [rate, rate], color=color, lw=1.8 if rate == top else 1)
        ax.text(at, rate * 1.04, dtype, fontsize=8, color=color, ha="right", va="bottom")


def _points(found: Sequence[Compared]) -> Iterable[tuple[str, Timing, Timing | None]]:
    """Yield for each exercise its longest size that has operations, with the recorded time."""
    for one in found:
        rows = [(here, h200) for here, h200 in one.rows() if here.median_us and here.flops and here.bytes]
        if rows:
            yield one.entry.variable, *max(rows, key=lambda row: row[0].median_us)
