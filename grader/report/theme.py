"""Colors and marks of the reports. No meaning depends on a color alone."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.theme import Theme

from grader.verdict import ERROR, FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from typing import TextIO

WIDTH = 80
"""The width for which reports are laid out. On a wider terminal, they use up to MOST_WIDTH columns."""
MOST_WIDTH = 100

THEME = Theme(
    {
        "title": "bold",
        "good": "green",
        "bad": "red",
        "bad.title": "bold red",
        "warn": "yellow",
        "quiet": "dim",
        "code": "default",
        "caret": "bold red",
        "command": "cyan",
        "number": "default",
        "rule.line": "dim",
    }
)

STATUS_STYLE = {PASSED: "good", FAILED: "bad", SKIPPED: "quiet", ERROR: "warn"}
MARKS = {PASSED: "✓", FAILED: "✗", SKIPPED: "·", ERROR: "!"}
_ASCII_MARKS = {PASSED: "ok", FAILED: "x", SKIPPED: "-", ERROR: "!"}


def console(file: TextIO | None = None, width: int | None = None, **options: object) -> Console:
    """Return a console with the reports' theme, at most MOST_WIDTH wide and at least 40."""
    stream = file or sys.stdout
    if hasattr(stream, "reconfigure") and not (stream.encoding or "").lower().startswith("utf"):
        # A kernel may print any character. Print a question mark if the terminal cannot encode it.
        stream.reconfigure(errors="replace")
    made = Console(file=stream, theme=THEME, highlight=False, width=width, force_jupyter=False, **options)  # type: ignore[arg-type]
    if width is None:
        made.width = _within_limits(made.width if made.is_terminal else WIDTH)
    return made


def plain_text(renderable: RenderableType, width: int = WIDTH) -> str:
    """Return a report as plain text: without colors, and without blanks at the ends of lines."""
    buffer = io.StringIO()
    console(buffer, width=width, color_system=None).print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def table(expand: bool = False) -> Table:
    """Return an empty table without lines, as all reports draw them."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet", expand=expand)


def follow_terminal(console: Console) -> None:
    """Set a console's width to the current width of its terminal."""
    if console.is_terminal:
        console.width = _within_limits(Console(file=console.file).width)


def _within_limits(width: int) -> int:
    return max(40, min(width, MOST_WIDTH))


def mark(status: str, ascii_only: bool = False) -> str:
    """Return the mark of a stage or a case."""
    return (_ASCII_MARKS if ascii_only else MARKS).get(status, "?")
