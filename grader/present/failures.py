"""What a learner reads about each kind of failure: a compiler's message, a wrong output, a finding, a missed bar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.present.source_view import caret_offset
from grader.present.theme import mark
from grader.verdict import BarResult, CaseResult, Diagnostic, Finding, OutputResult, Side, Stage, Verdict, WorstElement
from grader.wording import findings as told
from grader.wording import words

MOST_CASES_LISTED = 10
MOST_FINDINGS = 3


def indented(renderable: RenderableType, columns: int = 2, expand: bool = False) -> RenderableType:
    """Moved to the right; lines that wrap stay there. ``expand``: as wide as the page."""
    return Padding(renderable, (0, 0, 0, columns), expand=expand)


def paragraph(text: str, style: str = "", indent: int = 2) -> RenderableType:
    """Wrapped text. Lines that the text itself begins with spaces keep them (tables, compiler output)."""
    lines = [
        indented(Text(line.strip(), style=style), indent + len(line) - len(line.lstrip()))
        for line in text.strip("\n").splitlines()
    ]
    return Group(*lines)


def excerpt(line: int, source: str, column: int, ascii_only: bool, indent: int = 4) -> RenderableType:
    """One source line with a caret under the column (from 1; 0 is unknown: under the first word)."""
    bar = "|" if ascii_only else "│"
    shown = source.expandtabs(4).rstrip()
    offset = caret_offset(source, column)
    # Long indentation says nothing here: both rows lose it together.
    lead = len(shown) - len(shown.lstrip())
    cut = max(0, lead - 4)
    first = Text(no_wrap=True, overflow="ellipsis")
    first.append(f"{line:>5} {bar} ", style="quiet")
    first.append(shown[cut:], style="code")
    second = Text(no_wrap=True, overflow="ellipsis")
    second.append(f"{'':>5} {bar} ", style="quiet")
    second.append(" " * max(0, offset - cut))
    second.append("^", style="caret")
    return indented(Group(first, second), indent)


# --- builds ---


def render_diagnostics(diagnostics: Sequence[Diagnostic], ascii_only: bool, most: int = 4) -> list[RenderableType]:
    """The compiler's messages at the learner's lines: errors first, notes with what they belong to."""
    errors = [item for item in diagnostics if item.severity in ("error", "fatal error", "fatal")]
    rest = [item for item in diagnostics if item not in errors]
    rows: list[RenderableType] = []
    for item in (errors or rest)[:most]:
        place = ":".join(str(part) for part in (words.file(item.file), item.line, item.column) if part)
        if rows:
            rows.append(Text(""))
        rows.append(paragraph(item.message, style="bad" if item in errors else "warn"))
        if place:
            rows.append(Text("    " + place, style="quiet", no_wrap=True, overflow="fold"))
        if item.source_line.strip():
            rows.append(excerpt(item.line, item.source_line, item.column, ascii_only))
    hidden = len(errors or rest) - most
    if hidden > 0:
        rows.append(
            Text(f"  and {words.count(hidden, 'more message')}: the first one often causes the others", "quiet")
        )
    return rows


# --- correct ---


def failing_cases(stage: Stage) -> list[CaseResult]:
    """The cases that did not pass, in the task's order (simple sizes come first there)."""
    return [case for case in stage.cases if case.status in ("failed", "error")]


def render_cases(stage: Stage, verbose: bool, ascii_only: bool, findings_follow: bool = False) -> list[RenderableType]:
    """The first failing case in full and the others by name; all of them in full when ``verbose``.

    ``findings_follow``: the simulator's findings are shown later in the report, so a case does not repeat its own.
    """
    failing = failing_cases(stage)
    rows: list[RenderableType] = []
    for case in failing if verbose else failing[:1]:
        if rows:
            rows.append(Text(""))
        rows.extend(render_case(case, ascii_only, findings_follow))
    others = [] if verbose else failing[1:]
    if others:
        rows.append(Text(""))
        rows.append(Text("  Also failing", style="title"))
        groups = alike(others)
        for dtypes, case in groups[:MOST_CASES_LISTED]:
            row = Text("  ", no_wrap=True, overflow="ellipsis")
            row.append(mark(case.status, ascii_only) + " ", style="bad")
            row.append(f"{case.name} ({', '.join(dtypes)})")
            row.append("  " + one_line(case), style="quiet")
            rows.append(row)
        if len(groups) > MOST_CASES_LISTED:
            hidden = sum(len(dtypes) for dtypes, _ in groups[MOST_CASES_LISTED:])
            rows.append(Text(f"    and {hidden} more", style="quiet"))
    return rows


