"""``grader reset``: restores the skeleton and keeps the learner's file next to it."""

from __future__ import annotations

from grader.cli.messages import find_exercise, shown_path
from grader.cli.options import Exercise
from grader.course import Course
from grader.course.learner import kernel_file, pristine
from grader.course.learner.progress import ProgressFile
from grader.setup.errors import GraderError


def command(exercise: Exercise) -> int:
    """Restore an exercise's skeleton.

    Your file is kept next to it, as NAME.cu.1.bak, NAME.cu.2.bak, ... (or NAME.py.1.bak).
    """
    course = Course()
    entry = find_exercise(course, exercise)
    original = pristine.find(course, entry)
    if original is None:
        raise GraderError(
            f"there is no copy of the skeleton of {entry.name}: {shown_path(course.root)} is not a git clone, "
            "and the grader saved no copy",
            "Your kernel file was not changed. Download the skeleton again from the course's source.",
        )
    file = entry.skeleton
    try:
        current = file.read_bytes() if file.exists() else None
        if current == original.content:
            print(f"{shown_path(file)} is already the skeleton")
        else:
            if current is not None:
                print(f"kept your file as  {shown_path(kernel_file.keep(file, current))}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(original.content)
            print(f"skeleton restored  {shown_path(file)}  (from {original.source})")
    except OSError as error:
        raise GraderError(f"cannot reset {shown_path(file)}: {error.strerror}") from error
    ProgressFile(course.root).forget(entry.name)
    return 0
