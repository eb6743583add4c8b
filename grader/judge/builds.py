"""Stage 1, *builds*: the file compiles, and has the launchers that the task asks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grader.building.build import BuiltKernel, compile_kernel
from grader.building.diagnostics import CompileError
from grader.course.task import Exercise
from grader.errors import BuildError
from grader.jail import compiling, imports, instrumented
from grader.runner import tiers
from grader.runner.gpu import gpu_architecture
from grader.runner.program import build_runner
from grader.source.messages import CompilerMessage
from grader.source.prototype import PrototypeError, parse_prototype, require_launcher
from grader.source.rewrite_error import RewriteError
from grader.toolchain.process import RunCommand
from grader.verdict import FAILED, PASSED, Diagnostic, Stage


@dataclass
class Built:
    """What the later stages need."""

    kernel: BuiltKernel
    runner: Path


class Builder:
    """Compiles the kernel and the runner in threads, while the caller imports torch."""

    def __init__(self, file: Path, device: str, architecture: str) -> None:
        self.file = file
        self.device = device
        self.started = time.monotonic()
        self.finished = self.started
        self._pool = ThreadPoolExecutor(max_workers=3, thread_name_prefix="build")
        arch = gpu_architecture(architecture) if device == "cuda" else None
        self.jail: Future[tiers.InForce] = self._pool.submit(tiers.in_force if device == "cpu" else tiers.without)
        """What the kernel is compiled and run in."""
        self._kernel: Future[BuiltKernel] = self._pool.submit(
            self._timed, lambda: compile_kernel(file, device, device == "cpu", arch=arch, run=self.run_compiler())
        )
        self._runner: Future[Path] = self._pool.submit(lambda: build_runner(device, arch))

    def run_compiler(self) -> RunCommand:
        """How a compiler is run: in the jail that is in force."""
        return compiling.run_in(self.jail.result().jail)

    def _timed(self, build: Callable[[], BuiltKernel]) -> BuiltKernel:
        try:
            return build()
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
        word = instrumented.unchecked_word(kernel.plan, self.run_compiler())
        if word:
            names.append(word)
        if any(name.startswith(("pthread_create", "_ZNSt6thread", "thrd_create")) for name in names):
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
            stage.summary = "compiles" if not kernel.cached else "compiled before"
            stage.diagnostics = [_diagnostic(message) for message in kernel.diagnostics]
        except (BuildError, PrototypeError) as error:
            stage.status = FAILED
            stage.message = str(error)
            if isinstance(error, (CompileError, RewriteError)):
                stage.diagnostics = [_diagnostic(message) for message in error.diagnostics]
                if stage.diagnostics:
                    stage.diagnostics[0].advice = error.hint
            stage.summary = "wrong launcher" if isinstance(error, PrototypeError) else "does not compile"
        finally:
            self._pool.shutdown(wait=False)
        stage.seconds = max(0.0, self.finished - self.started)
        return stage, built


def _diagnostic(message: CompilerMessage) -> Diagnostic:
    """A compiler's message as the verdict holds it."""
    return Diagnostic(
        message.severity, message.message, message.file, message.line, message.column, message.source_line
    )
