"""``grader init``: copies the course into a learner's folder, and updates the copy later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from grader.course import Course, course_root
from grader.course.learner import own_copy
from grader.setup.errors import GraderError
from grader.verdict import words


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="A new or empty folder, or a copy of the course to update. Default: the current course.",
        ),
    ] = None,
) -> int:
    """Copy the course into a folder of your own, or update it there.

    Files that you changed are kept; if the course changed such a file too, its new version is put next to yours.
    """
    root = Path(os.path.abspath(folder.expanduser())) if folder else course_root()
    if folder is None and not own_copy.is_own_copy(root):
        raise GraderError(
            f"{root} holds a course that `grader init` did not write",
            "In a clone, update it with `git pull`; `grader init FOLDER` copies it.",
        )
    new = not own_copy.is_own_copy(root)
    done = own_copy.write(root)
    course = Course(root)
    size = f"{words.count(len(course.days), 'day')}, {words.count(len(course.exercises), 'exercise')}"
    if new:
        print(f"The course is in {root}: {size}. Then, in that folder:\n")
        print("  grader list            the days and their exercises")
        print("  grader watch           grades the first exercise each time you save it")
        print("  jupyter lab lessons    the lessons: begin with day 1")
        return 0
    for label, names in (("new", done.written), ("updated", done.updated), ("removed", done.removed)):
        for name in names:
            print(f"{label:8} {name}")
    for name, beside in done.beside.items():
        print(f"yours    {name} is unchanged; the course's new version is {beside}")
    for old, moved in done.moved.items():
        print(f"moved    {old} is now {moved}: the course has renamed it")
    for name in done.left:
        print(f"yours    {name} is unchanged; the course no longer has it")
    changed = done.written or done.updated or done.removed or done.beside or done.moved or done.left
    print(f"{root} {'is now' if changed else 'was already'} up to date: {size}.")
    return 0
