"""Grades a Python file: *builds* imports it in the sandbox, *correct* applies operations and judges their outcomes.

If a drawn script of operations fails, *correct* removes operations as long as the rest still fails, and reports the
shortest script.
"""

from __future__ import annotations

import random
import string
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.course.python_task import OPERATIONS, Model, Operation, PythonExercise, Raised, Seen, parse, said
from grader.course.task import Case
from grader.execution.python.child import Answer, Python, Step
from grader.execution.python.interpreter import find_interpreter
from grader.execution.runner.answers import Ended
from grader.execution.runner.tiers import in_force
from grader.judge.cases import ENDED, why_pointless
from grader.judge.options import CheckEvent, CheckOptions
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, CaseResult, Diagnostic, Stage, Verdict, words

LEAST_SECONDS = 0.1
"""The time limit in seconds that a script gets at least, even if earlier scripts used up the time of the case."""
SIMPLIFIED = 3
"""The number of failing scripts, the shortest first, that are simplified to find the shortest."""


def check_python(
    task: PythonExercise, file: Path, options: CheckOptions, wanted: Sequence[str], verdict: Verdict
) -> list[Stage]:
    """Return the stages *builds* and *correct*. Add the sandbox to the verdict."""
    held = in_force()
    verdict.isolation, verdict.isolation_note = held.tier, held.note.replace("kernel", "file")
    verdict.isolation_note = verdict.isolation_note.replace("compiled and run", "run")
    interpreter = find_interpreter()
    with Python(interpreter.program, file, jail=held.jail, interpreter=interpreter) as child:
        builds = _judge_import(task, file, child)
        options.report(CheckEvent("builds", "finished", status=builds.status))
        if not builds.passed or "correct" not in wanted:
            return [builds]
        options.report(CheckEvent("correct", "started", total=len(task.cases)))
        correct = _Correct(task, child, options).run(verdict.seed)
        options.report(CheckEvent("correct", "finished", status=correct.status))
        return [builds, correct]


def _judge_import(task: PythonExercise, file: Path, child: Python) -> Stage:
    began = time.monotonic()
    answer = child.ask(_request(task, {}, []), task.timeout)
    stage = Stage("builds", FAILED, seconds=time.monotonic() - began)
    module = answer.module
    ended = answer.ended or (Ended("reply", "its process sent no answer") if module is None else None)
    if ended is not None or module is None:
        stage.summary = "the import fails"
        stage.message = f"Importing {file.name} fails: {ended.text if ended else ''}."
    elif module.raised is not None:
        syntax = "SyntaxError" in module.raised.names
        stage.summary = "it is not valid Python" if syntax else "the import fails"
        stage.diagnostics = [_diagnostic(module.raised, file)]
        stage.message = f"{file.name} cannot be imported: {stage.diagnostics[0].message}"
    elif module.lacks:
        stage.summary = "a definition is missing"
        stage.message = f"{file.name} does not define {words.listed(module.lacks)}."
    else:
        stage.status, stage.summary = PASSED, f"defines {task.creates}"
    return stage


def _diagnostic(raised: Raised, file: Path) -> Diagnostic:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    source = lines[raised.line - 1] if 0 < raised.line <= len(lines) else ""
    found = Diagnostic("error", said(raised, with_line=False), file.name, raised.line, 0, source)
    if "ImportError" in raised.names:
        found.advice = "Only modules of Python's standard library for data structures and numbers can be imported."
    return found


def _request(task: PythonExercise, sizes: Mapping[str, Any], operations: Sequence[Operation]) -> dict[str, Any]:
    listed = [[item.target, item.method, item.arguments] for item in operations]
    return {
        "creates": task.creates,
        "methods": task.methods,
        "views": task.views,
        "sizes": sizes,
        "operations": listed,
    }


@dataclass(frozen=True)
class _Wrong:
    """A script that fails: its last operation is the one with the error."""

    sizes: Mapping[str, Any]
    operations: list[Operation]
    says: str
    problem: str
    printed: str


def _length(wrong: _Wrong) -> int:
    return len(wrong.operations)


