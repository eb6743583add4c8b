"""A verdict in the terminal, laid out for 80 columns: the stages, the failures, the first clue, the next commands."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from grader.report import failures, operations_view, source_view, theme, timings
from grader.report.failures import indented, paragraph
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, Verdict, words
from grader.verdict.wording import counters, limits, stages

NextStep = tuple[str, str]
"""A command that the reader can run next, and its effect."""


def print_verdict(
    verdict: Verdict, console: Console | None = None, verbose: bool = False, next_steps: Sequence[NextStep] = ()
) -> None:
    """Print the report of a verdict. ``next_steps``: useful next commands."""
    console = console or theme.console()
    console.print(render(verdict, console.width, verbose, next_steps, ascii_only(console)), crop=False)


def as_text(
    verdict: Verdict, width: int = theme.WIDTH, verbose: bool = False, next_steps: Sequence[NextStep] = ()
) -> str:
    """Return the report as plain text, without colors."""
    return theme.plain_text(render(verdict, width, verbose, next_steps), width) + "\n"


def ascii_only(console: Console) -> bool:
    """Return whether the terminal cannot show the marks and rules."""
    return not (console.encoding or "").lower().startswith("utf")


def render(
    verdict: Verdict,
    width: int = theme.WIDTH,
    verbose: bool = False,
    next_steps: Sequence[NextStep] = (),
    ascii_only: bool = False,
) -> RenderableType:
    """Return the whole report."""
    parts: list[RenderableType] = [Text(""), *header(verdict, width), Text(""), stage_table(verdict, ascii_only)]
    for stage in verdict.stages:
        details = stage_details(verdict, stage, width, verbose, ascii_only)
        if details:
            title = stages.title(stage)
            rule = Rule(
                Text(title, style="bad.title" if stage.status == FAILED else "title"),
                align="left",
                style="rule.line",
                characters="-" if ascii_only else "─",
            )
            parts += [Text(""), indented(rule, expand=True), *details]
    parts += [Text(""), *closing(verdict, next_steps, width), Text("")]
    return Group(*parts)


def header(verdict: Verdict, width: int) -> list[RenderableType]:
    """Return the head of the report: title, exercise, file, device and seed."""
    left, right = verdict.title, verdict.exercise
    gap = width - 2 - len(left) - len(right)
    between = " " * gap if gap >= 2 else "\n  "
    rows: list[RenderableType] = [Text.assemble("  ", (left, "title"), between, (right, "quiet"))]
    facts = [words.file(verdict.file), words.DEVICES.get(verdict.device, verdict.device)]
    if verdict.device == "cuda" and verdict.versions.get("gpu"):
        facts[1] = verdict.versions["gpu"]
    if verdict.seed:
        facts.append(f"seed {verdict.seed}")
    rows.append(_joined_to_width(facts, width))
    return rows


def _joined_to_width(facts: Sequence[str], width: int) -> RenderableType:
    """Return facts in one line, or in two lines if one is too long."""
    line = "  " + ", ".join(facts)
    if len(line) <= width:
        return Text(line, style="quiet")
    return Group(Text("  " + facts[0], style="quiet"), Text("  " + ", ".join(facts[1:]), style="quiet"))


def stage_table(verdict: Verdict, ascii_only: bool) -> RenderableType:
    """Return a table with one line for each stage."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=2 if ascii_only else 1, no_wrap=True)
    table.add_column(width=9, no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True, style="quiet")
    for stage in verdict.stages:
        style = theme.STATUS_STYLE.get(stage.status, "")
        table.add_row(
            Text(theme.mark(stage.status, ascii_only), style=style),
            Text(stages.title(stage), style="quiet" if stage.status == SKIPPED else "title"),
            Text(stages.summary(stage), style="" if stage.status in (PASSED, FAILED) else style),
            words.duration(stage.seconds) if stage.status != SKIPPED and stage.seconds >= 0.05 else "",
        )
    return indented(table, expand=True)


def stage_details(verdict: Verdict, stage: Stage, width: int, verbose: bool, ascii_only: bool) -> list[RenderableType]:
    """Return the details of one stage, which follow the table. A passed stage has none, or warnings."""
    rows: list[RenderableType] = []
    failed = stage.status not in (PASSED, SKIPPED)
    if stage.diagnostics:  # a stage that has passed may have warnings
        rows += failures.render_diagnostics(stage.diagnostics, ascii_only)
    if failed and stages.failing_cases(stage):
        safe = verdict.stage("safe")
        rows += failures.render_cases(stage, verbose, ascii_only, findings_follow=bool(safe and safe.findings))
    rows += failures.render_first_printed(stage, stages.failing_cases(stage)[: None if verbose else 1])
    if failed and stage.findings:
        rows += failures.render_findings(stage.findings, verbose, ascii_only)
    if stage.bars and (failed or verbose):
        rows += failures.render_bars(stage.bars, ascii_only)
    if failed and stage.message and not rows:
        rows.append(paragraph(stage.message))
    if stage.lines and (failed or verbose):
        rows += counters_view(verdict, stage, width, verbose, ascii_only)
    if stage.bound is not None and verbose:
        rows += [Text(""), Text("  What limits it", style="title"), paragraph(limits.text(stage.bound))]
    if stage.resources and verbose:
        rows += resources_view(stage)
    if (failed or verbose) and stage.note:
        rows += [Text(""), paragraph(stage.note, style="quiet")] if rows else [paragraph(stage.note)]
    if stage.timings:
        rows += [indented(row) for row in timings.render_timings(stage.timings, stage.time_bars, verbose)]
    return rows


