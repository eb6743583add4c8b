"""Moves a learner's files from the paths that their exercises had before they were renamed.

`git pull` and `grader init` move the files themselves. But if a new version of the course is unpacked over an old one,
they stay at the old paths.
"""

from __future__ import annotations

import os
from pathlib import Path

from grader.course import Course, Entry
from grader.course.learner import own_copy, pristine


def move_renamed(course: Course) -> list[str]:
    """Move each file of a renamed exercise to its new path, unless a file with the learner's work is already there.

    Return a note for each file.
    """
    notes = []
    for name, entry in course.former_names.items():
        day, _, variable = name.partition("/")
        old = course.root / "exercises" / day / f"{variable}{entry.skeleton.suffix}"
        if old.is_file() and not old.is_symlink() and not _without_work(course, old, entry):
            notes.append(_move(course, old, entry))
    return notes


def _without_work(course: Course, old: Path, entry: Entry) -> bool:
    """Return whether the old file holds none of the learner's work: it equals the original skeleton or the new file."""
    given = own_copy.skeleton_copy(course.root, old.parent.name, old.name)
    content = old.read_bytes()
    return any(path.is_file() and path.read_bytes() == content for path in (given, entry.skeleton))


def _move(course: Course, old: Path, entry: Entry) -> str:
    """Move one file. Return a note for the learner: where the file is now, or why it was not moved."""
    shown, new = (path.relative_to(course.root).as_posix() for path in (old, entry.skeleton))
    if entry.skeleton.exists():
        pristine.keep_copies(course)
        if not pristine.untouched(course, entry):
            return f"{shown} is not graded: the exercise was renamed, and {new} has work of yours, too"
    try:
        entry.skeleton.parent.mkdir(parents=True, exist_ok=True)
        os.replace(old, entry.skeleton)
    except OSError as error:
        return f"{shown} is not graded: the exercise has been renamed. It cannot be moved to {new}: {error.strerror}"
    return f"the exercise has been renamed: moved your {shown} to {new}"
