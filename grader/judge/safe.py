"""Stage 3, *safe*: the simulator saw no fault in any case, whether or not the outputs were right."""

from __future__ import annotations

from collections.abc import Sequence

from grader.judge.cases import Run
from grader.verdict import FAILED, PASSED, Stage, merged
from grader.wording.findings import text

SHOWN = 4
"""Findings that the text shows in full."""


def judge_safe(runs: Sequence[Run]) -> Stage:
    """The stage from the findings of all cases; the same finding in several cases is one."""
    stage = Stage("safe", findings=merged(finding for run in runs for finding in run.result.findings))
    if not stage.findings:
        stage.status = PASSED
        stage.summary = f"no finding in {sum(bool(run.report) for run in runs)} runs"
        return stage
    stage.status = FAILED
    checks = list(dict.fromkeys(finding.check for finding in stage.findings))
    stage.summary = f"{len(stage.findings)} finding{'s' if len(stage.findings) > 1 else ''}: {', '.join(checks)}"
    parts = [f"{text(finding)}\n  in case {finding.case} ({finding.dtype})" for finding in stage.findings[:SHOWN]]
    if len(stage.findings) > SHOWN:
        parts.append(f"... and {len(stage.findings) - SHOWN} more")
    stage.text = "\n".join(parts)
    return stage
