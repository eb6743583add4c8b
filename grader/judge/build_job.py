"""Data types for the work of the stage *builds*. They are quick to import, and can be sent between processes."""

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
    """A kernel file to compile. With ``ask_nvcc``, nvcc also compiles it, once the front end has accepted it."""

    file: Path
    device: str
    architecture: str
    ask_nvcc: bool


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a kernel file: the library, and what later stages need to know about it."""

    library: Path
    libsim: Path | None
    launchers: tuple[Prototype, ...]
    text: str
    """The source text of the kernel file."""
    compiler: str
    cached: bool
    warnings: list[CompilerMessage]
    refused: BuildError | None
    """The error about a forbidden construct in the file. It is reported only if the launchers are right."""


class Building:
    """A running job. Each of its results is a future, available as soon as that part is built."""

    jail: Future[InForce]
    """The sandbox in which the kernel is compiled and run."""
    kernel: Future[Compiled]
    runner: Future[Path]
    nvcc: Future[Answer] | None

    def translated(self) -> None:
        """Wait until the front end has translated the file, if it runs in this process and therefore needs the GIL."""

    def stop(self) -> None:
        """Stop the job and all of its compilers."""
        raise NotImplementedError
