"""Adds the findings and counters of the simulator's report on a run to the run's result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from grader.execution.submission_sandbox.plausible_report import implausible
from grader.judge.cases import Run

if TYPE_CHECKING:
    from grader.simulator.report import Report


MOST_FINDINGS = 50
"""The maximum number of findings that a case's result contains."""

_UNWRITTEN = "output_not_written"
_WITHOUT_KERNEL = ("no_launch", "nothing_written")
"""The doubts about a report that do not apply if no kernel is needed."""


def read_report(run: Run, library: Path, source: Path) -> Report | None:
    """Parse the report of a run, and find its source lines; None if there is no report, or an invalid one."""
    if not run.report.strip():
        return None
    from grader.simulator.report import Report
    from grader.simulator.report_format import InvalidReport

    try:
        return Report.from_json(run.report, library=library, source=source)
    except InvalidReport:
        return None


def _launched_nothing(run: Run, report: Report) -> bool:
    """Return whether the launcher launched no kernel and no output was written."""
    empty = all(output.unwritten == output.elements for output in run.result.outputs)
    return empty and not report.totals.get("launches")


def attach_findings(run: Run, library: Path, source: Path) -> None:
    """Parse the report of a run, and add its findings to the run's result."""
    result = run.result
    run.simulated = report = read_report(run, library, source)
    findings = list(report.findings) if report is not None else []
    if report is not None and result.problem == "unwritten" and _launched_nothing(run, report):
        # Drop the findings about unwritten outputs: they are a consequence of the missing launch.
        result.problem, findings = "no_launch", [f for f in findings if f.kind != _UNWRITTEN]
    stopped = report is not None and result.problem in ("launch", "run")
    if stopped and any(finding.kind != _UNWRITTEN for finding in findings):
        # Here, too, unwritten outputs are a consequence.
        findings = [finding for finding in findings if finding.kind != _UNWRITTEN]
    doubt = implausible(result, report)
    if doubt is not None and not (run.needs_no_kernel and doubt.kind in _WITHOUT_KERNEL):
        findings.insert(0, doubt)
    result.findings = [
        structs.replace(finding, case=result.name, dtype=result.dtype) for finding in findings[:MOST_FINDINGS]
    ]
    if stopped and result.findings:
        result.problem = "finding"  # the simulator ended the launch because of the finding
