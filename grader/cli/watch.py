"""``grader watch``: grades at each save and continues with the next exercise. The loop is in ``watch_loop.py``."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.messages import find_exercise, move_renamed_files, start_command
from grader.cli.options import Device
from grader.course import Course
from grader.course.puzzles import Puzzle
from grader.setup.errors import GraderError


def command(
    exercise: Annotated[
        str | None,
        typer.Argument(
            metavar="EXERCISE", help="The exercise to begin with; default: the first one that is not passed."
        ),
    ] = None,
    device: Device = "cpu",
) -> int:
    """Grade at each save, and continue with the next exercise.

    Keys: h hint, l list, r run again, v everything, n next exercise, q quit.
    """
    from grader.cli.watch_loop import watch

    course = Course()
    move_renamed_files(course)
    entry = find_exercise(course, exercise) if exercise else None
    if isinstance(entry, Puzzle):
        raise GraderError(
            f"{entry.variable} is a puzzle, not an exercise", f"`{start_command(entry, course)}` grades it."
        )
    return watch(course, entry, device)
