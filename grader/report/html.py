"""A verdict as one self-contained HTML page.

It loads no fonts and nothing from the network; only the player has a script, in a frame.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.report import failures, operations_view, source_view, theme
from grader.setup.files import write_file
from grader.verdict import Diagnostic, Side, Verdict, words
from grader.verdict.record import clean
from grader.verdict.wording import bars, cases, counters, outputs, stages
from grader.verdict.wording import findings as finding_words

if TYPE_CHECKING:
    import jinja2


def save_html(verdict: Verdict, path: str | Path, player: dict[str, str] | None = None) -> None:
    """Write the page. ``player``: its title ``what`` and its HTML ``frame``; None for a page without player."""
    write_file(path, html_page(verdict, player))


def html_page(verdict: Verdict, player: dict[str, str] | None = None) -> str:
    """Return the page as text."""
    return template("verdict.html.j2").render(_shown(verdict, source_view.read_source(verdict.file), player))


def report(verdict: Verdict, source: Sequence[str]) -> str:
    """Return the page's part about the verdict, for a page with several verdicts.

    ``source``: the lines of the graded file.
    """
    page = template("verdict.html.j2")
    return "".join(page.blocks["report"](page.new_context(_shown(verdict, source))))


def style() -> str:
    """Return the style sheet of the page."""
    page = template("verdict.html.j2")
    return "".join(page.blocks["style"](page.new_context({})))


def content_security_policy(text: str) -> str:
    """Return a Content-Security-Policy that allows this style sheet and nothing else."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a Jinja template of this folder. It escapes all values except ``Markup``."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters["worst"] = outputs.worst
    environment.globals.update(
        words=words,
        finding_words=finding_words,
        marks=theme.MARKS,
        stages=stages,
        cases=cases,
        outputs=outputs,
        bars=bars,
        worst_bars=failures.worst_bars,
        caret=caret,
    )
    return environment.get_template(name)


def _printable(value: object) -> object:
    """Remove control and bidirectional characters from a text, because a kernel file may contain them."""
    if isinstance(value, str) and not value.isprintable():
        return type(value)(clean(value, len(value)))
    return value


def _shown(verdict: Verdict, source: Sequence[str] | None, player: dict[str, str] | None = None) -> dict[str, Any]:
    rows = source_rows(verdict, source)
    every_bar = [bar for stage in verdict.stages for bar in stage.bars]
    return {
        "verdict": verdict,
        "look": stages.first_look(verdict),
        "source": rows,
        "columns": counted_columns(rows, ("sectors", "waste", "waves", "ways")),
        "meanings": counters.LEGEND,
        "worst": source_view.worst(_margin(verdict), every_bar),
        "operations": operation_rows(verdict),
        "player": player,
    }


def caret(where: Side | Diagnostic) -> str:
    """Return a source line with a caret below it."""
    shown = where.source_line.expandtabs(4).rstrip()
    return f"{shown}\n{' ' * source_view.caret_offset(where.source_line, where.column)}^"


def _margin(verdict: Verdict) -> dict[int, source_view.MarginLine]:
    lines = [line for stage in verdict.stages for line in stage.lines]
    findings = [finding for stage in verdict.stages for finding in stage.findings]
    return source_view.margin_lines(lines, findings, source_view.main_file(lines, findings))


def operation_rows(verdict: Verdict) -> dict[str, Any]:
    """Return the counted floating-point operations: a sentence with the totals, and rows. Empty if not counted."""
    stage = next((stage for stage in verdict.stages if operations_view.counted(stage.totals)), None)
    if stage is None:
        return {}
    rows = operations_view.rows(stage.lines)
    return {
        "sentence": counters.operations(stage.totals),
        "rows": rows,
        "columns": counted_columns(rows, ("operations", "special", "lanes")),
    }


def counted_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the columns in which some row has a counter."""
    return [name for name in names if any(row[name] for row in rows)]


def source_rows(verdict: Verdict, source: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return a row for each source line, with its counters and findings; empty if there are no counters or findings."""
    margin = _margin(verdict)
    if not margin or source is None:
        return []
    rows = []
    for number, text in enumerate(source, 1):
        line = margin.get(number)
        rows.append(
            {
                "number": number,
                "text": text.expandtabs(4),
                "sectors": words.short(line.sectors) if line and line.sectors else "",
                "waste": f"{line.sector_ratio:.1f}x" if line and line.sectors else "",
                "waves": words.short(line.wavefronts) if line and line.wavefronts else "",
                "ways": f"{line.ways:.1f}x" if line and line.wavefronts else "",
                "bad": bool(line and (line.sector_ratio >= 2 or line.ways >= 2)),
                "carets": [
                    {"offset": source_view.caret_offset(text, column), "message": message}
                    for column, message in (line.carets if line else ())
                ],
            }
        )
    return rows
