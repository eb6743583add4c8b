"""Counts a kernel's floating-point operations and active lanes for each source line.

The source view shows them, and bars may use them. Counting needs a second build of the kernel, in which each basic
block reports that it is executed. It is compiled while the cases run, and then runs the case of *efficient* once more
in the same sandbox. This is done only if details were requested, or if a bar of the exercise uses one of ``TOTALS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.task import Exercise
from grader.execution.jail.running import Jail
from grader.execution.runner.client import Child, LoadFailed
from grader.frontend.toolchain.gpus import Gpu
from grader.judge.cases import Run, plan, run_case
from grader.judge.simulated import read_report
from grader.judge.timing.limiter import time_bound
from grader.setup.errors import GraderError
from grader.simulator.disassembly import find_objdump
from grader.verdict import SourceLine, Stage, TimeBound

if TYPE_CHECKING:
    from grader.execution.build.build import BuiltKernel
    from grader.simulator.line_counters import KernelCounters

TOTALS = (
    "flops",
    "special_functions",
    "conversions",
    "warp_flops",
    "warp_half_flops",
    "warp_special_functions",
    "active_lanes",
)
OF_LINES = (*TOTALS, "executions", "warp_executions", "possible_lanes")


class Operations:
    """Builds the counting kernel in a thread. ``count`` waits for it and runs it; ``add_to`` stores the counts."""

    def __init__(self, file: Path, jail: Jail) -> None:
        self.file = file
        self._note = ""
        self._lines: list[SourceLine] = []
        self._kernels: list[KernelCounters] = []
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="operations")
        self._kernel: Future[BuiltKernel] = self._pool.submit(self._compile, jail)

    def _compile(self, jail: Jail) -> BuiltKernel:
        from grader.execution.build.build import compile_kernel
        from grader.execution.jail.compiling import run_in

        find_objdump()
        return compile_kernel(self.file, "cpu", checks=True, operations=True, run=run_in(jail))

    def count(self, exercise: Exercise, runs: Sequence[Run], new_child: Callable[[Path, Path | None], Child]) -> None:
        """Run each case once more with the counting kernel, and add the counts to the totals of the case's report."""
        try:
            kernel = self._kernel.result()
            for run in runs:
                self._count(exercise, run, kernel, new_child(kernel.library, kernel.libsim))
        except (GraderError, LoadFailed) as error:
            message = error.message if isinstance(error, GraderError) else str(error)
            hint = error.hint if isinstance(error, GraderError) else ""
            self._note = f"Floating-point operations are not shown: {message}. {hint or ''}".strip()
        finally:
            self._pool.shutdown(wait=False)

    def _count(self, exercise: Exercise, counted: Run, kernel: BuiltKernel, child: Child) -> None:
        (run,) = plan(exercise, [(counted.case, counted.dtype)], counted.seed, counted=True)
        run.seed = counted.seed  # use the same inputs as the run whose counters are shown
        try:
            run_case(exercise, run, child)
        finally:
            child.stop()
        report = read_report(run, kernel.library, self.file)
        if report is None or counted.simulated is None or not run.result.passed:
            raise GraderError("the build that counts operations failed in a case that the kernel itself passed")
        counted.simulated.totals |= {name: float(report.totals.get(name, 0)) for name in TOTALS}
        self._lines = self._lines or report.source_lines
        self._kernels = self._kernels or report.kernels

    def add_to(self, stage: Stage, counted: Run, gpu: Gpu) -> None:
        """Add the counts to the source lines of the stage, and a lower bound of the kernel's time on ``gpu``."""
        stage.note = " ".join(filter(None, (stage.note, self._note)))
        if self._lines:
            stage.totals["flops_needed"] = counted.operations or 0.0
            stage.lines = merged(stage.lines, self._lines)
        kernels = self._kernels or (counted.simulated.kernels if counted.simulated is not None else [])
        stage.bound = bound_of(counted, kernels, gpu)


def bound_of(counted: Run, kernels: Sequence[KernelCounters], gpu: Gpu) -> TimeBound:
    """Return a lower bound of the time that ``gpu`` needs for a run, computed from the counters of its kernels.

    Arithmetic is part of the bound only if the kernels' operations were counted.
    """
    return time_bound(kernels, gpu, counted.case.name, counted.dtype, counted.result.dims)


def merged(lines: list[SourceLine], executed: list[SourceLine]) -> list[SourceLine]:
    """Return ``lines`` with the operations that ``executed`` counts for them.

    Lines of the same files that compute, but do not access memory, are added.
    """
    found = {(line.file, line.line): line for line in lines}
    files = {line.file for line in lines}
    for line in executed:
        counters = {name: line.counters[name] for name in OF_LINES if name in line.counters}
        if line.file in files and counters:
            own = found.setdefault((line.file, line.line), SourceLine(line.file, line.line, line.source))
            own.counters |= counters
    return [found[place] for place in sorted(found)]
