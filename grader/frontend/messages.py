"""Errors and warnings about a line of a kernel file, from a compiler or from the front end."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.setup.errors import BuildError

MOST_OF_A_MESSAGE = 4000
"""The maximum length of an error message in characters."""
_WIDEST = 240
"""The maximum number of characters of a source line that are shown. A longer line is cut around the column."""


@dataclass(frozen=True)
class CompilerMessage:
    """A compiler message. ``line`` and ``column`` are 1-based, 0 if unknown. ``advice`` says how to fix an error."""

    severity: str  # error, warning, note
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    source_line: str = ""
    notes: tuple[CompilerMessage, ...] = ()
    advice: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}"
            place += f":{self.column}" if self.column else ""
        text = f"{place}: {self.severity}: {self.message}" if place else f"{self.severity}: {self.message}"
        if self.source_line.strip():
            text += "\n" + _snippet(self.line, self.column, self.source_line)
        return "\n".join([text, *map(str, self.notes)])


def _snippet(line: int, column: int, source: str) -> str:
    """Return the source line with a caret below; tabs are kept so that the caret lines up."""
    number = str(line)
    if len(source) > _WIDEST:
        start = max(0, column - _WIDEST // 2)
        source, column = source[start : start + _WIDEST], max(0, column - start)
    text = f"  {number} | {source}"
    if column and column <= len(source) + 1:
        before = "".join("\t" if c == "\t" else " " for c in source[: column - 1])
        word = re.match(r"\w+", source[column - 1 :])
        underline = "^" + "~" * (len(word.group()) - 1 if word else 0)
        text += f"\n  {' ' * len(number)} | {before}{underline}"
    return text


class RewriteError(BuildError):
    """An error about a construct that the simulator does not support, with the line and column in the file."""

    def __init__(self, line: int, column: int, message: str, hint: str = "", *, source_line: str = "") -> None:
        super().__init__(_shortened(message), _shortened(hint))
        self.line = line
        self.column = column
        self.source_line = source_line
        self.diagnostics: tuple[CompilerMessage, ...] = ()


def _shortened(text: str) -> str:
    """Truncate a message, because it may quote a very long name in the submission."""
    return text if len(text) <= MOST_OF_A_MESSAGE else text[: MOST_OF_A_MESSAGE - 3] + "..."
