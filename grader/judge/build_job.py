"""The job of the stage *builds* and its result: cheap to import, and to send between processes."""

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
    """A kernel file to compile. ``ask_nvcc``: also for a GPU, as soon as the front end has accepted the file."""

    file: Path
    device: str
    architecture: str
    ask_nvcc: bool


@dataclass(frozen=True)
class Compiled:
    """A kernel's library, and its properties."""

    library: Path
    libsim: Path | None
    launchers: tuple[Prototype, ...]
    text: str
    """The text that was compiled."""
    compiler: str
    cached: bool
    warnings: list[CompilerMessage]
    refused: BuildError | None
    """A forbidden construct; errors of the launchers are reported first."""


class Building:
    """A running job. Each part is available as soon as it is built."""

    jail: Future[InForce]
    """The sandbox in which the kernel is compiled and run."""
    kernel: Future[Compiled]
    runner: Future[Path]
    nvcc: Future[Answer] | None

    def translated(self) -> None:
        """Wait until the front end, which needs the GIL of this process, is done."""

    def stop(self) -> None:
        """Stop the job and all of its compilers."""
        raise NotImplementedError
