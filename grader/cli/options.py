"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Exercise = Annotated[str, typer.Argument(metavar="EXERCISE", help="The exercise.")]
DeviceName = Literal["cpu", "cuda"]
Device = Annotated[DeviceName, typer.Option(help="The simulated GPU (cpu), or a real one (cuda).")]
JsonOut = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", help="Write results.json here ('-': to stdout).")
]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Grade even without a sandbox for submissions.")]
