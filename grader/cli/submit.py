"""``grader submit``: packs the solved exercises into one archive to hand in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.messages import find_exercise, move_renamed_files, print_note, short_name
from grader.course import Course, Entry
from grader.report import theme
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import words


def command(
    exercise: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EXERCISE]...", help="The exercises to pack; default: all solved ones."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The archive to write.")] = Path("submission.zip"),
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also pack exercises that are begun but do not pass yet.")
    ] = False,
    leaderboard: Annotated[
        str, typer.Option(metavar="NAME", help="Take part in the class's leaderboard, under this name.")
    ] = "",
) -> int:
    """Pack your solved exercises into one archive to hand in.

    It contains only your exercise files and the results of your own checks. Exit code: 0 packed all requested
    exercises, 1 some are missing, 2 nothing was packed.
    """
    from grader.course.learner.packing import pack
    from grader.course.learner.progress import ProgressFile

    course = Course()
    move_renamed_files(course)
    named_ones = {entry.name: entry for entry in (find_exercise(course, name) for name in exercise or [])}
    if drafts := [entry.name for entry in named_ones.values() if entry.draft]:
        raise GraderError(f"{drafts[0]} is a draft, which is not graded", "`grader list` marks drafts.")
    wanted = list(named_ones.values()) or course.exercises
    if out.suffix.lower() != ".zip":
        raise GraderError(f"{out} is not the name of a zip archive", "Give --out a name that ends in .zip.")
    if out.is_dir():
        raise GraderError(f"cannot write {out}: it is a folder", "Give the name of a file.")
    packed = pack(course, ProgressFile(course.root).read(), wanted, unfinished, leaderboard)

    def named(entries: list[Entry]) -> str:
        return words.listed((short_name(entry, course) for entry in entries), 8)

    if packed.begun:
        print_note(f"left out, because no check passed: {named(packed.begun)} (--unfinished includes them)")
    if packed.untouched and exercise:
        print_note(f"left out, because the skeleton is unchanged: {named(packed.untouched)}")
    if packed.changed:
        print_note(f"changed after the last check that passed; check again before you hand in: {named(packed.changed)}")
    if not packed.content:
        raise GraderError(
            "there is nothing to hand in", "`grader list` shows what is solved; `grader check` grades an exercise."
        )
    write_file(out, packed.content)
    console = theme.console(sys.stdout)
    console.print(
        f"{out}: {words.count(len(packed.entries), 'exercise')}, {words.amount(len(packed.content))}", soft_wrap=True
    )
    console.print(f"  {named(packed.entries)}", markup=False, soft_wrap=True)
    if packed.unfinished:
        console.print(f"  included although no check passed: {named(packed.unfinished)}", markup=False, soft_wrap=True)
    rest = len(course.exercises) - len(packed.entries)
    if not exercise and rest:
        console.print(f"  {words.count(rest, 'exercise')} of the course not included", markup=False)
    return int(bool(exercise and len(packed.entries) < len(wanted)))
