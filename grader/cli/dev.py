"""``grader dev``: templates for days and exercises, checks of them, and a list of all messages.

For authors of the course.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader.cli.messages import print_problem, shown_path
from grader.course import Course, Day, Entry
from grader.course.manifest import FILE, Kind
from grader.report import theme
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import words

app = typer.Typer(help="For authors: create days and exercises, and check them.", rich_markup_mode=None)
new = typer.Typer(help="Create a day or an exercise.", rich_markup_mode=None)
app.add_typer(new, name="new")


EACH = 2
"""The maximum number of wrong kernels to propose for one kind of mistake."""


Title = Annotated[str, typer.Option(metavar="TITLE", help="The title in lists.")]


@new.command("day")
def new_day(
    folder: Annotated[str, typer.Argument(metavar="DAY_FOLDER", help="The day's folder: day11_quantization.")],
    title: Title,
) -> int:
    """Create a day: an entry in course.toml, and a lesson."""
    from grader.course.authoring import new

    _say(new.new_day(Course(), folder, title), folder)
    return 0


@new.command("exercise")
def new_exercise(
    name: Annotated[str, typer.Argument(metavar="DAY/NAME", help="The exercise's day, and the name of its files.")],
    title: Title,
    kind: Annotated[Kind, typer.Option(help="What the learner does.")],
    points: Annotated[int, typer.Option(min=1, help="The points.")] = 10,
    draft: Annotated[
        bool, typer.Option("--draft", help="Mark it as a draft: listed, but neither counted nor tested.")
    ] = False,
    solution: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SOLUTION.cu",
            help="A finished solution, from which the skeleton and wrong kernels are made.",
        ),
    ] = None,
) -> int:
    """Create an exercise: an entry in course.toml, and its files.

    With --from, the skeleton and the prototype come from a solution. If tasks.py describes the exercise already, wrong
    kernels are proposed and run, as by `grader dev wrong`.
    """
    from grader.course.authoring import new

    try:
        solved = solution.read_text(encoding="utf-8") if solution is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise GraderError(f"cannot read {solution}: {error}", "Give a CUDA file in UTF-8.") from error
    files = new.new_exercise(Course(), name, kind, title, points, draft, solved)
    made = f"{files[0].parent.name}/{files[0].stem}"
    _say(files, made)
    if solution is not None:
        from grader.cli.dev_wrong import find_mistakes

        find_mistakes(Course().find(made), EACH)
    return 0


@app.command("check")
def check(
    part: Annotated[
        str | None, typer.Argument(metavar="[DAY[/NAME]]", help="A day or an exercise; default: the whole course.")
    ] = None,
) -> int:
    """Show what a day or an exercise still lacks. Exit code: 0 nothing, 1 something.

    No kernel runs: tests/exercises test whether each kernel gets the right verdict. A draft is checked only if it is
    named.
    """
    from grader.course.authoring import day_rules, exercise_rules

    course = Course()
    console = theme.console()
    missing = 0
    parts = _parts(course, part)
    for where in parts:
        with console.status(f"checking {_name(where)}"):
            if isinstance(where, Course):
                found = list(day_rules.unlisted_days(where))
            else:
                found = day_rules.lacks(where) if isinstance(where, Day) else exercise_rules.lacks(where)
        if found:
            console.print(Text(f"\n  {_name(where)}", style="title"))
        for problem in found:
            print_problem(problem, console)
        missing += len(found)
    console.print()
    for draft in (draft for where in parts if isinstance(where, Day) for draft in where.drafts):
        said = (f"  {draft.name} is a draft and was not checked: ", "quiet")
        console.print(Text.assemble(said, (f"grader dev check {draft.name}", "command")), soft_wrap=True)
    if missing:
        console.print(Text(f"  {words.count(missing, 'thing')} to do.", style="bad"))
        return 1
    console.print(Text("  Nothing is missing.", style="good"))
    if isinstance(parts[-1], Entry) and parts[-1].draft:
        console.print(Text(f"  Take `draft = true` out of {FILE}, so that it counts.", style="quiet"))
    tests = ".venv/bin/python -m pytest tests/exercises"
    tests += f" -k {parts[-1].variable}" if part and isinstance(parts[-1], Entry) else ""
    console.print(Text(f"  To test the verdicts of its kernels: {tests}", style="quiet"), soft_wrap=True)
    return 0


@app.command("wrong")
def wrong(
    name: Annotated[str, typer.Argument(metavar="DAY/NAME", help="The exercise.")],
    each: Annotated[
        int, typer.Option(min=1, metavar="N", help="The maximum number of kernels for one kind of mistake.")
    ] = EACH,
) -> int:
    """Edit the solution into wrong kernels, and keep those that fail.

    The kinds: a guard off by one, a loop that runs once too often, a missing barrier or rescaling, a wrong stride, a
    half accumulator, a vectorized access without a loop for the tail, - instead of +, a maximum that starts at 0. Exit
    code: 1 if a mutant passes.
    """
    from grader.cli.dev_wrong import find_mistakes

    return find_mistakes(Course().find(name), each)


@app.command("lessons")
def lessons(
    part: Annotated[str | None, typer.Argument(metavar="[DAY]", help="A day; default: all days.")] = None,
) -> int:
    """Show the length and the questions of each lesson.

    Show also its long paragraphs and listings, and how much of the solutions it shows.
    """
    from grader.course.authoring import lesson_rules

    course = Course()
    days = [day for day in _parts(course, part) if isinstance(day, Day)]
    if not days:
        raise GraderError(f"{part!r} is not a day of the course", "`grader list` shows the days.")
    console = theme.console()
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="title")
    table.add_column("  lesson", no_wrap=True)
    for title in ("words", "questions", "long paragraphs", "long listings"):
        table.add_column(title, justify="right")
    places: list[str] = []
    for day in days:
        found = lesson_rules.figures(day.lesson)
        counts = (found.words, found.questions, len(found.paragraphs), len(found.listings))
        table.add_row(f"  {day.folder}", *map(str, counts))
        file = shown_path(day.lesson)
        places += [f"{file}: cell {p.cell}: a paragraph of {p.size} words: {p.begins} ..." for p in found.paragraphs]
        places += [f"{file}: cell {p.cell}: an unfolded listing of {p.size} lines: {p.begins}" for p in found.listings]
        for entry in (entry for entry in day.exercises if entry.kind != "debug"):
            share = lesson_rules.shown_share(day, entry)
            if share >= lesson_rules.SHOWN:
                places.append(f"{file}: shows {share:.0%} of the solution of {entry.variable} before the exercise")
    console.print()
    console.print(table)
    for place in places:
        console.print(Text(f"  {place}", style="quiet"), soft_wrap=True)
    return 0


@app.command("messages")
def messages(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The Markdown file to write; default: print the page.")
    ] = None,
) -> int:
    """Write every message of a verdict, with sample values.

    The result is one page of Markdown.
    """
    from grader.verdict.wording import catalog

    if out is None:
        typer.echo(catalog.page(), nl=False)
    else:
        write_file(out, catalog.page())
    return 0


Part = Course | Day | Entry


def _name(part: Part) -> str:
    return part.manifest.title if isinstance(part, Course) else part.folder if isinstance(part, Day) else part.name


def _parts(course: Course, part: str | None) -> list[Part]:
    """Return the parts to check: everything, a day with its exercises, or one exercise."""
    if part is None:
        parts: list[Part] = [course]
        for each in course.days:
            parts += [each, *each.exercises]
        return parts
    day = course.find_day(part)
    return [day, *day.exercises] if day else [course.find(part)]


def _say(files: list[Path], name: str) -> None:
    """Print the files that were written, and the next step."""
    console = theme.console()
    for file in files:
        console.print(Text(f"  {shown_path(file)}"), soft_wrap=True)
    console.print(Text.assemble("  What it still lacks: ", (f"grader dev check {name}", "command")))
