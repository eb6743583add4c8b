"""``grader hint``: one hint at a time. The number of shown hints is stored."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from grader.cli.messages import find_exercise, print_note, short_name
from grader.cli.options import Exercise
from grader.course import Course, Entry
from grader.course.learner.progress import ProgressFile
from grader.report import theme
from grader.report.failures import paragraph
from grader.report.task_view import render_task
from grader.setup.errors import GraderError


def command(exercise: Exercise) -> int:
    """Show the task, and one more hint than last time.

    The first is a nudge, the second the idea, the third nearly the code.
    """
    course = Course()
    show_next(course, find_exercise(course, exercise))
    return 0


def show_next(course: Course, entry: Entry, again: str = "", console: Console | None = None) -> None:
    """Print the task and one more hint than last time, or all hints once all have been shown.

    ``again``: the command to print for the next hint; default: ``grader hint NAME``.
    """
    if not entry.hints:
        raise GraderError(f"{entry.name} has no hints", "Read the lesson of the exercise's day.")
    progress = ProgressFile(course.root)
    shown = min(progress.read().of(entry.name).hints_shown, len(entry.hints))
    console = console or theme.console()
    console.print()
    console.print(Text(f"  {entry.title}", style="title"))
    console.print(render_task(entry.load()))
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
    name = short_name(entry, course)
    if rest:
        said, following = f"  {rest} more: ", again or f"grader hint {name}"
    else:
        said = "  That was the last one. This shows the whole solution:\n    "
        following = f"grader solution {name} --spoil"
    console.print(Text.assemble((said, "quiet"), (following, "command")))
    console.print()


def _print_hint(console: Console, entry: Entry, number: int) -> None:
    console.print(Text(f"  Hint {number + 1} of {len(entry.hints)}, {entry.name}", style="title"))
    console.print(paragraph(entry.hints[number]))
    console.print()
