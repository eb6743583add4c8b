"""``grader bench``: the time of a kernel, compared with the roofline and with torch in the same run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.cli.messages import find_exercise, print_error, shown_path
from grader.cli.options import DeviceName
from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.report import theme
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import words

if TYPE_CHECKING:
    from rich.console import Console

    from grader.judge.timing.bench import BenchReport
    from grader.judge.timing.machine import Machine


def command(
    exercise: Annotated[list[str] | None, typer.Argument(metavar="EXERCISE...", help="The exercises to time.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Time the solutions of all exercises.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="F", help="Time this file instead of your own in exercises/.")
    ] = None,
    device: Annotated[
        DeviceName | None,
        typer.Option(help="A GPU (cuda), or the simulator's host (cpu). Default: a GPU if there is one."),
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Time the solution on an H200 or H100, and save the times beside the lessons."),
    ] = False,
    record_in: Annotated[
        Path | None,
        typer.Option(
            "--record-in", metavar="FILE", help="Time the solution on any GPU, and save the times in this file."
        ),
    ] = None,
    recorded: Annotated[bool, typer.Option("--recorded", help="Time nothing: show the recorded times.")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the times here.")] = None,
    here: Annotated[
        bool,
        typer.Option(
            "--here",
            help="Time the solutions on this machine's GPU beside an H200's recorded times: one table, and a plot of "
            "both rooflines. Default: all exercises. A second run continues; --recorded shows the last times.",
        ),
    ] = False,
    grid: Annotated[
        bool,
        typer.Option(
            "--grid",
            help="Time attention beside torch for lengths 1024-8192, widths 512-2048, 8-32 heads, batches 1-32. Write "
            "a CSV file and a picture.",
        ),
    ] = False,
    csv_out: Annotated[
        Path,
        typer.Option("--csv", metavar="OUT", help="With --grid: append rows here; sizes that it contains are skipped."),
    ] = Path("grid.csv"),
    minutes: Annotated[
        float, typer.Option(metavar="M", help="With --grid: after M minutes, start no further size.")
    ] = 20.0,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show mean, standard deviation, minimum and maximum.")
    ] = False,
) -> int:
    """Time kernels and compare them with torch.

    On a GPU: P50 to P99, percent of the roofline and of a copy, and torch in the same run. On the simulator: only the
    simulator's own speed, which says nothing about a GPU.
    """
    course = Course()
    if every == bool(exercise) and (every or not here):
        raise GraderError("name one exercise, or give --all", "`grader list` shows the exercises.")
    if file is not None and (every or len(exercise or []) > 1):
        raise GraderError("--file needs exactly one exercise, without --all", "Name one exercise.")
    record = record or record_in is not None
    if recorded and (file is not None or record or device is not None):
        raise GraderError("--recorded shows recorded times: it excludes --file, --record and --device")
    if grid and (record or recorded or json_out is not None or device == "cpu"):
        raise GraderError("--grid measures on a GPU and writes a CSV file: it excludes other reports and --device cpu")
    if here and (grid or record or file is not None or device == "cpu"):
        raise GraderError("--here times solutions on a GPU: it excludes --file, --grid, --record and --device cpu")
    entries = course.exercises if every else [find_exercise(course, name) for name in exercise or []]
    if here:
        from grader.cli.bench_here import bench_here

        _write(json_out, bench_here(course, entries, only_kept=recorded))
        return 0
    if grid:
        from grader.cli.bench_grid import bench_grid, with_grid

        chosen = with_grid(entries, every)
        kernels = [_kernel(course, entry, file, every) for entry in chosen]
        return bench_grid(chosen, kernels, csv_out, minutes)
    console = theme.console()
    from grader.report.timings import render_bench

    reports: list[BenchReport] = []
    if recorded:
        reports = _kept(entries, every)
        for report in reports:
            console.print(render_bench(report, verbose))
        _end(console, reports, every)
        _write(json_out, reports)
        return 0
    if device is None:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    if record:  # check before timing, which may take an hour
        from grader.judge.timing.machine import gpu_name
        from grader.judge.timing.recordings import check_recordable

        check_recordable(device, gpu_name() if device == "cuda" else "", record_in)
    machine: Machine | None = None
    failed = 0
    for entry in entries:
        if every and not entry.load().bench:
            console.print(f"  {entry.name}: not timed, because its task lists no sizes\n")
            continue
        try:
            if entry.language == "python":
                raise GraderError(f"{entry.name} is a Python exercise: it has no kernel to time", "Name another one.")
            kernel = _kernel(course, entry, file, every or record)
            report = _time(entry, kernel, device, machine, every or record)
        except GraderError as error:
            if len(entries) == 1:
                raise
            failed += 1
            print_error(f"{entry.name}: {error.message}", error.hint)
            continue
        machine = report.machine
        reports.append(report)
        console.print(render_bench(report, verbose))
        if record:
            from grader.judge.timing.recordings import record as keep

            print(f"  recorded in {shown_path(keep(report, entry, record_in))}")
        console.print()
    _end(console, reports, every)
    _write(json_out, reports)
    if failed:
        print_error(f"{words.count(failed, 'exercise')} of {len(entries)} could not be timed")
    return 2 if failed else 0


def _kernel(course: Course, entry: Entry, file: Path | None, solution: bool) -> Path:
    """Return the file to time."""
    if file is not None or solution:
        return file or entry.solution
    if entry.kind == "implement" and pristine.untouched(course, entry):
        raise GraderError(
            f"{shown_path(entry.skeleton)} is still the skeleton: there is no kernel to time",
            "Write the kernel first, or time another file with --file F; --all times the solutions.",
        )
    return entry.skeleton


def _kept(entries: list[Entry], every: bool) -> list[BenchReport]:
    """Return the recorded reports; raise if a named exercise has none."""
    from grader.judge.timing.recordings import recorded

    reports = [report for report in map(recorded, entries) if report is not None]
    if not reports:
        what = "nothing" if every else f"nothing of {entries[0].name}"
        raise GraderError(f"{what} is recorded", "On an H200, `grader bench --all --device cuda --record` records it.")
    return reports


def _end(console: Console, reports: list[BenchReport], every: bool) -> None:
    """Print the table of a transformer's operators, if all exercises were timed (``every``), and on a GPU."""
    from grader.report.operators import Row, operators_table

    if not every:
        return
    rows: list[Row] = []
    for report in reports:
        entry = Course().find(report.exercise)
        operator = entry.load().operator
        if operator and report.device == "cuda":
            rows += [(operator, entry.variable, timing) for timing in report.timings]
    if rows:
        order = {dtype: place for place, dtype in enumerate(("f32", "f16", "bf16"))}
        operators = list(dict.fromkeys(row[0] for row in rows))
        rows.sort(key=lambda row: (operators.index(row[0]), order.get(row[2].dtype, 9)))
        console.print(operators_table(rows))
        console.print()


def _time(entry: Entry, kernel: Path, device: str, machine: Machine | None, solution: bool) -> BenchReport:
    from grader.judge.timing.bench import bench

    console = theme.console(sys.stderr)
    shown = f"grader bench {entry.name} --device {device}" + (" --record" if solution else "")
    with console.status(f"timing {entry.variable}") as status:
        return bench(
            entry,
            kernel,
            device,
            machine=machine,
            command=shown,
            on_progress=lambda text: status.update(f"timing {entry.variable}: {text}"),
        )


def _write(path: Path | None, reports: list[BenchReport]) -> None:
    if path is not None:
        write_file(path, json.dumps([report.to_dict() for report in reports], indent=1) + "\n")
