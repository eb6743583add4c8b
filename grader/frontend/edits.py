"""The edits that translate a CUDA file, and the map of positions from the translated text to the original."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """A replacement of the characters ``start`` to ``end`` of the original text.

    ``new_start`` is the position of the new text in the translated file.
    """

    start: int
    end: int
    text: str
    new_start: int = 0


@dataclass(frozen=True)
class Rewritten:
    """A translated file: the C++ text, the original text, and the edits, which map positions between the two."""

    text: str
    original: str
    edits: tuple[Edit, ...] = ()

    def original_position(self, position: int) -> int:
        """Return the position in the original text for a position in the C++ text."""
        before = bisect.bisect_right(self.edits, position, key=lambda edit: edit.new_start) - 1
        if before < 0:
            return position
        edit = self.edits[before]
        end = edit.new_start + len(edit.text)
        return edit.start if position < end else position + edit.end - end

    def line(self, number: int) -> str:
        """Return a line of the C++ text; empty if there is no such line."""
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def original_column(self, line: int, column: int) -> int:
        """Return the column in the original line for a column in the same line of the C++ text."""
        if not 1 <= line <= len(self._lines):
            return column
        position = self.original_position(self._line_starts[line - 1] + column - 1)
        starts = self._original_line_starts
        if bisect.bisect_right(starts, position) != line:
            return 1
        return position - starts[line - 1] + 1

    @functools.cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        return _starts(self._lines)

    @functools.cached_property
    def _original_line_starts(self) -> list[int]:
        return _starts(self.original.split("\n"))


def _starts(lines: Sequence[str]) -> list[int]:
    """Return the position of the first character of each line."""
    return [0, *itertools.accumulate(len(line) + 1 for line in lines[:-1])]


def apply(text: str, edits: Iterable[Edit]) -> Rewritten:
    """Return the text with all edits made. Edits at one position are made in their order."""
    out: list[str] = []
    placed: list[Edit] = []
    position = length = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        kept = text[position : edit.start]
        length += len(kept)
        placed.append(Edit(edit.start, edit.end, edit.text, length))
        out += [kept, edit.text]
        length += len(edit.text)
        position = edit.end
    out.append(text[position:])
    return Rewritten("".join(out), text, tuple(placed))
