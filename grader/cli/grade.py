"""``grader grade``: grades a class."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.cli.messages import print_note
from grader.cli.options import DeviceName, Unsafe
from grader.course import Course
from grader.report import theme
from grader.setup.errors import GraderError
from grader.verdict import words

if TYPE_CHECKING:
    from grader.classroom.result import StudentResult
    from grader.classroom.session import Session
    from grader.classroom.similar import Pair
    from grader.classroom.submissions import Submission

SHOWN_GROUPS = 10
SHOWN_NAMES = 6


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="A folder with a folder or a zip for each student; or an archive of it."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="The folder for results. If a run there was stopped, this one continues it."
        ),
    ] = None,
    exercise: Annotated[
        list[str] | None,
        typer.Option(
            "--exercise", "-e", metavar="NAME", help="Grade only these exercises; a missing file gets no points."
        ),
    ] = None,
    instructor: Annotated[
        Path | None,
        typer.Option(
            "--instructor", metavar="FILE", help="TOML outside the course: seed, exercises, hidden cases, points."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="Kernels graded at the same time, on this machine.")
    ] = os.cpu_count() or 2,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="Grade on a Ray cluster: auto, or HOST:PORT of its head."),
    ] = None,
    device: Annotated[
        DeviceName, typer.Option(help="cuda: kernels that pass on the simulator also run on a real GPU.")
    ] = "cpu",
    regrade_student: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Grade this student again; named as in grades.csv.")
    ] = None,
    regrade_exercise: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Grade this exercise of all students again.")
    ] = None,
    status: Annotated[
        Path | None,
        typer.Option("--status", metavar="DIR", help="Only show the progress of the run in DIR."),
    ] = None,
    unsafe: Unsafe = False,
) -> int:
    """Grade all submissions in a folder.

    Writes results.json, junit.xml, feedback.txt and feedback.html for each student, grades.csv and similar.csv,
    class.html for the instructor and leaderboard.html for the class, and errors.log for internal errors of the grader.
    Exit code: 0 graded, 2 could not grade.
    """
    if status:
        return _status(status)
    if folder is None or out is None:
        missing = "FOLDER" if folder is None else "--out DIR"
        raise GraderError(f"{missing} is missing", "The command is: grader grade FOLDER --out DIR")
    from grader.classroom.executor import Executor
    from grader.classroom.incidents import LOG
    from grader.classroom.instructor import Instructions, read_instructions
    from grader.classroom.pages import write_pages
    from grader.classroom.session import Session
    from grader.classroom.stored import shown_names
    from grader.classroom.submissions import find_submissions
    from grader.classroom.worker import require_sandbox

    course = Course()
    names = tuple(course.find(name).name for name in exercise or [])
    again = tuple(course.find(name).name for name in regrade_exercise or [])
    instructions = read_instructions(instructor, course, device) if instructor else Instructions()
    submissions = find_submissions(folder, print_note)
    instructions.policy.check_class(submission.student for submission in submissions)
    _apart(out, folder)
    danger = "there is no sandbox here: submissions would run with your rights, and could change all your files"
    if not require_sandbox(unsafe, danger):  # on this machine; each node of a cluster checks its own
        print_note("graded without a sandbox, as --unsafe requests")

    def ray() -> Executor:
        from grader.classroom.cluster import Cluster

        return Cluster(cluster or "", course, unsafe)

    logged = _size(out / LOG)
    students = tuple(regrade_student or ())
    on = ray if cluster else None
    session = Session(course, submissions, out, instructions, names, workers, on, device, students, again)
    console = theme.console(sys.stdout)
    results = _run(session, console)
    grades, pairs = session.finish(results)
    page = write_pages(course, submissions, results, pairs, out)
    console.print(f"{words.count(len(results), 'submission')} graded: {grades}")
    console.print(f"results of the class: {page}")
    refused = [result for result in results if result.refused]
    for result in refused:
        print_note(f"{result.submission!r} could not be read: {result.refused}")
    failed = sum(result.failed for result in results)
    if failed:
        print_note(f"{words.count(failed, 'submission')} could not be graded; run the same command to try again")
    if _size(out / LOG) != logged:
        print_note(f"the grader itself failed; see {out / LOG}")
    if pairs:
        shown = shown_names(submission.student for submission in submissions)
        print_similar(pairs, shown, out, console)
    return 0


def _run(session: Session, console: Console) -> list[StudentResult]:
    """Run the session. On a terminal, show a progress bar with the finished jobs and students."""
    from grader.classroom.policy import grade
    from grader.classroom.stored import shown_names

    shown = shown_names(submission.student for submission in session.submissions)
    columns = [
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[students]} of {task.fields[all]} students, {task.fields[last]}"),
    ]
    began, first = time.monotonic(), -1
    with Progress(*columns, console=console, disable=not console.is_terminal, speed_estimate_period=120) as progress:
        bar = progress.add_task("", total=None, last="", rate="", students=0, all=len(session.submissions))
        students = 0

        def done(submission: Submission, result: StudentResult, before: bool) -> None:
            nonlocal students
            students += 1
            name = shown[submission.student]
            progress.update(bar, students=students, last=name[:30])
            if (not console.is_terminal and not before) or submission.student in session.again_students:
                points = grade(session.instructions.policy, result, "", {}).total
                unit = "point" if points == 1 else "points"
                console.print(f"{name}: {points:g} {unit}", markup=False, soft_wrap=True)

        def job(finished: int, total: int) -> None:
            nonlocal first
            first = finished if first < 0 else first
            rate = (finished - first) / max(time.monotonic() - began, 0.1)
            progress.update(bar, completed=finished, total=total, rate=f"{rate:.2g}/s" if finished > first else "")

        try:
            return session.run(done, job)
        except KeyboardInterrupt:
            print_note("stopped; run the same command to continue")
            raise


def print_similar(pairs: Sequence[Pair], shown: Mapping[str, str], out: Path, console: Console) -> None:
    """Print the largest groups of students with nearly identical files. ``shown``: the names to show."""
    from grader.classroom import similar

    found = similar.groups(pairs)
    text = f"{words.count(len(pairs), 'pair')} of nearly identical files, in {words.count(len(found), 'group')}"
    console.print(f"{text}: {out / 'similar.csv'}", markup=False, soft_wrap=True)
    for group in found[:SHOWN_GROUPS]:
        names = similar.students(group)
        alike = f"  {group[0].similarity:.0%}  {group[0].exercise}"
        console.print(f"{alike}: {words.count(len(names), 'student')}", markup=False, soft_wrap=True)
        parts = [shown[name] for name in names[:SHOWN_NAMES]]
        parts += [f"and {len(names) - SHOWN_NAMES} more"] * (len(names) > SHOWN_NAMES)
        console.print(f"        {'; '.join(parts)}", markup=False, soft_wrap=True)
    if len(found) > SHOWN_GROUPS:
        console.print(f"  and {words.count(len(found) - SHOWN_GROUPS, 'group')} more")


def _status(out: Path) -> int:
    """Print the progress of the run that writes to a folder now, or the result of the last run that did."""
    from grader.classroom.status import status

    found = status(out)
    console = theme.console(sys.stdout)
    left = found.jobs - found.done
    if not left:
        state = "finished"
    elif not found.running:
        state = "stopped; run the same `grader grade` to continue"
    elif found.seconds_left is None:
        state = f"running on {found.plan.executor}; nothing was finished recently"
    else:
        ends = words.duration(found.seconds_left)
        state = f"running on {found.plan.executor}, {found.per_second:.2g} kernels a second, about {ends} left"
    console.print(f"{found.done} of {words.count(found.jobs, 'kernel')} graded, {state}", markup=False, soft_wrap=True)
    for name, (done, total) in found.by_exercise.items():
        console.print(f"  {done:>6} of {total:>6}  {name}", markup=False, soft_wrap=True)
    return 0


def _size(path: Path) -> int:
    """Return the size of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def _apart(out: Path, folder: Path) -> None:
    """Reject an output folder among the submissions: the results would be read as a submission."""
    if out.resolve().is_relative_to(folder.resolve()):
        raise GraderError(f"--out {out} is inside the folder of submissions", "Choose a folder elsewhere.")
