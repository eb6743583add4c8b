"""Plausibility of the simulator's report.

The kernel shares a process with the checks, so a report may be missing or made up. The parent knows some things for
certain, as it compared the output itself: who computed it must have launched a kernel and written global memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.course.task import Exercise
from grader.verdict import CaseResult, Finding
from grader.verdict.findings.host import CountedBytes, HostBytes

if TYPE_CHECKING:
    from grader.simulator.report import Report


def implausible(result: CaseResult, report: Report | None) -> Finding | None:
    """Why a report cannot belong to a run that passed; nothing if it can."""
    if not result.passed or not any(output.elements for output in result.outputs):
        return None
    if report is None:
        return Finding(check="report", kind="report_missing")
    if by_host := report.totals.get("host_bytes"):
        return Finding(check="report", kind="host_copies", payload=HostBytes(bytes=int(by_host)))
    if not report.totals.get("launches"):
        return Finding(check="report", kind="no_launch")
    if not report.totals.get("global_written_bytes") and not any(f.kind == "out_of_bounds" for f in report.findings):
        return Finding(check="report", kind="nothing_written")
    return None


def too_little(exercise: Exercise, report: Report | None, minimum: float) -> Finding | None:
    """Why the counts of the case of *efficient* cannot be true.

    A minimum is what a task's author took for one, so only far less than that is held against a kernel, and only where
    a bar measures against it. An output that starts with values may be touched in a few places only.
    """
    if report is None:
        return Finding(check="report", kind="report_missing")
    totals = report.totals
    if by_host := totals.get("host_bytes"):
        return Finding(check="report", kind="host_copies", payload=HostBytes(bytes=int(by_host)))
    counted = totals.get("global_bytes", 0)
    if exercise.inputs and not totals.get("global_read_bytes"):
        return Finding(check="report", kind="nothing_read")
    whole = not any(output.inout for output in exercise.outputs.values())
    if whole and counted < 0.4 * minimum and any("minimum" in bar.expression for bar in exercise.bars):
        return Finding(
            check="report", kind="too_few_bytes", payload=CountedBytes(bytes=int(counted), needed=int(minimum))
        )
    return None
