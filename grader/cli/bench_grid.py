"""``grader bench --grid``: attention kernels over a grid of sizes, into a CSV file and a picture."""

from __future__ import annotations

from pathlib import Path

from grader.cli.messages import print_error, shown_path
from grader.course import Course, Entry
from grader.report import theme
from grader.setup.errors import GraderError
from grader.verdict import words


def with_grid(entries: list[Entry], every: bool) -> list[Entry]:
    """Return the exercises that have a grid; raise if a named one has none."""
    having = [entry for entry in entries if entry.load().grid is not None]
    if every:
        if not having:
            raise GraderError("no exercise has a grid of sizes", "An author adds one with `grid=` in tasks.py.")
        return having
    for entry in entries:
        if entry not in having:
            known = ", ".join(other.variable for other in Course().exercises if other.load().grid is not None)
            raise GraderError(f"{entry.name} has no grid of sizes", f"Exercises with a grid: {known}.")
    return having


def bench_grid(entries: list[Entry], kernels: list[Path], path: Path, minutes: float) -> int:
    """Measure the grid, write the CSV file and draw the picture. ``kernels``: the file to time for each exercise."""
    import torch

    from grader.judge.timing.grid import read_rows, run_grid
    from grader.report.grid_plot import save_plot

    if not torch.cuda.is_available():
        raise GraderError(
            "a grid is measured on a GPU, and there is none here", "The simulator does not predict times."
        )
    if minutes <= 0:
        raise GraderError(f"--minutes {minutes:g}: it must be greater than 0")
    from grader.judge.timing.grid_on_gpu import measuring

    console = theme.console()
    failed = 0
    for entry, file in zip(entries, kernels):
        task = entry.load()
        measured = before = noted = 0
        try:
            with measuring(task, file) as measurer:
                planned = len(measurer.plan)
                console.print(f"  {entry.name}: {words.count(planned, 'row')}", highlight=False)
                for row in run_grid(measurer.plan, path, measurer.measure, minutes / len(entries)):
                    if row is None:
                        before += 1
                    elif row.note:
                        noted += 1
                        size = f"C {row.C}, H {row.H}" + (f", N {row.N}, B {row.B}" if row.N else "")
                        console.print(f"    {row.dtype} {size}: {row.note}", highlight=False, style="quiet")
                    else:
                        measured += 1
                        if measured % 50 == 0:
                            console.print(f"    {measured} measured", highlight=False)
        except GraderError as error:
            if len(entries) == 1:
                raise
            failed += 1
            print_error(f"{entry.name}: {error.message}", error.hint)
            continue
        missing = planned - measured - before - noted
        console.print(
            f"    {measured} measured, {noted} left out, {before} measured earlier"
            + (f"; time is up, {missing} remain: run the same command to continue" if missing else ""),
            highlight=False,
        )
    picture = path.with_suffix(".png")
    save_plot(read_rows(path), picture)
    print(f"  {shown_path(path)} and {shown_path(picture)} are written")
    return 2 if failed else 0
