"""``grader list``: the days, their exercises, and the learner's progress."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.cli.messages import read_progress, short_name, shortened
from grader.course import Course, Day, Entry
from grader.course.learner.progress import Progress, ProgressFile
from grader.course.puzzles import Puzzle, read_puzzles
from grader.report import theme
from grader.report.failures import paragraph
from grader.report.task_view import effort
from grader.report.terminal import ascii_only
from grader.setup.errors import GraderError
from grader.verdict import words

WIDE = 100
"""The width from which the list shows difficulty and points. In a narrower list, titles would not fit beside them."""


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[DAY]", help="A day: its number or folder; default: all days.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> int:
    """Show days, exercises, points and your progress."""
    course = Course()
    days = course.days if name is None else [_day(course, name)]
    if as_json:
        print(json.dumps(as_data(course, ProgressFile(course.root).read(), days), indent=2))
    else:
        print_list(course, read_progress(course), days)
    return 0


def _day(course: Course, name: str) -> Day:
    day = course.find_day(name)
    if day is None:
        raise GraderError(f"there is no day {name!r}", "Write a day's number or folder. `grader list` shows all days.")
    return day


def next_exercise(course: Course, progress: Progress, after: Entry | None = None) -> Entry | None:
    """Return the first exercise that is not passed; with ``after``, the first one after it, wrapping around.

    If ``after`` is a puzzle, return the next unsolved puzzle.
    """
    order: Sequence[Entry] = read_puzzles(course) if isinstance(after, Puzzle) else course.exercises
    if after is not None:
        names = [entry.name for entry in order]
        start = names.index(after.name) + 1 if after.name in names else 0
        order = [*order[start:], *order[:start]]
    return next((entry for entry in order if not progress.of(entry.name).passed), None)


def standing(course: Course, progress: Progress) -> str:
    """Return the numbers of passed exercises and earned points."""
    entries = course.exercises
    passed = [entry for entry in entries if progress.of(entry.name).passed]
    points = f"{sum(entry.points for entry in passed)} of {sum(entry.points for entry in entries)} points"
    return f"{len(passed)} of {words.count(len(entries), 'exercise')} passed, {points}"


def print_list(
    course: Course,
    progress: Progress,
    days: Sequence[Day] | None = None,
    with_next: bool = True,
    console: Console | None = None,
    puzzle_command: str = "grader check",
) -> None:
    """Print the list of some days, or of all, on the terminal.

    ``with_next`` adds the command that continues. ``puzzle_command`` is the command that starts a puzzle.
    """
    console = console or theme.console()
    plain = ascii_only(console)
    upcoming = next_exercise(course, progress)
    puzzles = read_puzzles(course)
    wide = console.width >= WIDE
    console.print()
    console.print(Text.assemble((f"  {course.manifest.title}", "title"), (f"   {standing(course, progress)}", "quiet")))
    for day in course.days if days is None else days:
        console.print()
        title = Text.assemble((f"  Day {day.number}  {day.title}", "title"), (f"   {day.folder}", "quiet"))
        console.print(shortened(title, console.width, plain))
        if day.summary:
            console.print(paragraph(day.summary, style="quiet"))
        table = Table.grid(padding=(0, 2, 0, 0))
        rows = [*day.exercises, *day.drafts]
        widths = [4 if plain else 3, max((len(entry.variable) for entry in rows), default=0), len(_about(None, wide))]
        # Without a minimum width, a long title in the last column would narrow the others.
        table.add_column(min_width=widths[0], no_wrap=True, justify="right")
        table.add_column(min_width=widths[1], no_wrap=True)
        table.add_column(min_width=widths[2], no_wrap=True, style="quiet")
        table.add_column(no_wrap=True, style="quiet")
        room = max(8, console.width - (sum(widths) + 3 * 2))
        for entry in rows:
            done = progress.of(entry.name)
            status = "passed" if done.passed else ("failed" if done.checks else "skipped")
            style = "good" if done.passed else ("bad" if done.checks else "quiet")
            remark = f"(draft) {entry.title}" if entry.draft else entry.title
            if entry is upcoming:
                remark = "<- next" + (f", stops at {done.last_failed_stage}" if done.last_failed_stage else "")
            elif not done.passed and done.last_failed_stage:
                remark = f"stops at {done.last_failed_stage}"
            table.add_row(
                Text(theme.mark(status, plain), style=style),
                Text(entry.variable, style="title" if entry is upcoming else ""),
                _about(entry, wide),
                shortened(Text(remark, style="title" if entry is upcoming else "quiet"), room, plain),
            )
        console.print(table)
        if solved := _solved([puzzle for puzzle in puzzles if puzzle.day == day.folder], progress, puzzle_command):
            console.print(Text(f"  {' ' * (4 if plain else 3)}{solved}", style="quiet"))
    console.print()
    if upcoming is None:
        console.print(Text("  Every exercise is passed.", style="good"))
    elif with_next:
        console.print(Text.assemble("  Next: ", (f"grader watch {short_name(upcoming, course)}", "command")))
        if said := effort(upcoming):
            console.print(Text(f"        {said}", style="quiet"))
    console.print()


def _solved(puzzles: list[Puzzle], progress: Progress, command: str) -> str:
    """Return the number of a day's solved puzzles and the command that starts the next; empty without puzzles."""
    left = [puzzle for puzzle in puzzles if not progress.of(puzzle.name).passed]
    if not puzzles:
        return ""
    solved = f"{len(puzzles) - len(left)} of {words.count(len(puzzles), 'puzzle')} solved"
    return f"{solved}, next: {command} {left[0].variable}" if left else solved


def _about(entry: Entry | None, wide: bool) -> str:
    """Return an exercise's kind and minutes, if ``wide`` also its difficulty and points; blanks for no exercise."""
    kind, difficulty, points = (entry.kind, entry.difficulty, entry.points) if entry else ("", "", "")
    minutes = f"{entry.minutes} min" if entry and entry.minutes else ""
    return f"{kind:9} {difficulty:6} {minutes:>7} {points:>2}" if wide else f"{kind:9} {minutes:>7}"


def as_data(course: Course, progress: Progress, days: Sequence[Day]) -> dict[str, Any]:
    """Return the list of some days as data for programs."""
    exercises = []
    for entry in (entry for day in days for entry in day.exercises):
        done = progress.of(entry.name)
        exercises.append(
            {
                "name": entry.name,
                "day": entry.number,
                "title": entry.title,
                "kind": entry.kind,
                "points": entry.points,
                "architecture": entry.architecture,
                "stages": entry.stages,
                "difficulty": entry.difficulty or None,
                "minutes": entry.minutes or None,
                "needs": entry.needs,
                "file": str(entry.skeleton.relative_to(course.root)),
                "passed": done.passed,
                "first_passed": done.first_passed or None,
                "checks": done.checks,
                "stops_at": done.last_failed_stage or None,
                "hints": len(entry.hints),
                "hints_shown": done.hints_shown,
            }
        )
    passed = [item for item in exercises if item["passed"]]
    puzzles = [
        {"name": puzzle.name, "day": puzzle.number, "title": puzzle.title, "passed": progress.of(puzzle.name).passed}
        for puzzle in read_puzzles(course)
        if puzzle.day in {day.folder for day in days}
    ]
    return {
        "title": course.manifest.title,
        "days": [
            {"number": day.number, "folder": day.folder, "title": day.title, "summary": day.summary} for day in days
        ],
        "exercises": exercises,
        "puzzles": puzzles,
        "passed": len(passed),
        "points": sum(item["points"] for item in passed),
        "points_total": sum(item["points"] for item in exercises),
    }