def alike(cases: Sequence[CaseResult]) -> list[tuple[list[str], CaseResult]]:
    """Cases of one name that fail in the same way, as one: their dtypes and the first of them."""
    groups: dict[tuple[str, str], tuple[list[str], CaseResult]] = {}
    for case in cases:
        groups.setdefault((case.name, one_line(case)), ([], case))[0].append(case.dtype)
    return list(groups.values())


def one_line(case: CaseResult) -> str:
    """Why a case failed, in a few words."""
    for output in case.outputs:
        if not output.passed:
            if output.unwritten and output.unwritten == output.wrong:
                return f"{output.unwritten:,} of {output.elements:,} never written"
            if output.wrong:
                return f"{output.wrong:,} of {output.elements:,} wrong"
            return "all errors together too large"
    if case.findings:
        return told.title(case.findings[0])
    return words_of_problem(case.problem) or next(iter(case.text.strip().splitlines()), "")


def words_of_problem(problem: str) -> str:
    """The short names of problems, in words."""
    return {
        "crash": "the kernel's process crashed",
        "timeout": "took too long",
        "exit": "the kernel's process ended itself",
        "reply": "the kernel's process gave an answer that was made up",
        "guard": "wrote outside its tensors",
        "launch": "the launch failed",
        "finding": "a finding of the simulator",
        "oom": "out of memory",
    }.get(problem, "")


def render_case(case: CaseResult, ascii_only: bool, findings_follow: bool = False) -> list[RenderableType]:
    """One failing case: its sizes, what is wrong, the worst positions."""
    head = Text("  ")
    head.append(mark(case.status, ascii_only), style="bad")
    head.append(f" {case.name}", style="title")
    head.append(f" ({case.dtype})")
    rows: list[RenderableType] = [head]
    if case.dims:
        rows.append(paragraph(words.sizes(case.dims), style="quiet", indent=4))
    wrong = [output for output in case.outputs if not output.passed]
    for output in wrong:
        rows.append(Text(""))
        rows.extend(render_output(output))
    told_below = bool(case.findings) and findings_follow
    if not wrong and case.text and not (told_below and case.problem == "finding"):
        rows.append(Text(""))
        rows.append(paragraph(case.text, indent=4))
    if not wrong and not case.text and case.problem:
        rows.append(paragraph(words_of_problem(case.problem), indent=4))
    if told_below:
        ended = " and stopped the launch" if case.problem == "finding" else ""
        rows.append(Text(""))
        rows.append(paragraph(f"The simulator saw a fault in this case{ended}: see Safe, below.", "warn", indent=4))
    for finding in [] if findings_follow else case.findings[:1]:
        rows.append(Text(""))
        rows.append(indented(Group(*render_finding(finding, ascii_only))))
    if case.printed.strip():
        rows.append(Text(""))
        rows.append(Text("    The kernel printed", style="title"))
        lines = case.printed.rstrip().splitlines()
        rows.append(paragraph("\n".join(lines[:8]), style="quiet", indent=6))
        if len(lines) > 8:
            rows.append(Text(f"      ({len(lines) - 8} more lines)", style="quiet"))
    return rows


