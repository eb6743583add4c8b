"""Times of real GPUs in a lesson: recorded times, and times measured on this machine's GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from grader.course import course_root, find
from grader.judge.timing.recordings import recorded_day
from grader.report.failures import paragraph
from grader.report.notebook.panel import Panel
from grader.report.notebook.places import lesson
from grader.report.timings import machine_line, median_table, render_bench
from grader.setup.errors import GraderError
from grader.verdict import Timing


def h200_table(day: str | Path, *exercises: str) -> Panel:
    """Show the recorded times of a day's solutions, or only of ``exercises``. A note names what is not recorded.

    ``day``: the lesson's folder or its name.
    """
    folder = day if isinstance(day, Path) else lesson(day)
    recorded = recorded_day(folder)
    names = exercises or tuple(recorded)
    missing = [name for name in names if name not in recorded]
    rows: list[RenderableType] = []
    shown = {name: [_timing(item) for item in recorded[name]["timings"]] for name in names if name in recorded}
    if shown:
        rows.append(median_table(shown))
        rows.append(Text(""))
        for line in dict.fromkeys(_origin(recorded[name]) for name in shown):
            rows.append(paragraph(line, style="quiet", indent=0))
    if missing or not names:
        command = f"grader bench {folder.name}/{missing[0]}" if missing else "grader bench --all"
        what = f"Not recorded yet: {', '.join(missing)}" if missing else "Not recorded yet"
        rows.append(Text(f"{what}. On an H200, `{command} --device cuda --record` fills this in."))
    return Panel(Group(*rows))


def h200_goals(day: str | Path, *goals: tuple[str, str, float], size: str = "") -> Panel:
    """Print a line for each goal of a day: the number of recorded rows that meet it.

    A goal is (exercise, "torch" or "copy", minimum). "torch" is torch's time divided by the
    kernel's. "copy" is the time of a copy of the same bytes divided by the kernel's; without a recorded copy, it is the
    share of the copy bandwidth of the same run. ``size``: only rows whose size begins with it count.
    """
    folder = day if isinstance(day, Path) else lesson(day)
    recorded = recorded_day(folder)
    lines: list[RenderableType] = []
    for exercise, yardstick, at_least in goals:
        wanted = f"{exercise}: at least {at_least:.2f} {'x torch' if yardstick == 'torch' else 'of copy'}"
        timings = [_timing(item) for item in recorded.get(exercise, {}).get("timings", [])]
        timings = [timing for timing in timings if timing.name.startswith(size)]
        values = [(_measured(timing, yardstick), timing) for timing in timings]
        known = [(value, timing) for value, timing in values if value is not None]
        if not known:
            lines.append(Text(f"{wanted}. Not recorded yet."))
            continue
        missed = [
            f"{timing.name}, {timing.dtype} ({_below(value, at_least)})" for value, timing in known if value < at_least
        ]
        met = len(known) - len(missed)
        lines.append(Text(f"{wanted}. Met in {met} of {len(known)} rows."))
        if missed:
            lines.append(paragraph(f"Not met: {'; '.join(missed)}", style="quiet", indent=2))
    return Panel(Group(*lines))


def _below(value: float, limit: float) -> str:
    """Format a figure with enough digits that it does not look equal to the limit that it misses."""
    return f"{value:.2f}" if round(value, 2) < limit else f"{value:.3f}"


def _measured(timing: Timing, yardstick: str) -> float | None:
    """Return a row's figure for a yardstick; None if it was not recorded."""
    if yardstick == "torch":
        return timing.torch_ratio
    if timing.copy_us:
        return timing.copy_us / timing.median_us
    return None if timing.percent_of_copy is None else timing.percent_of_copy / 100


def _timing(values: dict[str, Any]) -> Timing:
    return msgspec.convert(values, Timing)


def _origin(entry: dict[str, Any]) -> str:
    from grader.judge.timing.machine import Machine

    return f"{machine_line(Machine(**entry['machine']), entry['device'])}, {entry['date']}"


def measure_here(exercise: str, file: str | Path | None = None) -> Panel:
    """Time a kernel, by default the course's solution, on this machine's GPU. Print a note if there is none."""
    import torch

    if not torch.cuda.is_available():
        return Panel(Text("No GPU here, so nothing is measured: the recorded table names its GPU."))
    from grader.judge.timing.bench import bench

    entry = find(exercise, course_root())
    try:
        return Panel(render_bench(bench(entry, file or entry.solution, "cuda", compiled=False)))
    except GraderError as error:
        return Panel(Text(str(error)))
