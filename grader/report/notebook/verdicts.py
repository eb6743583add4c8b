"""Functions for lessons that show the verdict of a check, or a simulator report with the kernel's source."""

from __future__ import annotations

import re
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs
from rich.console import Group, RenderableType
from rich.text import Text

from grader.course import Course, course_root
from grader.course.learner import pristine
from grader.report import operations_view, source_view, terminal
from grader.report.failures import render_findings
from grader.report.notebook.panel import WIDTH, Panel
from grader.verdict import Finding, Verdict
from grader.verdict.wording import counters
from grader.verdict.wording.findings import text

if TYPE_CHECKING:
    from grader.simulator.report import Report

SEED = 1
"""The fixed seed of lessons, so that their numbers do not change."""


class VerdictPanel(Panel):
    """The report of a check; ``verdict`` is the data behind it."""

    def __init__(self, verdict: Verdict, verbose: bool) -> None:
        self.verdict = with_relative_paths(timeless(verdict))
        super().__init__(terminal.render(self.verdict, WIDTH, verbose))

    @property
    def passed(self) -> bool:
        """Return whether the kernel passed."""
        return self.verdict.passed


def timeless(verdict: Verdict) -> Verdict:
    """Return the verdict without facts that change between runs and machines: times, and whether nvcc is installed."""
    stages = [structs.replace(stage, seconds=0.0) for stage in verdict.stages]
    for stage in stages:
        if stage.name == "builds" and stage.passed and verdict.device != "python":
            stage.summary, stage.resources = "compiles", []
    return structs.replace(verdict, stages=stages, seconds=0.0, isolation_note="")


def with_relative_paths(verdict: Verdict) -> Verdict:
    """Replace absolute paths in a verdict by relative ones, so that stored outputs name no machine's folder."""
    folders = [course_root(), Path(verdict.file).resolve().parent]

    def relative(value: Any) -> Any:
        if isinstance(value, str):
            for folder in folders:
                value = value.replace(f"{folder}/", "")
            return value
        if isinstance(value, list):
            return [relative(item) for item in value]
        if isinstance(value, dict):
            return {name: relative(item) for name, item in value.items()}
        return value

    return Verdict.from_dict(relative(verdict.to_dict()))


def verdict(
    exercise: str,
    file: str | Path | None = None,
    *,
    as_given: bool = False,
    seed: int = SEED,
    stages: Sequence[str] | None = None,
    verbose: bool = False,
) -> VerdictPanel:
    """Grade a file as ``grader check`` does, with fixed inputs, and show the report.

    ``as_given``: grade the original skeleton instead of the learner's file, so that the lesson's text about its fault
    stays true after the learner has fixed it.
    """
    from grader.judge import check

    course = Course()
    task = course.find(exercise)
    if not as_given:
        return VerdictPanel(check(task, file, seed=seed, stages=stages), verbose)
    pristine.keep_copies(course)
    given = pristine.find(course, task)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / task.skeleton.name
        copy.write_bytes(given.content if given else task.skeleton.read_bytes())
        return VerdictPanel(check(task, copy, seed=seed, stages=stages), verbose)


def show(report: Report, source: str | Path | None = None, whole: bool = False) -> Panel:
    """Show the report of a kernel's last call: findings, the most expensive lines, and the source with its counters.

    ``report``: ``kernel.report``. ``whole``: do not fold lines without counters.
    """
    file = str(source) if source is not None else source_view.main_file(report.source_lines, report.findings)
    lines = [line for line in report.source_lines if Path(line.file).name == Path(file).name]
    findings = [by_name(finding) for finding in report.findings]
    own = [finding for finding in findings if finding.file == Path(file).name]
    margin = source_view.margin_lines(lines, own)
    rows: list[RenderableType] = []
    if findings:
        rows += [*render_findings(findings, verbose=False, ascii_only=False), Text("")]
    worst = source_view.render_worst(margin, Path(file).name)
    if worst is not None:
        rows += [Text("The lines that cost most", style="title"), worst, Text("")]
    code = source_view.read_source(file) if file else None
    if code is None and margin:
        code = [margin[number].source if number in margin else "" for number in range(1, max(margin) + 1)]
    if code is not None and margin:
        rows.append(source_view.render_source(code, margin, WIDTH, whole))
    if operations_view.counted(report.totals):
        rows += [Text(""), Text("What it computes", style="title"), Text(counters.operations(report.totals))]
        rows.append(operations_view.table(lines))
    if not rows:
        rows.append(Text("No finding, and nothing was counted."))
    return Panel(Group(*rows))


def counts(report: Report) -> dict[str, float]:
    """Return the nonzero totals of a kernel's last call: sectors, bank conflicts, bytes, launches and others."""
    return {name: value for name, value in report.totals.items() if value}


def by_name(finding: Finding) -> Finding:
    """Replace the paths in a finding by file names, so that stored outputs name no machine's folder."""
    other = finding.other and structs.replace(finding.other, file=Path(finding.other.file).name)
    return structs.replace(finding, file=Path(finding.file).name, other=other)


def explain(finding: Finding) -> str:
    """Print a finding of ``kernel.report.findings``, wrapped to the width of a verdict; keep source lines."""
    lines = []
    for line in text(finding).splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        source = re.match(r" *\d* +\|", line)
        lines.append(line if source else textwrap.fill(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False))
    return "\n".join(lines)
