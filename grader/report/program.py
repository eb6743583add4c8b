"""The report on a whole program: its findings, its kernels' traffic, and the source with its counters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from grader.report import failures, source_view
from grader.report.failures import indented, paragraph
from grader.report.terminal import ascii_only
from grader.verdict import Finding, SourceLine

KernelRow = tuple[str, str, str, str, str, str, str, str]
HEAD: KernelRow = ("kernel", "launches", "grid", "block", "read", "written", "sectors", "ways")


def print_program(
    findings: Sequence[Finding],
    kernels: Sequence[KernelRow],
    lines: Sequence[SourceLine],
    ending: str,
    console: Console,
    verbose: bool,
) -> None:
    """Print the report.

    ``kernels``: a row for each kernel (see ``HEAD``); ``ending``: a sentence on how the program ended.
    """
    plain = ascii_only(console)
    rows: list[RenderableType] = []
    if findings:
        rows += [Text(""), *failures.render_findings(findings, verbose, plain)]
    if verbose:
        rows += _sources(findings, lines, console.width, plain)
        if kernels:
            rows += [Text(""), indented(_table(kernels))]
    rows += [Text(""), paragraph(ending, style="bad" if findings else "")]
    for row in rows:
        console.print(row, crop=False)


def _sources(findings: Sequence[Finding], lines: Sequence[SourceLine], width: int, plain: bool) -> list[RenderableType]:
    """Return the source of each file that has counters, with the counters in the margin."""
    rows: list[RenderableType] = []
    for file in dict.fromkeys(line.file for line in lines):
        source = source_view.read_source(file)
        if source is None:
            continue
        margin = source_view.margin_lines(
            [line for line in lines if line.file == file], [finding for finding in findings if finding.file == file]
        )
        rows += [Text(""), Text(f"  {Path(file).name}", style="title")]
        rows.append(source_view.render_source(source, margin, width, ascii_only=plain))
    return rows


def _table(kernels: Sequence[KernelRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    for name in HEAD:
        table.add_column(name, justify="left" if name == "kernel" else "right", overflow="fold")
    for row in kernels:
        table.add_row(*row)
    return table
