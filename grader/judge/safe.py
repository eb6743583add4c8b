"""Stage 3, *safe*: the simulator saw no fault in any case, whether or not the outputs were right."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from grader.judge.cases import Run
from grader.verdict import FAILED, PASSED, Finding, Stage

SHOWN = 4
"""Findings that the text shows in full."""


def judge_safe(runs: Sequence[Run]) -> Stage:
    """The stage from the findings of all cases; the same finding in several cases is one."""
    stage = Stage("safe", findings=merge(finding for run in runs for finding in run.result.findings))
    if not stage.findings:
        stage.status = PASSED
        stage.summary = f"no finding in {sum(bool(run.report) for run in runs)} runs"
        return stage
    stage.status = FAILED
    checks = list(dict.fromkeys(finding.check for finding in stage.findings))
    stage.summary = f"{len(stage.findings)} finding{'s' if len(stage.findings) > 1 else ''}: {', '.join(checks)}"
    parts = [
        f"{finding.text or finding.message}\n  in case {finding.case} ({finding.dtype})"
        for finding in stage.findings[:SHOWN]
    ]
    if len(stage.findings) > SHOWN:
        parts.append(f"... and {len(stage.findings) - SHOWN} more")
    stage.text = "\n".join(parts)
    return stage


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each place and kind, with the number of times it was seen."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        other = finding.other or {}
        key: tuple[object, ...] = (finding.check, finding.kind, finding.file, finding.line, other.get("line"))
        if finding.line == 0:
            key = (*key, finding.message)
        if key in merged:
            merged[key].count += finding.count
        else:
            merged[key] = copy.copy(finding)
    return list(merged.values())
