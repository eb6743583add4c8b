"""Stage 3, *safe*: the simulator's checks find no fault in any case. Wrong outputs do not matter in this stage."""

from __future__ import annotations

from collections.abc import Sequence

from grader.judge.cases import Run
from grader.verdict import FAILED, PASSED, Stage, merged
from grader.verdict.causes import causes_first


def judge_safe(runs: Sequence[Run], repeated: Sequence[Run] = ()) -> Stage:
    """Return the result of the stage from the findings of all cases. Equal findings of several cases are merged.

    ``repeated`` are second runs of some cases, with the blocks and warps in reverse order.
    """
    findings = causes_first(merged(finding for run in (*runs, *repeated) for finding in run.result.findings))
    stage = Stage("safe", FAILED if findings else PASSED, findings=findings)
    stage.runs = sum(bool(run.report) for run in runs)
    forward = {finding.identity for run in runs for finding in run.result.findings}
    if only := sum(finding.identity not in forward for finding in findings):
        occurs = "finding occurs" if only == 1 else "findings occur"
        stage.note = f"{only} {occurs} only if blocks and warps run in reverse order."
    return stage