def render_output(output: OutputResult) -> list[RenderableType]:
    """How far one output is from the reference, what that looks like, and the worst positions."""
    shape = words.position(output.shape)
    said = Text()
    said.append(f"{output.name}{shape}", style="title")
    if output.unwritten and output.unwritten == output.wrong:
        said.append(f": {output.unwritten:,} of {words.count(output.elements, 'element')} never written")
    elif output.wrong:
        share = 100 * output.wrong / max(1, output.elements)
        said.append(f": {output.wrong:,} of {words.count(output.elements, 'element')} wrong ({share:.3g} %)")
        if output.unwritten:
            said.append(f", {output.unwritten:,} of them never written")
    else:
        said.append(
            f": every element is near, but all errors together are {output.norm_error:.2g} of the reference's norm; "
            f"{output.norm_tolerance:.2g} is allowed"
        )
    rows: list[RenderableType] = [indented(said, 4)]
    if output.wrong > output.unwritten and output.tolerance and math.isfinite(output.max_error):
        rows.append(
            paragraph(
                f"the largest error, {words.error(output.max_error)}, is {words.times(output.max_ratio)} what is "
                f"allowed at its place (tolerance {output.tolerance:.2g})",
                style="quiet",
                indent=4,
            )
        )
    if output.diagnosis:
        looks = Text("looks like: ", style="warn")
        looks.append(output.diagnosis, style="title")
        rows.append(indented(looks, 4))
    if output.worst:
        rows.append(Text(""))
        rows.append(indented(worst_table(output.worst), 4))
    return rows


def worst_table(elements: Sequence[WorstElement]) -> Table:
    """The worst positions; who wrote them, where the simulator knows."""
    written = any(item.block is not None or item.unwritten for item in elements)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet", expand=False)
    table.add_column("worst at", no_wrap=True)
    for title in ("expected", "got", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    if written:
        table.add_column("by block", no_wrap=True, style="quiet")
        table.add_column("thread", no_wrap=True, style="quiet")
    for item in elements:
        row: list[RenderableType] = [
            words.position(item.index),
            words.value(item.expected),
            Text("-" if item.unwritten else words.value(item.actual), style="bad"),
            Text("-" if item.unwritten else words.error(item.error)),
        ]
        if written:
            row += ["nobody" if item.unwritten else words.triple(item.block), words.triple(item.thread)]
        table.add_row(*row)
    return table


# --- safe ---


def render_findings(findings: Sequence[Finding], verbose: bool, ascii_only: bool) -> list[RenderableType]:
    """Findings in full, the first few unless ``verbose``."""
    rows: list[RenderableType] = []
    shown = findings if verbose else findings[:MOST_FINDINGS]
    for finding in shown:
        if rows:
            rows.append(Text(""))
        rows.extend(render_finding(finding, ascii_only))
    if len(findings) > len(shown):
        rows.append(Text(f"  and {words.count(len(findings) - len(shown), 'more finding')}", style="quiet"))
    return rows


def render_finding(finding: Finding, ascii_only: bool) -> list[RenderableType]:
    """One finding: what, where in the source with a caret, which thread, and for a race the other side."""
    head = Table.grid(padding=(0, 1, 0, 0))
    head.add_column(no_wrap=True)
    head.add_column(overflow="fold")
    message = told.message(finding)
    head.add_row(
        Text(mark("failed", ascii_only), style="bad"), Text.assemble((finding.check, "bad.title"), "  ", message)
    )
    rows: list[RenderableType] = [indented(head), *_side(finding, message, ascii_only)]
    if finding.other and (finding.other.line or finding.other.source_line):
        rows.append(indented(Text(told.other_side(finding)), 4))
        rows += _side(finding.other, message, ascii_only)
    if advice := told.advice(finding):
        rows.append(paragraph(advice, indent=4))
    tail = []
    if finding.count > 1:
        tail.append(f"{finding.count:,} times")
    if finding.case:
        tail.append(f"first in the case '{finding.case}'" + (f" ({finding.dtype})" if finding.dtype else ""))
    if tail:
        rows.append(Text("    " + ", ".join(tail), style="quiet"))
    return rows


def _side(side: Side, message: str, ascii_only: bool) -> list[RenderableType]:
    """The source line; file, line, block and thread, less what the message says already."""
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


def render_bars(bars: Sequence[BarResult], ascii_only: bool) -> list[RenderableType]:
    """Each bar with its limit and its value, missed ones first with the counters behind them."""
    rows: list[RenderableType] = []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="quiet")
    strictest = worst_bars(bars)
    for bar in strictest:
        limit = f"at most {bar.at_most:g}" if bar.at_most is not None else f"at least {bar.at_least or 0:g}"
        table.add_row(
            Text(mark("passed" if bar.passed else "failed", ascii_only), style="good" if bar.passed else "bad"),
            bar.expression + (f" ({bar.dtype})" if bar.dtype and not bar.passed else ""),
            Text(f"{bar.value:.4g}", style="" if bar.passed else "bad"),
            limit,
        )
    rows.append(indented(table))
    for bar in strictest:
        if not bar.passed and bar.values:
            counters = ", ".join(f"{name} {_whole(item)}" for name, item in bar.values.items())
            rows.append(paragraph(counters, style="quiet", indent=5))
    return rows


