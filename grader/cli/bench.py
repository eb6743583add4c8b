"""``grader bench``: how long a kernel takes, against the roofline and against torch in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.check import Device
from grader.course import Course
from grader.errors import GraderError


def command(
    exercise: Annotated[str | None, typer.Argument(metavar="[EXERCISE]", help="Which exercise.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every exercise of the course.")] = False,
    file: Annotated[Path | None, typer.Option("--file", metavar="F", help="Time this file.")] = None,
    device: Annotated[Device, typer.Option(help="The simulator's host (cpu), or a GPU (cuda).")] = Device.cuda,
    record: Annotated[
        bool, typer.Option("--record", help="Keep the figures of the solutions in lessons/*/h200.json.")
    ] = False,
) -> int:
    """Time a kernel, with torch beside it."""
    entries = Course().exercises if every else [Course().find(exercise or "")]
    if every == (exercise is not None):
        raise GraderError("name one exercise, or give --all", "`grader list` shows the exercises.")
    raise GraderError(f"grader bench is not here yet ({len(entries)} to time, on {device.value}, {file}, {record})")
