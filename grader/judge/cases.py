"""Runs the cases of an exercise in child processes, and compares the outputs with the reference.

For each case it draws the inputs, sends them to a child, and computes the reference while the child runs the kernel.
``CHILDREN`` child processes work at the same time. A child that crashed or hung is restarted for the next case. After
too many restarts the remaining cases are skipped, to save the learner's time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grader.course.task import Call, Case, Exercise
from grader.execution.runner.answers import Done, Ended, Refused, Writers
from grader.execution.runner.buffers import Buffers, prepare
from grader.execution.runner.client import Child, Reply
from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.toolchain.cuda_errors import LAUNCHER_THREW, describe_error
from grader.judge.comparison.compare import compare
from grader.judge.misread import explain
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, CaseResult

if TYPE_CHECKING:
    from grader.simulator.report import Report

CHILDREN = min(2, os.cpu_count() or 1)
"""The number of children that work at the same time. Grading a class sets it to 1, because it already uses all cores.
"""
MOST_TIMEOUTS = 2
"""The number of cases that may exceed the time limit before the remaining ones are skipped.

Grading a class sets it to 1: the kernel has failed, and each further case would take the whole limit.
"""
MOST_CRASHES = 4
ENDED = ("crash", "exit", "output", "oom", "reply")
"""The problems of cases that count as crashes."""
MOST_AHEAD = 64 << 20
"""The maximum total size, in bytes, of the inputs and outputs that are prepared before the kernel is built."""
LONG = 2.5
"""A case with an infinite loop that took longer than this, in seconds, counts towards ``MOST_TIMEOUTS``."""


@dataclass
class Run:
    """A case with one dtype that is run once, and its result."""

    case: Case
    dtype: str
    seed: int
    result: CaseResult
    report: str = ""
    """The simulator's report as JSON."""
    simulated: Report | None = None
    """The simulator's report, parsed."""
    minimum_bytes: float = 0.0
    operations: float | None = None
    counted: bool = False
    """True for a case of the stage *efficient*. Its output is compared, too."""
    drawn: tuple[Call, Buffers, dict[str, Any]] | None = None
    """The call with its inputs, its memory, and the reference, if these were computed before the kernel was built."""
    schedule: str = "forward"
    """The order of blocks and warps on the simulator. A run in "reverse" repeats another one."""
    needs_no_kernel: bool = False
    """True if the right result is that every output keeps its initial values, or is zero: cudaMemsetAsync is enough."""


@dataclass
class CasePool:
    """Runs a list of cases in parallel children."""

    exercise: Exercise
    new_child: Callable[[], Child]
    on_run: Callable[[Run], None] = lambda run: None
    """A function that is called after each case. Several threads may call it at the same time."""
    on_result: Callable[[Run], None] = lambda run: None
    """A function that is called after ``on_run``, by one thread at a time."""
    enough: Callable[[Run], bool] = lambda run: False
    """A function that is called after ``on_result``. If it returns True, the remaining runs do not start."""
    helpers: int = field(default_factory=lambda: CHILDREN)

    def run(self, runs: Sequence[Run]) -> None:
        """Run all cases, and store the results in ``runs``."""
        self._waiting = list(reversed(runs))
        self._lock = threading.Lock()
        self._timeouts = self._crashes = 0
        self._failure: BaseException | None = None
        self._children: list[Child] = []
        helpers = [threading.Thread(target=self._work, daemon=True) for _ in range(min(self.helpers, len(runs)) - 1)]
        try:
            for helper in helpers:
                helper.start()
            self._work()
            if not self._stopped():
                for helper in helpers:
                    helper.join()
        except BaseException as error:
            self._give_up(error)
            raise
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        child = self.new_child()
        self._children.append(child)
        try:
            while True:
                with self._lock:
                    if not self._waiting or self._failure is not None:
                        return
                    run = self._waiting.pop()
                    reason = why_pointless(self._timeouts, self._crashes)
                if reason:
                    run.result.status, run.result.problem = SKIPPED, reason
                else:
                    run_case(self.exercise, run, child)
                    self.on_run(run)
                with self._lock:
                    endless = any(found.kind == "infinite_loop" for found in run.result.findings)
                    self._timeouts += run.result.problem == "timeout" or (endless and run.result.seconds > LONG)
                    self._crashes += run.result.problem in ENDED
                    self.on_result(run)
                    if self.enough(run):
                        self._waiting.clear()
        except BaseException as error:  # run() raises it again in the caller's thread
            self._give_up(error)
        finally:
            child.stop()

    def _stopped(self) -> bool:
        """Return whether the check was interrupted, by Ctrl-C or because the file was saved again.

        The caller then does not wait for the running cases.
        """
        return self._failure is not None and not isinstance(self._failure, Exception)

    def _give_up(self, error: BaseException) -> None:
        """Stop the running cases, and start no others.

        An interrupt replaces an earlier failure, because it may be the cause: Ctrl-C also ends a child that has just
        been forked and is still in the terminal's process group.
        """
        with self._lock:
            if self._failure is None or not isinstance(error, Exception):
                self._failure = error
            for child in self._children:
                child.kill()


