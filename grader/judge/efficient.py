"""Stage 4, *efficient*: limits on the simulator's counters, so that performance is graded without a GPU.

An exercise sets the limits in ``tasks.py`` as bars. A bar is an expression with a limit, such as ``sectors / ideal`` at
most 1.5. It is computed from values of one call of the launcher, in the exercise's ``efficient`` case. An expression
may use ``+ - * / // % ** < > ==``, ``min``, ``max``, parentheses, and these names:

- ``minimum`` is the number of bytes that any kernel must move: each input and each output once, or a number that the
  task computes.
- ``flops_needed`` is the number of operations of the task's formula; 0 if the task has no formula.
- ``item`` is the size in bytes of one element of the case's dtype.
- The sizes of the case have their own names, such as ``n``.
- Every entry of the simulator's totals (``grader/simulator/report.py``) is a counter, such as ``global_bytes``,
  ``sectors``, ``ideal``, ``requests``, ``bank_conflict_ways``, ``launches``, ``scratch_bytes``, ``shared_bytes``,
  ``atomics``, ``barriers`` and ``blocks``.
- ``registers``, ``spill_bytes`` and ``stack_bytes`` are the maximum over the file's kernels, as nvcc reports it. A bar
  with these names is graded only if the file was checked with nvcc.
- ``flops``, ``special_functions``, ``conversions`` and ``active_lanes`` are counts of a second run, with a kernel that
  is built to count them (``grader/judge/operations.py``). A check with such a bar takes a second longer.

If the case has several dtypes, the kernel must meet the bars in each of them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence

from msgspec import structs

from grader.course.task import Bar, Exercise
from grader.execution.submission_sandbox.plausible_report import too_little
from grader.frontend.dtypes import ITEM_BYTES
from grader.judge.cases import Run
from grader.judge.operations import TOTALS as OPERATIONS
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, BarResult, KernelResources, Stage

MOST_LINES = 5000
"""The maximum number of source lines whose counters are part of the verdict."""
_FUNCTIONS = {"min": min, "max": max, "abs": abs}


OF_NVCC = ("registers", "spill_bytes", "stack_bytes")


def judge_efficient(exercise: Exercise, runs: Sequence[Run], resources: Sequence[KernelResources] = ()) -> Stage:
    """Return the result of the stage from the counted runs, and from nvcc's resource usage if it is known."""
    stage = Stage("efficient")
    compiled = {name: max(float(getattr(kernel, name)) for kernel in resources) for name in OF_NVCC if resources}
    bars = [bar for bar in exercise.bars if compiled or not names_in(bar) & set(OF_NVCC)]
    if unjudged := [bar.expression for bar in exercise.bars if bar not in bars]:
        stage.note = f"Not graded, because the file was not checked with nvcc: the bar on {', '.join(unjudged)}."
    for run in runs:
        report = run.simulated
        totals = report.totals if report is not None else {}
        if needs(exercise, OPERATIONS) and report is not None and "flops" not in totals:
            bars = [bar for bar in bars if not names_in(bar) & set(OPERATIONS)]
        if not run.result.passed:
            return Stage("efficient", FAILED, cases=[run.result])
        doubt = too_little(exercise, report, run.minimum_bytes)
        if doubt is not None:
            return Stage("efficient", FAILED, findings=[structs.replace(doubt, case=run.case.name, dtype=run.dtype)])
        names = {
            **{name: value for name, value in run.result.dims.items() if isinstance(value, (int, float))},
            **totals,
            **compiled,
            "minimum": run.minimum_bytes,
            "flops_needed": run.operations or 0.0,
            "item": ITEM_BYTES[run.dtype],
        }
        dtype = run.dtype if len(runs) > 1 else ""
        stage.bars += [evaluate_bar(bar, names, run.case.name, dtype) for bar in bars]
        if not stage.totals:
            stage.totals = {name: float(value) for name, value in totals.items()}
            stage.lines = report.source_lines[:MOST_LINES] if report is not None else []
    stage.status = PASSED if all(bar.passed for bar in stage.bars) else FAILED
    return stage


def needs(exercise: Exercise, names: Collection[str]) -> bool:
    """Return whether a bar of the exercise uses one of ``names``."""
    return any(names_in(bar) & set(names) for bar in exercise.bars)


def names_in(bar: Bar) -> set[str]:
    """Return the names of counters and sizes that a bar's expression uses."""
    return {n.id for n in ast.walk(_parsed(bar)) if isinstance(n, ast.Name)} - set(_FUNCTIONS)


def _parsed(bar: Bar) -> ast.Expression:
    try:
        return ast.parse(bar.expression, mode="eval")
    except SyntaxError as error:
        raise GraderError(f"the bar {bar.expression!r} is not an expression: {error.msg}") from error


def evaluate_bar(bar: Bar, names: Mapping[str, float], case: str = "", dtype: str = "") -> BarResult:
    """Return the value of a bar's expression, and whether it is within the bar's limits.

    ``names`` has the value of each name. ``case`` and ``dtype`` are for the report.
    """
    tree, used = _parsed(bar), sorted(names_in(bar))
    unknown = [name for name in used if name not in names]
    if unknown:
        raise GraderError(
            f"the bar {bar.expression!r} uses {', '.join(unknown)}, which is not counted",
            f"A bar may use: {', '.join(sorted(names))}.",
        )
    try:
        value = float(eval(compile(tree, "bar", "eval"), {"__builtins__": {}, **_FUNCTIONS}, dict(names)))
    except ZeroDivisionError:
        value = math.inf
    except Exception as error:
        raise GraderError(f"the bar {bar.expression!r} has no value: {type(error).__name__}: {error}") from error
    passed = not math.isnan(value)
    if bar.at_most is not None:
        passed = passed and value <= bar.at_most * (1 + 1e-9)
    if bar.at_least is not None:
        passed = passed and value >= bar.at_least * (1 - 1e-9)
    return BarResult(
        expression=bar.expression,
        value=value,
        passed=passed,
        at_most=bar.at_most,
        at_least=bar.at_least,
        values={name: float(names[name]) for name in used},
        dtype=dtype,
        look=bar.look,
        case=case,
    )
