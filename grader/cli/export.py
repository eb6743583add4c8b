"""``grader export``: writes files for other systems: an autograder, a workflow, grades and feedback to upload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from grader.cli.messages import print_note
from grader.cli.options import Unsafe
from grader.course import Course, Entry
from grader.report import theme
from grader.setup.errors import GraderError
from grader.verdict import words

if TYPE_CHECKING:
    from grader.classroom.exports.feedback import Export

app = typer.Typer(help="For instructors: files for Gradescope, GitHub, Moodle, Canvas.", rich_markup_mode=None)
SHOWN = 5

Visibility = Literal["visible", "hidden", "after_due_date", "after_published"]

Exercises = Annotated[
    list[str] | None,
    typer.Option(
        "--exercise", "-e", metavar="NAME", help="The exercises to include; default: those of the instructor file."
    ),
]
Results = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of results that `grader grade` wrote.")]
Target = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the files here; default: DIR itself.")]


@app.command("gradescope")
def gradescope(
    exercise: Exercises = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The archive to write.")] = Path("autograder.zip"),
    instructor: Annotated[
        Path | None,
        typer.Option(
            "--instructor", metavar="FILE", help="The instructor file, as for `grader grade`. The archive includes it."
        ),
    ] = None,
    visibility: Annotated[Visibility, typer.Option(help="When students see results.")] = "visible",
    unsafe: Unsafe = False,
) -> int:
    """Write the archive of a Gradescope autograder."""
    from grader.classroom.exports.gradescope import export
    from grader.classroom.instructor import read_instructions

    course = Course()
    named = read_instructions(instructor, course).exercises if instructor else ()
    entries = _entries(course, exercise or list(named))
    count = export(course, entries, out, instructor, visibility, unsafe)
    size = words.amount(out.stat().st_size)
    _say(f"{out}: {words.count(len(entries), 'exercise')}, {words.count(count, 'file')}, {size}")
    _say(f"the assignment's points in Gradescope: {_points(course, entries, instructor):g}")
    return 0


def _points(course: Course, entries: list[Entry], instructor: Path | None) -> float:
    from grader.classroom.instructor import Instructions, read_instructions

    instructions = read_instructions(instructor, course) if instructor else Instructions()
    return sum(instructions.policy.maxima({entry.name: float(entry.points) for entry in entries}).values())


@app.command("github")
def github(
    exercise: Exercises = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Default: .github/workflows/classroom.yml in the course."),
    ] = None,
    classroom: Annotated[
        bool, typer.Option("--classroom", help="Award points in GitHub Classroom, by its own actions.")
    ] = False,
) -> int:
    """Write a workflow for GitHub Actions or GitHub Classroom."""
    from grader.classroom.exports import github

    course = Course()
    if not (course.root / "Makefile").is_file():  # a course of `grader init`
        raise GraderError(
            f"{course.root} has no Makefile, with which the workflow sets up the course",
            "Run the command in a clone of the course.",
        )
    target = out or course.root / github.PLACE
    entries = _entries(course, exercise)
    github.export(entries, target, classroom)
    _say(f"{target}: checks {words.count(len(entries), 'exercise')} at each push")
    return 0


@app.command("moodle")
def moodle(
    results: Results,
    out: Target = None,
    worksheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Moodle's grading worksheet, to fill in.")
    ] = None,
) -> int:
    """Write grades and feedback files for a Moodle assignment."""
    from grader.classroom.exports import moodle
    from grader.classroom.gradebook import load

    return _done(moodle.export(load(results), results, out or results, worksheet))


@app.command("canvas")
def canvas(
    results: Results,
    gradebook: Annotated[Path, typer.Option(metavar="FILE", help="The gradebook as Canvas exports it.")],
    assignment: Annotated[
        str, typer.Option(metavar="TITLE", help="The assignment's column: its title, its number, or both.")
    ],
    out: Target = None,
) -> int:
    """Write grades and feedback files for a Canvas course."""
    from grader.classroom.exports import canvas
    from grader.classroom.gradebook import load

    return _done(canvas.export(load(results), results, out or results, gradebook, assignment))


def _entries(course: Course, names: list[str] | None) -> list[Entry]:
    """Return the named exercises; raise if no exercise is named, because an assignment needs at least one."""
    if not names:
        raise GraderError("no exercise is named", "Name each exercise of the assignment with -e NAME.")
    return list({entry.name: entry for entry in map(course.find, names)}.values())


def _done(made: Export) -> int:
    """Print the files that were written and the students who are missing from them."""
    for path in made.files:
        _say(str(path))
    _say(f"{words.count(made.graded, 'grade')} written")
    for line in made.left_out[:SHOWN]:
        print_note(f"left out: {line}")
    if len(made.left_out) > SHOWN:
        print_note(f"and {len(made.left_out) - SHOWN} more")
    return 0


def _say(text: str) -> None:
    theme.console(sys.stdout).print(text, markup=False, soft_wrap=True)