def why_pointless(timeouts: int, crashes: int) -> str:
    """Return the problem of a case that is skipped after so many timeouts and crashes; empty if it must run."""
    if timeouts >= MOST_TIMEOUTS:
        return "after_timeouts"
    return "after_crashes" if crashes >= MOST_CRASHES else ""


def plan(exercise: Exercise, cases: Sequence[tuple[Case, str]], seed: int, counted: bool = False) -> list[Run]:
    """Return a run for each case, with its own seed. No inputs are drawn yet."""
    runs = []
    for case, dtype in cases:
        own = exercise.case_seed(seed, case, dtype)
        result = CaseResult(name=case.name, dtype=dtype, status=SKIPPED, seed=own)
        runs.append(Run(case, dtype, own, result, counted=counted))
    return runs


def repeated(run: Run, schedule: str) -> Run:
    """Return a new run of the same case with the same inputs."""
    result = CaseResult(name=run.case.name, dtype=run.dtype, status=SKIPPED, seed=run.seed)
    return Run(run.case, run.dtype, run.seed, result, counted=run.counted, schedule=schedule)


def draw_ahead(exercise: Exercise, runs: Sequence[Run], enough: Callable[[], bool], held: ExitStack) -> None:
    """Draw the inputs of runs and compute their references, until ``enough()`` returns True.

    ``held`` frees the memory of runs that are never executed.
    """
    left = MOST_AHEAD
    with suppress(Exception):  # if a reference fails, it fails again when its case is run
        for run in runs:
            if enough() or left <= 0:
                return
            call = exercise.call(run.case, run.dtype, run.seed)
            buffers = held.enter_context(prepare(call))
            left -= sum(place.bytes for place in (*buffers.inputs.values(), *buffers.outputs.values()))
            run.drawn = call, buffers, exercise.expected(call)


def run_case(exercise: Exercise, run: Run, child: Child) -> None:
    """Run one case: draw its inputs, call the kernel, compare its outputs, and store the result in ``run``."""
    started = time.monotonic()
    result = run.result
    drawn, run.drawn = run.drawn, None
    call = drawn[0] if drawn else exercise.call(run.case, run.dtype, run.seed)
    result.dims = dict(call.dims)
    result.special_values, result.special_offsets = list(run.case.inputs), list(run.case.offsets)
    run.minimum_bytes = exercise.least_bytes(call)
    run.operations = exercise.operations(call)
    with drawn[1] if drawn else prepare(call) as buffers:
        lines = [f"call {exercise.launcher(run.dtype)}", *buffers.lines(call, exercise.parameters(run.dtype))]
        child.send("\n".join(lines), buffers.files)
        try:
            expected = drawn[2] if drawn else exercise.expected(call)
        except GraderError:
            raise
        except Exception as error:
            raise GraderError(
                f"the reference of {exercise.name} fails in case {run.case.name!r} ({run.dtype}): "
                f"{type(error).__name__}: {error}"
            ) from error
        reply = child.receive(exercise.timeout)
        result.printed = reply.printed
        if isinstance(reply.answer, Done) and not reply.answer.report_cut:
            run.report = buffers.report().decode(errors="replace")
        judge(exercise, call, buffers, expected, reply, result)
        run.needs_no_kernel = needs_no_kernel(call, expected)
        if child.libsim and child.alive:
            add_writers(result, call, child)
    if child.libsim is None and not (isinstance(reply.answer, Done) and reply.answer.code == 0):
        child.stop()  # after an error on the GPU, the process cannot use it any more
    result.seconds = time.monotonic() - started


