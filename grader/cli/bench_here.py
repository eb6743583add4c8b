"""``grader bench --here``: the solutions on this machine's GPU, beside the times recorded on an H200."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.messages import print_note, shown_path
from grader.course import Course, Entry
from grader.report import theme
from grader.setup.errors import GraderError
from grader.verdict import words

if TYPE_CHECKING:
    from rich.console import Console

    from grader.judge.timing.bench import BenchReport
    from grader.judge.timing.here import Compared


def bench_here(course: Course, entries: list[Entry], only_kept: bool) -> list[BenchReport]:
    """Measure what is not measured yet, show the table and the plot, and return the times on this machine's GPU.

    ``entries``: the exercises that the table shows; empty for all. ``only_kept``: show earlier times, measure nothing.
    """
    from grader.judge.timing.here import COMMAND, check_gpu, compared, file_for, newest_file, timed_exercises

    if only_kept:
        file = newest_file(course.root)
        if file is None:
            raise GraderError("nothing was measured on this machine's GPU yet", f"`{COMMAND}` measures on a GPU.")
    else:
        gpu = check_gpu()
        file = file_for(course.root, gpu)
        timed = timed_exercises(entries or course.exercises)
        if untimed := [entry.name for entry in entries if entry not in timed]:
            raise GraderError(f"{', '.join(untimed)} has no sizes to time", "`grader list` shows the exercises.")
        try:
            _measure(timed, file, gpu)
        except KeyboardInterrupt:
            print_note("the times so far are kept: the same command continues")
            raise
    found = compared(course, file, entries or None)
    if not found:
        raise GraderError(f"{shown_path(file)} has no times of these exercises", f"`{COMMAND}` measures them.")
    _show(found, file)
    return [one.here for one in found]


def _measure(entries: list[Entry], file: Path, gpu: str) -> None:
    from grader.judge.timing.here import Measurer, run

    with progress(theme.console(sys.stderr)) as shown:
        run(entries, file, Measurer(shown.say).measure, gpu, shown.show)


class Progress:
    """The line that shows how many sizes are measured, and an estimate of the remaining time."""

    def __init__(self, update: Callable[[str], None], each: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._update, self._each, self._clock = update, each, clock
        self._began = clock()
        self._head = ""

    def show(self, done: int, left: int, exercise: str) -> None:
        """Begin an exercise. ``done`` and ``left``: the numbers of sizes that are measured and that remain."""
        head = f"{done} of {words.count(done + left, 'size')}"
        if done:
            minutes = (self._clock() - self._began) / done * left / 60
            head += f", about {max(1, round(minutes))} min left"
        self._head = f"{head}: {exercise}"
        self._update(self._head)

    def say(self, step: str) -> None:
        """Show a step of the exercise."""
        if not self._each:
            self._update(f"{self._head}, {step}"[: theme.WIDTH - 4])


@contextlib.contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """Show the progress in one line of a terminal; elsewhere, print a line for each exercise."""
    if not console.is_terminal:
        yield Progress(lambda text: console.print(f"  {text}"), each=True)
        return
    with console.status("") as status:
        yield Progress(status.update, each=False)


def _show(found: list[Compared], file: Path) -> None:
    from grader.report.failures import paragraph
    from grader.report.here import here_table, summary
    from grader.report.notebook.rooflines import draw_rooflines
    from grader.report.plots import save

    console = theme.console()
    console.print(here_table(found))
    picture = file.with_suffix(".png")
    save(lambda: draw_rooflines(found), picture, "Make the course folder writable.")
    console.print()
    console.print(paragraph(summary(found)))
    print(f"  {shown_path(file)}: the times\n  {shown_path(picture)}: both rooflines")
