"""Stage 4, *efficient*: limits on what the simulator counted, so that performance is graded without a GPU.

A bar is an expression over these names. All are numbers of one call of the launcher in the exercise's ``efficient`` case:

    minimum                the bytes that any kernel must move (every input once, every output once, or the task's own)
    flops_needed           the operations of the task's formula, 0 where it has none
    item                   bytes of one element of the case's dtype
    sizes of the case      by their own names
    and every entry of the simulator's totals (see grader/simulator/report.py), such as global_bytes, sectors, ideal,
    requests, bank_conflict_ways, launches, scratch_bytes, shared_bytes, atomics, barriers, blocks

with ``+ - * / // % ** < > ==``, ``min``, ``max`` and parentheses. Where a case has several dtypes each must meet the bars.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from grader.course.task import ITEM_BYTES, Bar, Exercise
from grader.errors import GraderError
from grader.judge.cases import Run
from grader.judge.plausible import too_little
from grader.verdict import FAILED, PASSED, BarResult, Stage

_FUNCTIONS = {"min": min, "max": max, "abs": abs}


def judge_efficient(exercise: Exercise, runs: Sequence[Run]) -> Stage:
    """The stage from the counted runs."""
    stage = Stage("efficient")
    for run in runs:
        report = run.simulated
        if report is None or not run.result.passed:
            stage.status = FAILED
            stage.summary = f"the case {run.case.name!r} ({run.dtype}) fails"
            stage.text = run.result.text or "The simulator gave no counts."
            return stage
        doubt = too_little(exercise, report.totals, run.minimum_bytes)
        if doubt is not None:
            stage.status, stage.summary = FAILED, "counts that cannot be true"
            stage.findings = [structs.replace(doubt, case=run.case.name, dtype=run.dtype)]
            return stage
        names = {
            **{name: value for name, value in run.result.dims.items() if isinstance(value, (int, float))},
            **report.totals,
            "minimum": run.minimum_bytes,
            "flops_needed": run.operations or 0.0,
            "item": ITEM_BYTES[run.dtype],
        }
        stage.bars += [evaluate_bar(bar, names, run.dtype if len(runs) > 1 else "") for bar in exercise.bars]
        if not stage.totals:
            stage.totals = {name: float(value) for name, value in report.totals.items()}
            stage.lines = report.source_lines
    missed = [bar for bar in stage.bars if not bar.passed]
    stage.status = FAILED if missed else PASSED
    if not missed:
        stage.summary = f"{len(stage.bars)} bar{'s' if len(stage.bars) != 1 else ''} met"
        return stage
    stage.summary = f"{len(missed)} of {len(stage.bars)} bars missed"
    sizes = ", ".join(f"{name} {value}" for name, value in runs[0].result.dims.items())
    stage.text = "\n".join([f"Counted in the case {runs[0].case.name!r} ({sizes}):", *(bar.text for bar in missed)])
    return stage


def evaluate_bar(bar: Bar, names: Mapping[str, Any], dtype: str = "") -> BarResult:
    """The value of a bar's expression, and whether it is within the limits."""
    try:
        tree = ast.parse(bar.expression, mode="eval")
    except SyntaxError as error:
        raise GraderError(f"the bar {bar.expression!r} is no expression: {error.msg}") from error
    used = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - set(_FUNCTIONS))
    unknown = [name for name in used if name not in names]
    if unknown:
        raise GraderError(
            f"the bar {bar.expression!r} uses {', '.join(unknown)}, which is not counted",
            f"Known: {', '.join(sorted(names))}.",
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
    result = BarResult(
        expression=bar.expression,
        value=value,
        passed=passed,
        at_most=bar.at_most,
        at_least=bar.at_least,
        values={name: float(names[name]) for name in used},
        dtype=dtype,
        look=bar.look,
    )
    result.text = explain(result, dtype)
    return result


def explain(bar: BarResult, dtype: str = "") -> str:
    """``global_bytes / minimum = 3.2, at most 1.2 is allowed (global_bytes 419430, minimum 131072)``."""
    limits = []
    if bar.at_most is not None:
        limits.append(f"at most {bar.at_most:g}")
    if bar.at_least is not None:
        limits.append(f"at least {bar.at_least:g}")
    text = f"{bar.expression} = {bar.value:.4g}" + (f" in {dtype}" if dtype else "")
    text += (
        f", {' and '.join(limits)} {'is met' if bar.passed else 'is allowed' if bar.at_least is None else 'is wanted'}"
    )
    if len(bar.values) > 1 or bar.expression not in bar.values:
        text += f" ({', '.join(f'{name} {value:,.10g}' for name, value in bar.values.items())})"
    if not bar.passed and bar.look:
        text += f"\n  look at: {bar.look}"
    return text
