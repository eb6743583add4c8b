"""Stage 3, *safe*: the simulator's checks find no fault in any case. Wrong outputs do not matter in this stage."""

from __future__ import annotations

from collections.abc import Sequence

from grader.judge.cases import Run
from grader.verdict import FAILED, PASSED, Stage, merged
from grader.verdict.causes import causes_first


def judge_safe(runs: Sequence[Run]) -> Stage:
    """Return the result of the stage from the findings of all cases. Equal findings of several cases are merged."""
    findings = causes_first(merged(finding for run in runs for finding in run.result.findings))
    watched = sum(bool(run.report) for run in runs)
    return Stage("safe", FAILED if findings else PASSED, findings=findings, runs=watched)
