"""Failures in the terminal: a compiler's message, a wrong output, a finding, a missed bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.report import theme
from grader.report.source_view import caret_offset
from grader.report.theme import mark
from grader.verdict import BarResult, CaseResult, Diagnostic, Finding, OutputResult, Side, Stage, WorstElement, words
from grader.verdict.wording import bars, cases, outputs, stages
from grader.verdict.wording import findings as finding_words

MOST_MESSAGES = 4
MOST_CASES_LISTED = 10
MOST_FINDINGS = 3


def indented(renderable: RenderableType, columns: int = 2, expand: bool = False) -> RenderableType:
    """Indent a renderable, including its wrapped lines. ``expand``: fill the width of the page."""
    return Padding(renderable, (0, 0, 0, columns), expand=expand)


def paragraph(text: str, style: str = "", indent: int = 2) -> RenderableType:
    """Return wrapped text. Each line keeps its indentation, as in tables or compiler output."""
    lines = [
        indented(Text(line.strip(), style=style), indent + len(line) - len(line.lstrip()))
        for line in text.strip("\n").splitlines()
    ]
    return Group(*lines)


def excerpt(line: int, source: str, column: int, ascii_only: bool, indent: int = 4) -> RenderableType:
    """Return a source line with a caret under a column (from 1).

    Column 0 is unknown: the caret is under the first word.
    """
    return indented(_Excerpt(line, source, column, ascii_only), indent)


@dataclass(frozen=True)
class _Excerpt:
    """A source line with its caret, shortened to the page so that the caret's surroundings stay visible."""

    line: int
    source: str
    column: int
    ascii_only: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, offset = self.source.expandtabs(4).rstrip(), caret_offset(self.source, self.column)
        bar, more = ("|", "...") if self.ascii_only else ("│", "…")
        room = options.max_width - 8
        # Remove long indentation from the source line and from the caret's line.
        cut = max(0, len(shown) - len(shown.lstrip()) - 4)
        lead = ""
        # A caret may be one column past the end, where a `;` is missing.
        width = max(len(shown), offset + 1)
        if offset - cut >= room - len(more) and width - cut > room:
            lead = more
            cut = min(offset - room // 2, width - room) + len(more)
        text = lead + shown[cut:]
        if len(text) > room:
            text = text[: room - len(more)] + more
        for number, content, style in (
            (f"{self.line}", text, "code"),
            ("", " " * (offset - cut + len(lead)) + "^", "caret"),
        ):
            row = Text(no_wrap=True, overflow="crop")
            row.append(f"{number:>5} {bar} ", style="quiet")
            yield row.append(content, style=style)


# --- builds ---


def render_diagnostics(diagnostics: Sequence[Diagnostic], ascii_only: bool) -> list[RenderableType]:
    """Return the compiler's first errors with their source lines; if there are no errors, its other messages."""
    errors = [item for item in diagnostics if item.severity in ("error", "fatal error", "fatal")]
    rest = [item for item in diagnostics if item not in errors]
    rows: list[RenderableType] = []
    for item in (errors or rest)[:MOST_MESSAGES]:
        place = ":".join(str(part) for part in (words.file(item.file), item.line, item.column) if part)
        if rows:
            rows.append(Text(""))
        rows.append(paragraph(item.message, style="bad" if item in errors else "warn"))
        if place:
            rows.append(Text("    " + place, style="quiet", no_wrap=True, overflow="fold"))
        if item.source_line.strip():
            rows.append(excerpt(item.line, item.source_line, item.column, ascii_only))
        if item.advice:
            rows.append(paragraph(item.advice))
    hidden = len(errors or rest) - MOST_MESSAGES
    if hidden > 0:
        cause = ": the first one often causes the others" if errors else ""
        rows.append(Text(f"  and {words.count(hidden, 'more message')}{cause}", "quiet"))
    return rows


# --- correct ---


def render_cases(stage: Stage, verbose: bool, ascii_only: bool, findings_follow: bool = False) -> list[RenderableType]:
    """Return the first failing case in full and the other ones by name. If ``verbose``, return all in full.

    ``findings_follow``: leave the simulator's findings out of the cases, because the report shows them further below.
    """
    failing = stages.failing_cases(stage)[: 1 if stages.nothing_launched(stage) else None]
    rows: list[RenderableType] = []
    for case in failing if verbose else failing[:1]:
        if rows:
            rows.append(Text(""))
        rows.extend(render_case(case, ascii_only, findings_follow))
    others = [] if verbose else failing[1:]
    if others and (told := stages.better_diagnosed_case(failing)):
        case, diagnosis = told
        looks = Text(f"the case '{case.name}' looks like: ", style="warn")
        rows += [Text(""), indented(looks.append(outputs.looks(diagnosis), style="title"), 4)]
    if others:
        rows.append(Text(""))
        rows.append(Text("  Also failing", style="title"))
        groups = alike(others)
        for dtypes, case in groups[:MOST_CASES_LISTED]:
            row = Text("  ", no_wrap=True, overflow="ellipsis")
            row.append(mark(case.status, ascii_only) + " ", style="bad")
            row.append(f"{case.name} ({', '.join(dtypes)})" if case.dtype else case.name)
            row.append("  " + cases.in_short(case), style="quiet")
            rows.append(row)
        if len(groups) > MOST_CASES_LISTED:
            hidden = sum(len(dtypes) for dtypes, _ in groups[MOST_CASES_LISTED:])
            rows.append(Text(f"    and {hidden} more", style="quiet"))
    return rows


def alike(every: Sequence[CaseResult]) -> list[tuple[list[str], CaseResult]]:
    """Group cases of equal name that fail in the same way. Return each group's dtypes and first case."""
    groups: dict[tuple[str, str], tuple[list[str], CaseResult]] = {}
    for case in every:
        groups.setdefault((case.name, cases.in_short(case)), ([], case))[0].append(case.dtype)
    return list(groups.values())


def render_case(case: CaseResult, ascii_only: bool, findings_follow: bool = False) -> list[RenderableType]:
    """Return a failing case: its sizes, its errors, the worst positions."""
    head = Text("  ")
    head.append(mark(case.status, ascii_only), style="bad")
    head.append(f" {case.name}", style="title")
    head.append(f" ({case.dtype})" if case.dtype else "")
    rows: list[RenderableType] = [head]
    if case.dims:
        rows.append(paragraph(words.sizes(case.dims), style="quiet", indent=4))
    if reason := cases.reason(case):
        rows.append(Text(""))
        rows.append(paragraph(reason, indent=4))
    for output in [output for output in case.outputs if not output.passed and case.problem != "no_launch"]:
        rows.append(Text(""))
        rows.extend(render_output(output))
    shown_below = bool(case.findings) and findings_follow
    if shown_below:
        ended = " and stopped the launch" if case.problem == "finding" else ""
        rows.append(Text(""))
        rows.append(paragraph(f"The simulator found a fault in this case{ended}: see Safe, below.", "warn", indent=4))
    for finding in [] if findings_follow else case.findings[:1]:
        rows += [Text(""), paragraph(cases.before_findings(case), indent=4)]
        rows.append(indented(Group(*render_finding(finding, ascii_only))))
    if case.printed.strip():
        rows += [Text(""), *render_printed(case.printed, "The kernel printed" if case.dtype else "It printed")]
    return rows


def render_printed(printed: str, title: str) -> list[RenderableType]:
    """Return the first lines that a kernel printed."""
    lines = printed.rstrip().splitlines()
    rows: list[RenderableType] = [Text(f"    {title}", style="title")]
    rows.append(paragraph("\n".join(lines[:8]), style="quiet", indent=6))
    if len(lines) > 8:
        rows.append(Text(f"      ({words.count(len(lines) - 8, 'more line')})", style="quiet"))
    return rows


def render_first_printed(stage: Stage, shown: Sequence[CaseResult]) -> list[RenderableType]:
    """Return the first case's ``printf`` output, unless a case in ``shown`` (already in the report) printed."""
    printing = [case for case in [*stages.failing_cases(stage), *stage.cases] if case.printed.strip()]
    if not printing or any(case in shown for case in printing):
        return []
    case = printing[0]
    title = f"In '{case.name}', it printed"
    if case.dtype:
        title = f"In the case '{case.name}' ({case.dtype}), the kernel printed"
    return [Text(""), *render_printed(case.printed, title)]


def render_output(output: OutputResult) -> list[RenderableType]:
    """Describe a wrong output: its difference from the reference, its diagnosis, and the worst positions."""
    rows: list[RenderableType] = [
        indented(Text.assemble((outputs.name(output), "title"), f": {outputs.how_wrong(output)}"), 4)
    ]
    if error := outputs.largest_error(output):
        rows.append(paragraph(error, style="quiet", indent=4))
    if output.diagnosis:
        looks = Text("looks like: ", style="warn")
        rows.append(indented(looks.append(outputs.looks(output.diagnosis), style="title"), 4))
    if output.worst:
        rows.append(Text(""))
        rows.append(indented(worst_table(output.worst), 4))
    return rows


def worst_table(elements: Sequence[WorstElement]) -> Table:
    """Return a table of the worst positions. It names the threads that wrote them, if the simulator recorded these."""
    written = any(item.block is not None or item.unwritten for item in elements)
    table = theme.table()
    table.add_column("worst at", no_wrap=True)
    for title in ("expected", "got", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    if written:
        table.add_column("by block", no_wrap=True, style="quiet")
        table.add_column("thread", no_wrap=True, style="quiet")
    for item in elements:
        place, expected, actual, error, block, thread = outputs.worst(item)
        table.add_row(place, expected, Text(actual, style="bad"), error, *([block, thread] if written else []))
    return table


# --- safe ---


def render_findings(findings: Sequence[Finding], verbose: bool, ascii_only: bool) -> list[RenderableType]:
    """Return the first findings in full and the number of the rest; if ``verbose``, return all."""
    rows: list[RenderableType] = []
    shown = findings if verbose else findings[:MOST_FINDINGS]
    for finding, advised in zip(shown, finding_words.advice_is_new(findings)):
        if rows:
            rows.append(Text(""))
        rows.extend(render_finding(finding, ascii_only, advised))
    if len(findings) > len(shown):
        rows.append(Text(f"  and {words.count(len(findings) - len(shown), 'more finding')}", style="quiet"))
    return rows


def render_finding(finding: Finding, ascii_only: bool, advised: bool = True) -> list[RenderableType]:
    """Return a finding: its message, the source with a caret, the thread, and the other side of a race.

    ``advised``: add why it matters and how to fix it.
    """
    head = Table.grid(padding=(0, 1, 0, 0))
    head.add_column(no_wrap=True)
    head.add_column(overflow="fold")
    message = finding_words.message(finding)
    head.add_row(
        Text(mark("failed", ascii_only), style="bad"), Text.assemble((finding.check, "bad.title"), "  ", message)
    )
    rows: list[RenderableType] = [indented(head), *_side(finding, message, ascii_only)]
    if finding.other and (finding.other.line or finding.other.source_line):
        rows.append(indented(Text(finding_words.other_side(finding)), 4))
        rows += _side(finding.other, message, ascii_only)
    if finding.hides:
        rows.append(paragraph(finding_words.HIDES, style="quiet", indent=4))
    if advised and (advice := finding_words.advice(finding)):
        rows.append(paragraph(advice, indent=4))
    tail = []
    if finding.count > 1:
        tail.append(f"{finding.count:,} times")
    if finding.case:
        tail.append(f"first in the case '{finding.case}'" + (f" ({finding.dtype})" if finding.dtype else ""))
    if tail:
        rows.append(paragraph(", ".join(tail), style="quiet", indent=4))
    return rows


def _side(side: Side, message: str, ascii_only: bool) -> list[RenderableType]:
    """Return the source line of a finding's side. Add its file, line, block and thread unless ``message`` has them."""
    rows: list[RenderableType] = []
    if side.source_line.strip():
        rows.append(excerpt(side.line, side.source_line, side.column, ascii_only))
    parts = []
    if side.file and f"{side.file.rsplit('/', 1)[-1]}:{side.line}" not in message:
        parts.append(f"{words.file(side.file)}:{side.line}" if side.line else words.file(side.file))
    if (side.block is not None or side.thread is not None) and "thread (" not in message:
        parts.append(words.place(side.block, side.thread))
    if parts:
        rows.append(paragraph(", ".join(parts), style="quiet", indent=4))
    return rows


# --- efficient ---


def render_bars(every: Sequence[BarResult], ascii_only: bool) -> list[RenderableType]:
    """Return a table of bars with value and limit, missed bars first. Below, return the counters of missed bars."""
    rows: list[RenderableType] = []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="quiet")
    strictest = worst_bars(every)
    for bar in strictest:
        table.add_row(
            Text(mark("passed" if bar.passed else "failed", ascii_only), style="good" if bar.passed else "bad"),
            bar.expression + (f" ({bar.dtype})" if bar.dtype and not bar.passed else ""),
            Text(bars.value(bar), style="" if bar.passed else "bad"),
            bars.limit(bar),
        )
    rows.append(indented(table))
    for bar in strictest:
        if not bar.passed and bar.values:
            said = bars.counters(bar) + (f"; unit: {bars.unit(bar)}" if bars.unit(bar) else "")
            rows.append(paragraph(said, style="quiet", indent=5))
    return rows


def worst_bars(every: Sequence[BarResult]) -> list[BarResult]:
    """Return each bar once, with its worst result of all dtypes. Missed bars come first."""
    worst: dict[tuple[str, float | None, float | None], BarResult] = {}
    for bar in every:
        key = (bar.expression, bar.at_most, bar.at_least)
        known = worst.get(key)
        further = known is None or (bar.value > known.value if bar.at_most is not None else bar.value < known.value)
        if known is None or (known.passed and not bar.passed) or (known.passed == bar.passed and further):
            worst[key] = bar
    return sorted(worst.values(), key=lambda bar: bar.passed)
