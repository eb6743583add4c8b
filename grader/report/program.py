"""The report on a whole program: its findings, its kernels' traffic, and the source with its counters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from grader.execution.programs.execute import Outcome
from grader.execution.programs.results import ending
from grader.report import failures, source_view
from grader.report.failures import indented, paragraph
from grader.report.terminal import ascii_only
from grader.report.timings import by_name
from grader.simulator.line_counters import KernelCounters
from grader.verdict import Finding, SourceLine, words

HEAD = ("kernel", "launches", "grid", "block", "read", "written", "sectors", "ways")


def print_program(outcome: Outcome, console: Console, verbose: bool) -> None:
    """Print the report of a program that has ended."""
    report = outcome.report
    findings = report.findings if report else []
    plain = ascii_only(console)
    rows: list[RenderableType] = []
    if findings:
        rows += [Text(""), *failures.render_findings(findings, verbose, plain)]
    if verbose and report:
        rows += _sources(findings, report.source_lines, console.width, plain)
        if report.kernels:
            rows += [Text(""), indented(_table(report.kernels, console.width - 2))]
    rows += [Text(""), paragraph(ending(outcome), style="bad" if findings else "")]
    for row in rows:
        console.print(row, crop=False)


def _sources(findings: Sequence[Finding], lines: Sequence[SourceLine], width: int, plain: bool) -> list[RenderableType]:
    """Return the source of each file that has counters, with the counters in the margin."""
    rows: list[RenderableType] = []
    for file in dict.fromkeys(line.file for line in lines):
        source = source_view.read_source(file)
        if source is None:
            continue
        margin = source_view.margin_lines(lines, findings, file)
        rows += [Text(""), Text(f"  {Path(file).name}", style="title")]
        rows.append(source_view.render_source(source, margin, width, ascii_only=plain))
    return rows


def _table(kernels: Sequence[KernelCounters], width: int) -> RenderableType:
    """Return a row for each kernel.

    The traffic is given as the bytes that warps read and wrote, the sectors transferred with their ratio to the
    minimum, and the bank conflict ways.
    """
    rows = []
    for kernel in kernels:
        totals = kernel.totals
        sectors, ideal = totals.get("sectors", 0), totals.get("ideal_sectors", 0)
        ways = totals.get("bank_conflict_ways", 0)
        rows.append(
            [
                kernel.name,
                f"{kernel.launches:,}",
                words.triple(kernel.grid),
                words.triple(kernel.block),
                words.amount(totals.get("global_read_bytes", 0)),
                words.amount(totals.get("global_written_bytes", 0)),
                f"{sectors:,.0f} ({sectors / ideal:.1f}x)" if ideal else "",
                f"{ways:.1f}" if ways else "",
            ]
        )
    return by_name(HEAD, rows, left=1, width=width)
