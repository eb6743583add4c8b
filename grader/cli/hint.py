"""``grader hint``: one hint at a time. The number of shown hints is stored."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from grader.cli.messages import find_exercise, print_note, short_name
from grader.course import Course, Entry
from grader.course.learner.progress import ProgressFile
from grader.report import theme
from grader.report.failures import paragraph
from grader.report.task_view import render_task
from grader.setup.errors import GraderError


def command(
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="The exercise.")],
) -> int:
    """Show the task, and one more hint than last time.

    The first is a nudge, the second the idea, the third nearly the code.
    """
    course = Course()
    entry = find_exercise(course, exercise)
    show_next(course, entry)
    return 0


def show_next(course: Course, entry: Entry, again: str = "", console: Console | None = None) -> None:
    """Print the task and one more hint than last time, or all hints once all have been shown.

    ``again``: the command to print for the next hint; default: ``grader hint NAME``.
    """
    if not entry.hints:
        raise GraderError(f"{entry.name} has no hints", "Read the lesson of the exercise's day.")
    task = entry.load()
    progress = ProgressFile(course.root)
    shown = min(progress.read().of(entry.name).hints_shown, len(entry.hints))
    console = console or theme.console()
    console.print()
    console.print(Text(f"  {entry.title}", style="title"))
    console.print(render_task(task))
    console.print()
    if shown < len(entry.hints):
        _print_hint(console, entry, shown)
        shown += 1
        try:
            progress.record_hint(entry.name, shown)
        except GraderError as error:
            print_note(error.message)
    else:
        for number in range(len(entry.hints)):
            _print_hint(console, entry, number)
    rest = len(entry.hints) - shown
    again = again or f"grader hint {short_name(entry, course)}"
    if rest:
        line = Text(f"  {rest} more: ", style="quiet")
        line.append(again, style="command")
    else:
        line = Text("  That was the last one. This shows the whole solution:\n    ", style="quiet")
        line.append(f"grader solution {short_name(entry, course)} --spoil", style="command")
    console.print(line)
    console.print()


def _print_hint(console: Console, entry: Entry, number: int) -> None:
    console.print(Text(f"  Hint {number + 1} of {len(entry.hints)}, {entry.name}", style="title"))
    console.print(paragraph(entry.hints[number]))
    console.print()