def needs_no_kernel(call: Call, expected: dict[str, Any]) -> bool:
    """Return whether the right result is that every output keeps its initial values, or is zero."""
    return all(
        not bool(wanted.any()) or (name in call.tensors and bool((call.tensors[name] == wanted).all()))
        for name, wanted in expected.items()
    )


def judge(
    exercise: Exercise, call: Call, buffers: Buffers, expected: dict[str, Any], reply: Reply, result: CaseResult
) -> None:
    """Fill in the result of a case.

    The outputs are read from the memory file, not from the child's answer. The answer can only add errors.
    """
    result.status = FAILED
    answer = reply.answer
    if isinstance(answer, Ended):
        result.problem, result.reasons = answer.problem, [answer.text]
        return
    if not isinstance(answer, Done):
        result.problem = "call"
        result.reasons = [answer.reason if isinstance(answer, Refused) else "no reason given"]
        return
    if lacking := answer.said("memory"):
        result.problem, result.reasons = "memory", lacking
        return
    if answer.code == LAUNCHER_THREW:
        result.problem = "exception"
        return
    if answer.code != 0:
        result.problem = "launch" if answer.said("launch") else "run"
        result.reasons = answer.said("launch", "run", "setup", "fetch") or [describe_error(answer.code)]
        return
    content = buffers.snapshot()
    result.outside = buffers.damaged_guards(content)
    for name, wanted in expected.items():
        tolerance = exercise.tolerance_of(name, call.dtype)
        poison = None if name in buffers.in_out else buffers.tensor(buffers.poison, name)
        actual = buffers.tensor(content, name)
        dtype, scale = call.output_dtypes[name], exercise.scale_of(name, call)
        output = compare(name, actual, wanted, dtype, tolerance, poison, scale, inputs=call.tensors)
        explain(exercise, call, output, actual)
        result.outputs.append(output)
    wrong = [output for output in result.outputs if not output.passed]
    if result.outside:
        result.problem = "guard"
    elif wrong:
        never = all(output.unwritten == output.wrong for output in wrong)
        result.problem = "unwritten" if never else "wrong"
    elif changed := answer.said("changed"):
        result.problem, result.reasons = "inputs", changed
    else:
        result.status = PASSED


def add_writers(result: CaseResult, call: Call, child: Child) -> None:
    """Ask the simulator which block and thread wrote the elements with the largest errors."""
    for output in result.outputs:
        asked = [worst for worst in output.worst if not worst.unwritten]
        if not asked:
            continue
        item = ITEM_BYTES[call.output_dtypes[output.name]]
        offsets = [str(flat_index(worst.index, output.shape) * item) for worst in asked]
        reply = child.request(f"writer {output.name} {' '.join(offsets)}", timeout=5.0)
        if not isinstance(reply.answer, Writers):
            return
        for worst, writer in zip(asked, reply.answer.places):
            if writer is not None:
                worst.block, worst.thread = writer


def flat_index(index: list[int], shape: list[int]) -> int:
    """Return the position of the element ``index`` in a contiguous tensor, in elements."""
    flat = 0
    for position, size in zip(index, shape):
        flat = flat * size + position
    return flat