def worst_bars(bars: Sequence[BarResult]) -> list[BarResult]:
    """Of bars that are judged for several dtypes the one that comes out worst; missed ones first."""
    worst: dict[tuple[str, float | None, float | None], BarResult] = {}
    for bar in bars:
        key = (bar.expression, bar.at_most, bar.at_least)
        known = worst.get(key)
        further = known is None or (bar.value > known.value if bar.at_most is not None else bar.value < known.value)
        if known is None or (known.passed and not bar.passed) or (known.passed == bar.passed and further):
            worst[key] = bar
    return sorted(worst.values(), key=lambda bar: bar.passed)


def _whole(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.6g}"


def first_look(verdict: Verdict) -> str:
    """One sentence: where to start. Empty when the report above has said it all."""
    stage = verdict.failed_stage
    if stage is None:
        return ""
    for bar in stage.bars:
        if not bar.passed and bar.look:
            return bar.look
    # A fault that the simulator saw comes before wrong numbers: it is usually their cause.
    for finding in [finding for every in verdict.stages for finding in every.findings]:
        if finding.line:
            return f"{finding.file.rsplit('/', 1)[-1]}:{finding.line}, where {_with_article(finding)} shows"
    errors = [item for item in stage.diagnostics if item.severity.startswith(("error", "fatal")) and item.line]
    if len(errors) > 1:
        return f"the first error, line {errors[0].line}; later ones often follow from it"
    failing = failing_cases(stage)
    if failing:
        return _look_at_case(stage, failing)
    return ""


def _with_article(finding: Finding) -> str:
    return {
        "memcheck": "the wrong address",
        "initcheck": "the value that was never written",
        "racecheck": "the race",
        "synccheck": "the barrier",
    }.get(finding.check, "the fault")


def _look_at_case(stage: Stage, failing: Sequence[CaseResult]) -> str:
    """What the pattern of failing and passing cases says."""
    names = {case.name for case in failing}
    passing = {case.name for case in stage.cases if case.passed}
    dtypes_failing = {case.dtype for case in failing}
    dtypes_passing = {case.dtype for case in stage.cases if case.passed}
    if names <= passing and dtypes_failing.isdisjoint(dtypes_passing) and len(dtypes_passing) > 0:
        return f"what the kernel does only for {words.listed(sorted(dtypes_failing))}: the other dtypes pass"
    if not passing:
        return f"the simplest case, '{failing[0].name}': no case passes yet"
    if len(names) == 1:
        return f"what is special about '{failing[0].name}': every other case passes"
    neighbour = _passing_neighbour(stage, failing[0])
    if neighbour:
        return f"what '{failing[0].name}' has that '{neighbour}' (which passes) has not"
    return f"the simplest case that fails, '{failing[0].name}'"


def _passing_neighbour(stage: Stage, failing: CaseResult) -> str:
    """The passing case that stands nearest to a failing one in the task, where simple cases come first.

    Cases with an empty tensor say nothing: a kernel that does nothing passes them.
    """
    at = stage.cases.index(failing)
    every = [
        (abs(number - at), case.name)
        for number, case in enumerate(stage.cases)
        if case.passed and case.dtype == failing.dtype and not _is_empty(case)
    ]
    return min(every)[1] if every else ""


def _is_empty(case: CaseResult) -> bool:
    return any(size == 0 for size in case.dims.values() if not isinstance(size, bool))
