"""The simulator's lower bounds of times, next to times measured on an H200.

``python -m tests.gpu.bounds`` records both.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.report.notebook import style
from grader.setup.errors import GraderError
from grader.verdict.wording.limits import UNITS


@dataclass(frozen=True)
class Compared:
    """One kernel call: its lower bound, the GPU unit that determines the bound, and its measured time."""

    name: str
    """The exercise or lesson, the dtype, and the version."""
    size: str
    limiter: str
    bound_us: float
    time_us: float | None
    """The median on an H200; None if it was not recorded."""

    @property
    def share(self) -> float:
        """The bound divided by the time; 0 without a time."""
        return self.bound_us / self.time_us if self.time_us else 0.0


def recorded_bounds(size: str = "") -> list[Compared]:
    """Return the recorded calls of one size (counted, small, middle) or of all, with bounds and times."""
    root = course_root() / "lessons"
    folder = root / "can_i_believe_this"
    times = _bench_times(root)
    if (folder / "bounds_h200.json").exists():
        times |= {(row["name"], row["size"]): row["median_us"] for row in _read(folder / "bounds_h200.json")["rows"]}
    return [
        Compared(row["name"], row["size"], row["limiter"], row["bound_us"], times.get((row["name"], row["size"])))
        for row in _read(folder / "bounds.json")["rows"]
        if size in ("", row["size"])
    ]


def bounds_plot(size: str = "middle", ax: Any = None) -> Any:
    """Plot each bound against its time, colored by the limiting unit. The title has the median of bound / time."""
    import matplotlib.pyplot as plt

    compared = [row for row in recorded_bounds(size) if row.time_us]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.5, 5.0))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("time on an H200 in us")
    ax.set_ylabel("lower bound from the simulator's counters in us")
    if not compared:
        ax.set_title(f"No times are recorded at the size {size!r}", loc="left")
        return ax
    ends = [min(row.bound_us for row in compared) / 2, 2 * max(row.time_us or 0.0 for row in compared)]
    ax.plot(ends, ends, color=style.INK, lw=1.2)
    colors = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.GRAY, style.INK)
    found = dict.fromkeys(row.limiter for row in compared)
    for number, unit in enumerate(found):
        points = [row for row in compared if row.limiter == unit]
        marker = "os^D"[number // len(colors)]
        times, bounds = [row.time_us for row in points], [row.bound_us for row in points]
        ax.plot(times, bounds, marker, color=colors[number % len(colors)], ms=6, label=UNITS[unit])
    ax.text(ends[1], ends[1], "bound = time ", color=style.GRAY, fontsize=8.5, ha="right", va="bottom")
    ax.legend(fontsize=8.5, loc="upper left")
    share = statistics.median(row.share for row in compared)
    ax.set_title(f"{len(compared)} bounds: {100 * share:.0f} % of the time at the median", loc="left")
    return ax


def _bench_times(root: Path) -> dict[tuple[str, str], float]:
    times = {}
    for path in sorted(root.glob("day*/h200.json")):
        for report in _read(path)["exercises"].values():
            for timing in report["timings"]:
                times[f"{report['exercise']} {timing['dtype']}", timing["name"]] = timing["median_us"]
    return times


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content
    except (OSError, ValueError) as error:
        raise GraderError(
            f"{path} cannot be read: {error}",
            "Write the file of time bounds again with `python -m tests.gpu.bounds --record`.",
        ) from error