@dataclass
class _Correct:
    """The stage *correct* of a Python exercise: it calls the learner's functions and checks what they return."""

    task: PythonExercise
    child: Python
    options: CheckOptions
    left: float = 0.0
    """The processor time that is left for the case, in seconds."""

    def run(self, seed: int) -> Stage:
        """Run all cases."""
        began = time.monotonic()
        cases: list[CaseResult] = []
        timeouts = crashes = 0
        for number, case in enumerate(self.task.cases, 1):
            own = self.task.case_seed(seed, case, "")
            result = CaseResult(case.name, "", SKIPPED, seed=own)
            result.problem = why_pointless(timeouts, crashes)
            if not result.problem:
                self._run_case(case, own, result)
            timeouts += result.problem == "timeout"
            crashes += result.problem in ENDED
            cases.append(result)
            self.options.report(CheckEvent("correct", "case", number, len(self.task.cases), case.name, result.status))
        passed = all(case.passed for case in cases)
        return Stage("correct", PASSED if passed else FAILED, cases=cases, seconds=time.monotonic() - began)

    def _run_case(self, case: Case, seed: int, result: CaseResult) -> None:
        began = time.monotonic()
        result.status, self.left = PASSED, self.task.timeout
        failing: list[_Wrong] = []
        for sizes, operations in scripts(self.task, case, seed):
            wrong = self._wrong(sizes, operations)
            if wrong is None and self.left <= 0:
                says = f"together they took more than {self.task.timeout:g} s of processor time, and were stopped"
                wrong = _Wrong(sizes, operations, says, "timeout", "")
            failing += [wrong] if wrong is not None else []
            if wrong is not None and wrong.problem != OPERATIONS:
                break  # the process ended: it would end again
        if failing:
            shortest = sorted(failing, key=_length)[:SIMPLIFIED]
            if callable(case.dims[OPERATIONS]) and failing[-1].problem == OPERATIONS:
                shortest = sorted(map(self._shortest, shortest), key=_length)
            wrong = shortest[0]
            result.status, result.problem, result.dims = FAILED, wrong.problem, dict(wrong.sizes)
            result.reasons = [wrong.says, *self._as_code(wrong)]
            result.printed = wrong.printed
        result.seconds = time.monotonic() - began

    def _wrong(self, sizes: Mapping[str, Any], operations: Sequence[Operation]) -> _Wrong | None:
        """Run a script; return its first error."""
        answer = self.child.ask(_request(self.task, sizes, operations), max(self.left, LEAST_SECONDS))
        self.left -= answer.cpu_seconds
        model: Model = self.task.reference(**sizes)
        done = 0
        for done, (operation, step) in enumerate(zip(operations, answer.steps[1:]), 1):
            if says := self._judge(model, operation, step):
                return _Wrong(sizes, list(operations[:done]), f"{operation}: {says}", OPERATIONS, answer.printed)
        first = answer.steps[0].outcome if answer.steps else Seen()
        if first.raised is not None:
            return _Wrong(
                sizes, [], f"{self.task.creates}(...) raises {said(first.raised)}", OPERATIONS, answer.printed
            )
        if (ended := _ended(answer, len(operations))) is not None:
            last = list(operations[: done + 1]) if answer.steps else []
            where = str(last[-1]) if last else f"{self.task.creates}(...)"
            return _Wrong(sizes, last, f"{where}: {ended.text}", ended.problem, answer.printed)
        return None

    def _judge(self, model: Model, operation: Operation, step: Step) -> str:
        """Return what is wrong after an operation."""
        try:
            return model.judge(operation, step.outcome, step.views)
        except Exception as error:  # the author's code, with values that a submission chose
            raise GraderError(
                f"the reference of {self.task.name} fails at {operation}: {type(error).__name__}: {error}"
            ) from error

    def _shortest(self, wrong: _Wrong) -> _Wrong:
        """Simplify the operations as long as the rest still fails. Then name their results a, b, c, ..."""
        for simpler in (_without, _with_smaller_numbers):
            at = len(wrong.operations) - 1
            while at >= 0 and self.left > 0:
                for operations in simpler(wrong.operations, at):
                    found = self._wrong(wrong.sizes, operations)
                    if found is not None and found.problem == OPERATIONS:
                        wrong = found
                        break
                at = min(at, len(wrong.operations)) - 1
        targets = [item.target for item in wrong.operations if item.target]
        names = {target: string.ascii_lowercase[place % 26] for place, target in enumerate(targets)}
        return self._wrong(wrong.sizes, _renamed(wrong.operations, names)) or wrong

    def _as_code(self, wrong: _Wrong) -> list[str]:
        """Return a script as lines of Python that repeat the error."""
        arguments = ", ".join(f"{name}={value}" for name, value in wrong.sizes.items())
        lines = [f"{self.task.instance} = {self.task.creates}({arguments})"]
        for item in wrong.operations:
            lines.append((f"{item.target} = " if item.target else "") + f"{self.task.instance}.{item}")
        return lines


def _ended(answer: Answer, operations: int) -> Ended | None:
    """Return why the process ended before it answered all operations."""
    if answer.ended is None and len(answer.steps) < operations + 1:
        return Ended("reply", "its process sent too few answers")
    return answer.ended


def scripts(task: PythonExercise, case: Case, seed: int) -> Iterator[tuple[dict[str, Any], list[Operation]]]:
    """Yield the arguments of the class and the operations, once or for each drawn script."""
    given = case.dims[OPERATIONS]
    chooser = random.Random(seed)
    for _ in range(task.scripts if callable(given) else 1):
        dims = task.dims_of(case, chooser.getrandbits(48))
        text = dims.pop(OPERATIONS)
        yield dims, parse(text(chooser) if callable(text) else text)


def _without(operations: Sequence[Operation], at: int) -> Iterator[list[Operation]]:
    """Yield scripts without one operation. In the second, its first argument replaces its result."""
    before, item, after = operations[:at], operations[at], operations[at + 1 :]
    yield _usable([*before, *after])
    if item.target and item.arguments:
        yield _usable([*before, *_renamed(after, {item.target: item.arguments[0]})])


def _with_smaller_numbers(operations: Sequence[Operation], at: int) -> Iterator[list[Operation]]:
    """Yield scripts in which a number of one operation is smaller."""
    before, item, after = operations[:at], operations[at], operations[at + 1 :]
    for place, argument in enumerate(item.arguments):
        for smaller in range(argument) if isinstance(argument, int) else ():
            changed = (*item.arguments[:place], smaller, *item.arguments[place + 1 :])
            yield [*before, replace(item, arguments=changed), *after]


def _renamed(operations: Sequence[Operation], names: Mapping[str, str | int]) -> list[Operation]:
    """Return the operations with other names of results."""
    return [
        Operation(
            str(names.get(item.target, item.target)),
            item.method,
            tuple(names.get(name, name) if isinstance(name, str) else name for name in item.arguments),
        )
        for item in operations
    ]


def _usable(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations without those whose arguments no earlier one creates."""
    known: set[str] = set()
    kept = []
    for item in operations:
        if all(isinstance(argument, int) or argument in known for argument in item.arguments):
            kept.append(item)
            known.add(item.target)
    return kept
