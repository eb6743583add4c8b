"""Stage 1, *builds*: the file compiles, and has the launchers that the task requires."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.task import Exercise
from grader.execution.build.diagnostics import CompileError
from grader.frontend.messages import CompilerMessage, RewriteError
from grader.frontend.prototype import PrototypeError, parse_prototype, require_launcher
from grader.frontend.toolchain.gpus import Gpu, compiled_architecture
from grader.judge.build_job import Building, Compiled, Job
from grader.judge.build_process import Process
from grader.judge.nvcc import Answer
from grader.setup.errors import BuildError, GraderError
from grader.verdict import FAILED, PASSED, Diagnostic, Stage
from grader.verdict.wording import stages


@dataclass
class Built:
    """The built kernel and runner, which the later stages need."""

    kernel: Compiled
    runner: Path


class Builder:
    """Compiles the kernel and the runner in the background, while the caller does other work.

    With ``own_process`` it uses a separate process, otherwise threads of this process.
    """

    def __init__(self, job: Job, own_process: bool) -> None:
        self.file = job.file
        self.started = self.finished = time.monotonic()
        if own_process:
            self.building: Building = Process(job)
        else:
            from grader.judge.build_threads import Threads

            self.building = Threads(job)
        self.building.kernel.add_done_callback(self._note_the_time)

    def _note_the_time(self, _: Future[Any]) -> None:
        self.finished = time.monotonic()

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop all compilers if the check was interrupted, for example by Ctrl-C."""
        if kind is not None and not issubclass(kind, Exception):
            self.building.stop()

    def finish(self, exercise: Exercise) -> tuple[Stage, Built | None]:
        """Wait for the compilers; return the stage's result, and the built files if it passed.

        Raise GraderError if the failure is not caused by the kernel file.
        """
        stage = Stage("builds")
        built = None
        try:
            kernel = self.building.kernel.result()
            if not kernel.text.strip():
                skeleton = f"`grader reset {exercise.name}` puts the skeleton into the exercise's file."
                raise BuildError(f"{self.file.name} is empty", f"Save your kernel in it. {skeleton}")
            for dtype in exercise.dtypes:
                require_launcher(kernel.launchers, parse_prototype(exercise.prototype(dtype)), self.file.name)
            if kernel.refused:
                raise kernel.refused
            built = Built(kernel, self.building.runner.result())
            stage.status = PASSED
            stage.summary = stages.COMPILED_BEFORE if kernel.cached else stages.COMPILES
            stage.diagnostics = [_diagnostic(message) for message in kernel.warnings]
        except BuildError as error:
            _refuse(stage, error)
            stage.summary = stages.WRONG_LAUNCHER if isinstance(error, PrototypeError) else stages.DOES_NOT_COMPILE
        stage.seconds = max(0.0, self.finished - self.started)
        return stage, built


def add_answer(stage: Stage, answer: Answer, launches: Mapping[str, tuple[int, int]], on: Gpu) -> None:
    """Add nvcc's result to the stage *builds*, which has passed.

    ``launches`` has the threads per block and the dynamic shared memory in bytes, by the launched kernel's name.
    ``on`` is the GPU for the occupancy.
    """
    if answer.error is not None:
        _refuse(stage, answer.error)
        stage.summary = f"{answer.compiler} does not compile it for {compiled_architecture(answer.gpu.arch)}"
    else:
        stage.summary = f"{stage.summary}; {answer.summary}"
        stage.resources = answer.resources(launches, on)
        if refused := answer.refused_launch(launches):
            _refuse(stage, refused)
            stage.summary = "a GPU refuses a launch"


def _refuse(stage: Stage, error: GraderError) -> None:
    """Mark the stage as failed, with the messages of the error."""
    stage.status = FAILED
    stage.message = str(error)
    if isinstance(error, (CompileError, RewriteError)):
        stage.diagnostics = [_diagnostic(message) for message in error.diagnostics]
        if stage.diagnostics and not any(item.advice for item in stage.diagnostics):
            stage.diagnostics[0].advice = error.hint


def _diagnostic(message: CompilerMessage) -> Diagnostic:
    """Convert a compiler's message to a record of the verdict."""
    return Diagnostic(
        message.severity,
        message.message,
        message.file,
        message.line,
        message.column,
        message.source_line,
        message.advice,
    )
