"""Stage 2, *correct*: every case matches the reference."""

from __future__ import annotations

from collections.abc import Sequence

from grader.judge.cases import Run
from grader.verdict import FAILED, PASSED, Stage


def judge_correct(runs: Sequence[Run]) -> Stage:
    """Return the result of the stage from those of its cases."""
    cases = [run.result for run in runs]
    return Stage("correct", PASSED if all(case.passed for case in cases) else FAILED, cases=cases)
