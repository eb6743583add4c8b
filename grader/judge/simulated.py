"""From the simulator's report on a run to the findings and counters of the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.building.build import BuiltKernel
from grader.judge.cases import Run, indent
from grader.judge.plausible import finding, implausible
from grader.verdict import Finding, SourceLine

if TYPE_CHECKING:
    from grader.simulator.findings import SimulatorFinding
    from grader.simulator.report import Report


def read_report(run: Run, kernel: BuiltKernel, source: Path) -> Report | None:
    """The report of a run with its places in the source; None when the child gave none, or one that it made up."""
    if not run.report.strip():
        return None
    from grader.simulator.report import Report
    from grader.simulator.report_format import MadeUp

    try:
        return Report.from_json(run.report, library=kernel.library, source=source)
    except MadeUp:
        return None


def attach_findings(run: Run, kernel: BuiltKernel, source: Path) -> None:
    """Put the findings of a run into its result; a run that failed says what the simulator saw."""
    result = run.result
    run.simulated = report = read_report(run, kernel, source)
    reason = "" if run.leaves_all else implausible(result, report)
    if reason:
        result.findings = [finding(reason, run.case.name, run.dtype)]
    if report is None:
        return
    result.findings += [_finding(found, run) for found in report.findings]
    if not result.findings or result.passed:
        return
    seen = "\n".join(finding.text or finding.message for finding in result.findings[:2])
    more = len(result.findings) - 2
    if more > 0:
        seen += f"\n... and {more} more"
    if result.problem == "launch":  # the finding ended the launch: it is the reason, the error code only its echo
        result.problem = "finding"
        result.text = f"The launch was stopped by a fault:\n{indent(seen)}"
    else:
        result.text += f"\nThe simulator saw:\n{indent(seen)}"


def lines_of(report: Report) -> list[SourceLine]:
    """The counters of the source lines, in the order of the file."""
    lines = []
    for line in report.lines:
        counters = {name: float(value) for name, value in line.counters.items()}
        lines.append(SourceLine(line.file, line.line, line.source, counters))
    return sorted(lines, key=lambda line: (line.file, line.line))


def _finding(found: SimulatorFinding, run: Run) -> Finding:
    return Finding(
        check=found.check,
        kind=found.kind,
        message=found.message,
        case=run.case.name,
        dtype=run.dtype,
        file=found.file,
        line=found.line,
        column=found.column,
        source_line=found.source_line,
        block=list(found.block) if found.block is not None else None,
        thread=list(found.thread) if found.thread is not None else None,
        count=found.count,
        text=found.text,
        advice=found.advice,
        other=found.other,
    )
