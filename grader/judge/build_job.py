"""The job of the stage *builds* and its result: cheap to import, and to send from one process to another."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.frontend.messages import CompilerMessage
from grader.frontend.prototype import Prototype
from grader.setup.errors import BuildError

if TYPE_CHECKING:
    from grader.execution.runner.tiers import InForce
    from grader.judge.nvcc import Answer


@dataclass(frozen=True)
class Job:
    """A kernel file to compile. ``ask_nvcc``: also for a GPU, as soon as the front end has taken the file."""

    file: Path
    device: str
    architecture: str
    ask_nvcc: bool


@dataclass(frozen=True)
class Compiled:
    """A kernel's library, and what is known of it."""

    library: Path
    libsim: Path | None
    launchers: tuple[Prototype, ...]
    text: str
    """The file as it was compiled."""
    compiler: str
    cached: bool
    warnings: list[CompilerMessage]
    refused: BuildError | None
    """What it does that no submission may, after all that is wrong with its launchers."""


class Building:
    """A job at work. Each part is there as soon as it is made."""

    jail: Future[InForce]
    """What the kernel is compiled and run in."""
    kernel: Future[Compiled]
    runner: Future[Path]
    nvcc: Future[Answer] | None

    def translated(self) -> None:
        """Wait until the front end, which needs Python's lock of this process, has done its part."""

    def stop(self) -> None:
        """End it: when this returns, no compiler is left."""
        raise NotImplementedError
