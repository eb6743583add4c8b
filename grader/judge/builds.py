"""Stage 1, *builds*: the file compiles, and has the launchers that the task asks for."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.building.build import BuildPlan, BuiltKernel, build, compile_directly, plan_kernel
from grader.building.diagnostics import CompileError
from grader.course.task import Exercise
from grader.errors import BuildError, GraderError
from grader.jail import compiling, imports, instrumented
from grader.judge import nvcc
from grader.runner import tiers
from grader.runner.gpu import gpu_architecture
from grader.runner.program import build_runner
from grader.source.messages import CompilerMessage
from grader.source.prototype import PrototypeError, parse_prototype, require_launcher
from grader.source.rewrite_error import RewriteError
from grader.toolchain.process import RunCommand, stop_all
from grader.verdict import FAILED, PASSED, Diagnostic, Stage
from grader.wording import stages


@dataclass
class Built:
    """What the later stages need."""

    kernel: BuiltKernel
    runner: Path


class Builder:
    """Compiles the kernel and the runner in threads, while the caller imports torch.

    ``ask_nvcc``: also for a GPU, as soon as the front end has taken the file; ``nvcc`` waits for the answer.
    """

    def __init__(self, file: Path, device: str, architecture: str, ask_nvcc: bool) -> None:
        self.file = file
        self.device = device
        self.started = time.monotonic()
        self.finished = self.started
        self._pool = ThreadPoolExecutor(max_workers=5, thread_name_prefix="build")
        arch = gpu_architecture(architecture) if device == "cuda" else None
        self.jail: Future[tiers.InForce] = self._pool.submit(tiers.in_force, arch)
        """What the kernel is compiled and run in."""
        self._plan: Future[BuildPlan] = self._pool.submit(
            plan_kernel, file, device, device == "cpu", arch=arch or architecture
        )
        self._kernel: Future[BuiltKernel] = self._pool.submit(self._compile)
        self._runner: Future[Path] = self._pool.submit(lambda: build_runner(device, arch))
        self.nvcc: Future[nvcc.Answer] | None = None
        if ask_nvcc:
            self.nvcc = self._pool.submit(self._ask_nvcc, architecture)

    def _ask_nvcc(self, architecture: str) -> nvcc.Answer:
        self._plan.result()  # what the front end refuses, nobody asks nvcc about
        return nvcc.ask(self.file, architecture, self.run_compiler())

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Where nobody wants the answer any more (Ctrl-C), no compiler is left."""
        if kind is not None and not issubclass(kind, Exception):
            self._stop()

    def _stop(self) -> None:
        stop_all()
        futures: list[Future[Any]] = [
            self.jail,
            self._plan,
            self._kernel,
            self._runner,
            *([self.nvcc] if self.nvcc else []),
        ]
        while wait(futures, timeout=0.05).not_done:  # a thread may just have started another one
            stop_all()

    def run_compiler(self) -> RunCommand:
        """How a compiler is run: in the jail that is in force."""
        return compiling.run_in(self.jail.result().jail)

    def _compile(self) -> BuiltKernel:
        try:
            return build(self._plan.result(), functools.partial(compile_directly, run=self.run_compiler()))
        finally:
            self.finished = time.monotonic()

    def _refuse_tricks(self, kernel: BuiltKernel) -> None:
        """What would switch the simulator's checks off is an error here, in words."""
        assert kernel.libsim
        if instrumented.renumbers_lines(kernel.plan.original):
            raise BuildError(
                f"{self.file.name} has a #line directive or a linemarker: the lines of a submission keep their own numbers.",
                "Take it out.",
            )
        names = imports.refused(kernel.library, kernel.libsim)
        if kernel.plan.compiler.family == "gcc" and imports.entries_in_constants(kernel.library.read_bytes()):
            names.append("the instruction endbr64 in a constant")
        word = instrumented.unchecked_word(kernel.plan, self.run_compiler())
        if word:
            names.append(word)
        if any(name.startswith(("pthread_create", "std::thread", "std::jthread", "thrd_create")) for name in names):
            raise BuildError(
                f"{self.file.name} starts a thread of the host: a launcher launches kernels, and returns.",
                "Take std::thread, std::async and pthread_create out; use blocks and threads of a kernel.",
            )
        if names:
            raise BuildError(
                f"{self.file.name} uses or defines {', '.join(names)}, which no kernel needs: "
                "a submission computes, and leaves the process and the simulator's checks alone."
            )

    def finish(self, exercise: Exercise) -> tuple[Stage, Built | None]:
        """The stage, and the built files when it passed. Raises GraderError when the grader itself cannot build."""
        stage = Stage("builds")
        built = None
        try:
            kernel = self._kernel.result()
            for dtype in exercise.dtypes:
                require_launcher(kernel.launchers, parse_prototype(exercise.prototype(dtype)), self.file.name)
            if self.device == "cpu":
                self._refuse_tricks(kernel)
            built = Built(kernel, self._runner.result())
            stage.status = PASSED
            stage.summary = stages.COMPILED_BEFORE if kernel.cached else stages.COMPILES
            stage.diagnostics = [_diagnostic(message) for message in kernel.diagnostics]
        except (BuildError, PrototypeError) as error:
            _refuse(stage, error)
            stage.summary = stages.WRONG_LAUNCHER if isinstance(error, PrototypeError) else stages.DOES_NOT_COMPILE
        finally:
            self._pool.shutdown(wait=False)
        stage.seconds = max(0.0, self.finished - self.started)
        return stage, built


def add_answer(stage: Stage, answer: nvcc.Answer, launches: Mapping[str, tuple[int, int]]) -> None:
    """What nvcc said, in the stage that passed without it; ``launches`` as in ``Answer.resources``."""
    if answer.error is not None:
        _refuse(stage, answer.error)
        stage.summary = f"{answer.compiler} does not compile it for {answer.gpu.arch}"
    else:
        stage.summary = f"{stage.summary}; {answer.summary}"
        stage.resources = answer.resources(launches)


def _refuse(stage: Stage, error: GraderError) -> None:
    """The stage fails with what a compiler said."""
    stage.status = FAILED
    stage.message = str(error)
    if isinstance(error, (CompileError, RewriteError)):
        stage.diagnostics = [_diagnostic(message) for message in error.diagnostics]
        if stage.diagnostics:
            stage.diagnostics[0].advice = error.hint


def _diagnostic(message: CompilerMessage) -> Diagnostic:
    """A compiler's message as the verdict holds it."""
    return Diagnostic(
        message.severity, message.message, message.file, message.line, message.column, message.source_line
    )
