"""``grader grade``: a whole class."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.cli.messages import print_note
from grader.course import Course
from grader.errors import GraderError
from grader.present import theme, words

SHOWN_PAIRS = 10


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Holds a folder or a zip archive for each student; or an archive of that."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Results go here; a run that was stopped goes on.")],
    exercise: Annotated[
        list[str] | None,
        typer.Option("--exercise", "-e", metavar="NAME", help="Grade these only; a missing file has no points."),
    ] = None,
    instructor: Annotated[
        Path | None,
        typer.Option(
            "--instructor", metavar="FILE", help="TOML outside the course: seed, exercises, hidden cases, points."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="Students graded at the same time.")
    ] = os.cpu_count() or 2,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Grade even where no jail holds the submissions.")] = False,
) -> int:
    """Grade all submissions in a folder.

    Writes results.json, junit.xml, feedback.txt and feedback.html for each student, grades.csv and similar.csv, class.html for
    the instructor and leaderboard.html for the class, and errors.log where the grader itself failed. Exit code: 0 graded, 2 could not grade.
    """
    from grader.classroom.incidents import LOG
    from grader.classroom.instructor import Instructions, read_instructions
    from grader.classroom.pages import write_pages
    from grader.classroom.records import could_not_grade
    from grader.classroom.session import Session
    from grader.classroom.submissions import find_submissions
    from grader.runner import tiers

    course = Course()
    names = tuple(course.find(name).name for name in exercise or [])
    instructions = read_instructions(instructor, course) if instructor else Instructions()
    submissions = find_submissions(folder)
    instructions.policy.check_class(submission.student for submission in submissions)
    _apart(out, folder)
    held = tiers.in_force()
    if held.tier == "none" and not unsafe:
        raise GraderError(
            "no jail: the submissions would run with your rights, and could read and change all that you can",
            f"{held.explanation.strip()}\n--unsafe grades all the same.",
        )
    if held.tier == "none":
        print_note("graded without a jail, as --unsafe asks for")
    session = Session(course, submissions, out, instructions, names, workers)
    console = theme.console(sys.stdout)
    results = _run(session, console)
    grades, pairs = session.finish(results)
    page = write_pages(course, submissions, results, pairs, out)
    console.print(f"{words.count(len(results), 'submission')} graded: {grades}")
    console.print(f"what the class did: {page}")
    refused = [result for result in results if result["refused"]]
    for result in refused:
        print_note(f"{result['submission']!a} was not read: {result['refused']}")
    failed = sum(could_not_grade(result) for result in results)
    if failed:
        print_note(f"{words.count(failed, 'submission')} could not be graded; the same command tries again")
    if (out / LOG).exists() and any(result["references"] for result in results):
        print_note(f"the grader itself failed; {out / LOG} says where")
    if pairs:
        console.print(f"{words.count(len(pairs), 'pair')} of nearly the same files: {out / 'similar.csv'}")
        for pair in pairs[:SHOWN_PAIRS]:
            console.print(f"  {pair.similarity:.0%}  {pair.exercise}", markup=False)
            console.print(f"       {pair.first!a} and {pair.second!a}", markup=False, soft_wrap=True)
    return 0


def _run(session: Any, console: Console) -> list[dict[str, Any]]:
    """With a bar where somebody watches."""
    columns = [
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
    ]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(session.submissions), last="")

        def done(submission: Any, result: dict[str, Any], before: bool) -> None:
            last = ascii(submission.student)[1:-1][:30]
            progress.update(bar, advance=1, last=last)
            if not console.is_terminal and not before:
                console.print(f"{last}: {result['score']:g} points", markup=False, soft_wrap=True)

        try:
            return session.run(done)
        except KeyboardInterrupt:
            print_note("stopped; the same command goes on where it stopped")
            raise


def _apart(out: Path, folder: Path) -> None:
    """Results among the submissions would be taken for one."""
    if out.resolve() == folder.resolve() or out.resolve().parent == folder.resolve():
        raise GraderError(f"--out {out} lies in the folder of the submissions", "Choose a folder elsewhere.")