def counters_view(verdict: Verdict, stage: Stage, width: int, verbose: bool, ascii_only: bool) -> list[RenderableType]:
    """Return the lines with the most avoidable traffic; if ``verbose``, also the source with its counters."""
    safe = verdict.stage("safe")
    findings = safe.findings if safe else []
    file = source_view.main_file(stage.lines, findings)
    margin = source_view.margin_lines(stage.lines, findings, file)
    rows: list[RenderableType] = []
    top = source_view.render_worst(margin, file.rsplit("/", 1)[-1], stage.bars)
    if top is not None:
        rows += [Text(""), Text("  The lines that cost most", style="title"), top]
    source = source_view.read_source(verdict.file)
    if verbose and source:
        rows += [Text(""), source_view.render_source(source, margin, width, ascii_only=ascii_only)]
    if verbose and operations_view.counted(stage.totals):
        rows += [Text(""), Text("  What it computes", style="title"), paragraph(counters.operations(stage.totals))]
        lines = [line for line in stage.lines if line.file == file]
        rows.append(indented(operations_view.table(lines), expand=True))
    return rows


def resources_view(stage: Stage) -> list[RenderableType]:
    """Return registers, spills, shared memory and occupancy of each kernel, as nvcc reports them."""
    table = theme.table()
    for column, justify in (
        ("kernel", "left"),
        (f"registers ({stage.resources[0].architecture})", "right"),
        ("spills", "right"),
        ("stack", "right"),
        ("shared", "right"),
        ("occupancy", "right"),
        ("on", "left"),
    ):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for item in stage.resources:
        occupancy = "" if item.occupancy is None else f"{100 * item.occupancy:.0f} %"
        full = item.occupancy is None or item.occupancy == 1
        limit = "" if full or not item.limited_by else f" (limited by {item.limited_by})"
        table.add_row(
            item.kernel,
            str(item.registers),
            Text(words.amount(item.spill_bytes), style="bad" if item.spill_bytes else ""),
            Text(words.amount(item.stack_bytes), style="bad" if item.stack_bytes else ""),
            words.amount(item.static_shared_bytes + item.dynamic_shared_bytes),
            occupancy + limit,
            item.gpu or item.architecture,
        )
    return [indented(table)]


def closing(verdict: Verdict, next_steps: Sequence[NextStep], width: int) -> list[RenderableType]:
    """Return the end of the report: the result, the place to look at first, and the next commands."""
    rows: list[RenderableType] = []
    if verdict.passed:
        last = Text.assemble(("  Passed", "good"))
        last.append(f"  {verdict.score:g} of {verdict.points} points")
    elif verdict.exit_code == 2:
        last = Text.assemble(("  Not graded", "warn"))
        stage = verdict.failed_stage
        last.append(f"  {stages.summary(stage)}" if stage else "  the grader could not grade this file")
    else:
        last = Text.assemble(("  Not passed yet", "bad"))
        if verdict.score > 0:
            last = Text.assemble((f"  Partly: {verdict.score:g} of {verdict.points} points", "warn"))
        stage = verdict.failed_stage
        last.append(f"  stops at {stages.title(stage)}" if stage else "")
    if verdict.seconds >= 0.05:
        last.append(f"  ({words.duration(verdict.seconds)})", style="quiet")
    rows.append(last)
    look = stages.first_look(verdict)
    if look:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="title")
        table.add_column(overflow="fold")
        table.add_row("Start here:", look)
        rows.append(indented(table))
    if next_steps:
        rows.append(Text(""))
        rows.append(step_table(next_steps, width))
    if verdict.isolation_note and verdict.exit_code != 2:
        rows += [Text(""), paragraph(verdict.isolation_note, style="quiet")]
    return rows


def step_table(next_steps: Sequence[NextStep], width: int) -> RenderableType:
    """Return commands and their effects, side by side if they fit, else below each other.

    Commands are never truncated.
    """
    longest = max(len(command) for command, _ in next_steps)
    if longest + 5 + max(len(meaning) for _, meaning in next_steps) <= width:
        table = Table.grid(padding=(0, 3, 0, 0))
        table.add_column(no_wrap=True, style="command")
        table.add_column(style="quiet")
        for command, meaning in next_steps:
            table.add_row(command, meaning)
        return indented(table)
    rows: list[RenderableType] = []
    for command, meaning in next_steps:
        rows.append(Text(f"  {command}", style="command", no_wrap=True, overflow="ignore"))
        rows.append(Text(f"      {meaning}", style="quiet"))
    return Group(*rows)
