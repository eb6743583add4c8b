"""Times of real GPUs in a lesson: recorded times, and times measured on this machine's GPU."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.course import course_root, find
from grader.judge.timing.goals import reached
from grader.judge.timing.recordings import recorded_day
from grader.report.failures import paragraph
from grader.report.notebook.panel import WIDTH, Panel
from grader.report.timings import by_name, column_meanings, machine_line, median_table, render_bench
from grader.setup.errors import GraderError
from grader.verdict import Timing, words

if TYPE_CHECKING:
    from grader.judge.timing.machine import Machine


def h200_table(folder: Path, *exercises: str) -> Panel:
    """Show the recorded times of a day's solutions, or only of ``exercises``. A note names what is not recorded.

    ``folder``: the lesson's folder, which ``lesson`` returns.
    """
    recorded = recorded_day(folder)
    names = exercises or tuple(recorded)
    missing = [name for name in names if name not in recorded]
    rows: list[RenderableType] = []
    shown = {name: msgspec.convert(recorded[name]["timings"], list[Timing]) for name in names if name in recorded}
    if shown:
        rows.append(median_table(shown))
        rows.append(Text(""))
        timings = [timing for of_kernel in shown.values() for timing in of_kernel]
        rows.append(paragraph(column_meanings(timings), style="quiet", indent=0))
        rows += [paragraph(line, style="quiet", indent=0) for line in _origins(recorded[name] for name in shown)]
    if missing or not names:
        command = f"grader bench {folder.name}/{missing[0]}" if missing else "grader bench --all"
        what = f"Not recorded yet: {', '.join(missing)}" if missing else "Not recorded yet"
        rows.append(Text(f"{what}. On an H200, `{command} --device cuda --record` fills this in."))
    return Panel(Group(*rows))


def h200_goals(folder: Path) -> Panel:
    """Print a line for each goal of a day in ``exercises/goals.toml``: the number of recorded rows that meet it.

    For a goal that is missed, print the rows that miss it and the reason.
    """
    lines: list[RenderableType] = []
    for found in reached(course_root(), folder.name, folder):
        goal = found.goal
        wanted = f"{goal.title}: {goal.limit}."
        if not found.rows:
            lines.append(Text(f"{wanted} {found.explained}"))
            continue
        lines.append(Text(f"{wanted} Met in {len(found.rows) - len(found.missed)} of {len(found.rows)} rows."))
        if found.missed:
            lines.append(paragraph(found.explained, style="quiet", indent=2))
    return Panel(Group(*(lines or [Text("This day has no goals for times.")])))


def h200_profiles(folder: Path) -> Panel:
    """Show Nsight Compute's counters of the kernels that miss a goal of a day, as recorded on a GPU.

    A row has the kernel's time, the shares of peak rates that it reaches, the resident warps per SM, and what a warp
    waits for most, in cycles per issued instruction. If nothing is recorded, print the command that records it.
    """
    file = folder / "profiles_gpu.json"
    if not file.exists():
        return Panel(Text(f"Not recorded yet. On an H200, `python -m tests.gpu.profile {folder.name} --record` does."))
    record = json.loads(file.read_text(encoding="utf-8"))
    titles = ["kernel", "time", *_SHARES.values(), "warps", "longest wait"]
    rows = []
    for name, figures in record["kernels"].items():
        waits = {
            key.removeprefix("waits for "): value for key, value in figures.items() if key.startswith("waits for ")
        }
        reason = max(waits, key=lambda key: waits[key])
        shares = [f"{figures[figure]:.0f} %" for figure in _SHARES]
        cells = (words.microseconds(figures["us"]), *shares, f"{figures['warps per SM']:.0f}")
        rows.append([name, *cells, f"{reason}: {waits[reason]:.1f}"])
    origin = f"{record['gpu']}, {record['date']}: {record['command']}"
    table = by_name(titles, rows, left=1, width=WIDTH)
    return Panel(Group(table, Text(""), paragraph(origin, style="quiet", indent=0)))


def library_times(folder: Path) -> Panel:
    """Show the times of NVIDIA's libraries and of the course's kernels, as recorded on a GPU: a column for each size.

    If nothing is recorded, print the command that records it.
    """
    file = folder / "libraries_gpu.json"
    if not file.exists():
        return Panel(Text(f"Not recorded yet. On a GPU, `python -m tests.gpu.libraries {folder.name} --record` does."))
    record = json.loads(file.read_text(encoding="utf-8"))
    sizes = list(dict.fromkeys(row["size"] for row in record["rows"]))
    functions: dict[str, dict[str, dict[str, Any]]] = {}
    for row in record["rows"]:
        functions.setdefault(row["name"], {})[row["size"]] = row
    errors = any("error" in row for row in record["rows"])
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("function")
    for title in (*sizes, *(["error"] if errors else [])):
        table.add_column(title, justify="right")
    for name, rows in functions.items():
        times = [words.microseconds(rows[size]["us"]) if size in rows else "" for size in sizes]
        error = next((f"{row['error']:.0e}" for row in rows.values() if "error" in row), "")
        table.add_row(name, *times, *([error] if errors else []))
    notes = [record["note"]] if record.get("note") else []
    origin = f"{record['gpu']}, CUDA {record['cuda']}, {record['date']}: {record['command']}"
    texts = [paragraph(text, style="quiet", indent=0) for text in (*notes, origin)]
    return Panel(Group(table, Text(""), *texts))


_SHARES = {
    "DRAM, % of peak": "DRAM",
    "L2, % of peak": "L2",
    "issue slots, % used": "issue",
    "integer and logic unit, %": "integer",
    "float unit, %": "float",
    "tensor cores, % of time": "tensor",
}
"""Recorded figures by name, with the titles of their columns."""


def _origins(entries: Iterable[dict[str, Any]]) -> list[str]:
    """Return a line for each GPU, software and date that measured some of the entries."""
    from grader.judge.timing.machine import Machine

    machines: dict[tuple[str, ...], list[Machine]] = {}
    for entry in entries:
        machine = Machine(**entry["machine"])
        origin = (entry["device"], entry["date"], machine.device, machine.driver, machine.cuda, machine.torch)
        machines.setdefault(origin, []).append(machine)
    return [f"{machine_line(origin[0], *measured)}, {origin[1]}" for origin, measured in machines.items()]


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
