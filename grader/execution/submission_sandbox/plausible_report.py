"""Tests whether the simulator's report can be true.

The kernel runs in the same process as the simulator, so it may have suppressed or forged the report. But the grader has
compared the output in another process. If the output is right, a kernel must have been launched and must have written
global memory; a report without that is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.course.task import Exercise
from grader.verdict import CaseResult, Finding
from grader.verdict.findings.host import CountedBytes, HostBytes

if TYPE_CHECKING:
    from grader.simulator.report import Report


def implausible(result: CaseResult, report: Report | None) -> Finding | None:
    """Return a finding if the outputs are right, but the report contradicts that."""
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
    """Return a finding if the memory traffic that the stage *efficient* counted is too low to be true.

    ``minimum`` is the number of bytes that a kernel must move, estimated by the task's author. Since it is an estimate,
    only a count below 40% of it is a finding, and only if the exercise's bars use the minimum. A kernel may change only
    a few elements of an in-out output, so exercises with such an output have no minimum.
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
