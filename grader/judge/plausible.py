"""Whether what the simulator reported can be true.

The kernel shares a process with the checks, so a report may be missing or made up. The parent knows some things for
certain, as it compared the output itself: who computed it must have launched a kernel and written global memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.course.task import Exercise
from grader.verdict import CaseResult, Finding

if TYPE_CHECKING:
    from grader.simulator.report import Report


def implausible(result: CaseResult, report: Report | None) -> str:
    """Why a report cannot belong to a run that passed; nothing if it can."""
    if not result.passed or not any(output.elements for output in result.outputs):
        return ""
    if report is None:
        return "the simulator's report is missing or cannot be read, though the kernel returned"
    totals = report.totals
    if not totals.get("launches"):
        return "the output is right, but no kernel was launched: it was computed by code on the host"
    if not totals.get("global_written_bytes"):
        return "the output is right, but no kernel wrote to global memory"
    return ""


def too_little(exercise: Exercise, totals: dict[str, float], minimum: float) -> str:
    """Why the counts of the case of *efficient* cannot be true.

    A minimum is what a task's author took for one, so only far less than that is held against a kernel, and only where
    a bar measures against it. An output that starts with values may be touched in a few places only.
    """
    counted = totals.get("global_bytes", 0)
    if exercise.inputs and not totals.get("global_read_bytes"):
        return "no kernel read global memory, but the result depends on inputs that are there"
    whole = not any(output.inout for output in exercise.outputs.values())
    if whole and counted < 0.4 * minimum and any("minimum" in bar.expression for bar in exercise.bars):
        return f"{counted:.0f} bytes of global memory were counted, but the result needs at least {minimum:.0f}"
    return ""


def finding(reason: str, case: str, dtype: str) -> Finding:
    """As the stage *safe* shows it."""
    return Finding(check="report", kind="implausible", message=reason, case=case, dtype=dtype, text=reason)
