"""Stage 2, *correct*: every case gives what the reference gives."""

from __future__ import annotations

from collections.abc import Sequence

from grader.judge.cases import Run, indent
from grader.verdict import FAILED, PASSED, SKIPPED, CaseResult, Stage

SHOWN = 3
"""Failed cases that the text shows in full."""


def judge_correct(runs: Sequence[Run]) -> Stage:
    """The stage from the results of its cases."""
    stage = Stage("correct", cases=[run.result for run in runs])
    failed = [case for case in stage.cases if case.status == FAILED]
    skipped = [case for case in stage.cases if case.status == SKIPPED]
    passed = len(stage.cases) - len(failed) - len(skipped)
    if not failed and not skipped:
        stage.status = PASSED
        stage.summary = f"{passed} of {len(stage.cases)} cases"
        return stage
    stage.status = FAILED
    stage.summary = f"{len(failed)} of {len(stage.cases)} cases fail"
    if skipped:
        stage.summary += f", {len(skipped)} not run"
    parts = [f"{heading(case)}\n{indent(case.text)}" for case in failed[:SHOWN]]
    rest = failed[SHOWN:]
    if rest:
        parts.append("Also failing: " + ", ".join(f"{case.name} ({case.dtype})" for case in rest))
    if passed:
        good = [case for case in stage.cases if case.status == PASSED]
        names = ", ".join(dict.fromkeys(case.name for case in good))
        parts.append(f"Passing: {names}")
    stage.text = "\n".join(parts)
    return stage


def heading(case: CaseResult) -> str:
    """``not a multiple of the block (f32: rows 3, columns 129)``."""
    sizes = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in case.dims.items()
    )
    return f"{case.name} ({case.dtype}: {sizes})" if sizes else f"{case.name} ({case.dtype})"
