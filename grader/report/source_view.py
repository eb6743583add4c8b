"""A kernel's source with its counters in the margin, as in a profiler.

The most expensive lines come first, with their problems; then the source. Lines far from any line with counters are
folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from grader.verdict import BarResult, Finding, SourceLine, words
from grader.verdict.wording import counters
from grader.verdict.wording.findings import message

CONTEXT = 2
"""The number of lines shown before and after a line with counters or a finding."""
READABLE = 30
"""If fewer characters of a finding's message fit right of its caret, they stand on the side that has more room."""
PAIR = 13
"""The width of a margin column in characters: a counter and its ratio to the minimum."""


@dataclass
class MarginLine:
    """The counters and findings of one source line."""

    line: int
    source: str = ""
    sectors: float = 0.0
    """The 32-byte sectors of global memory that the warps' requests accessed."""
    ideal_sectors: float = 0.0
    wavefronts: float = 0.0
    """The wavefronts of shared memory."""
    ideal_wavefronts: float = 0.0
    carets: list[tuple[int, str]] = field(default_factory=list)
    """The column (from 1; 0 unknown) and message of each finding on this line."""

    @property
    def sector_ratio(self) -> float:
        """Sectors moved per needed sector; 1 if no sector is needed."""
        return self.sectors / self.ideal_sectors if self.ideal_sectors else 1.0

    @property
    def ways(self) -> float:
        """Wavefronts per needed wavefront, the ways of the bank conflict; 1 if no wavefront is needed."""
        return self.wavefronts / self.ideal_wavefronts if self.ideal_wavefronts else 1.0

    @property
    def waste(self) -> str:
        """Return a sentence about the line's avoidable traffic."""
        return counters.waste(self.sector_ratio, self.ways)

    @property
    def excess_bytes(self) -> float:
        """The avoidable traffic in bytes: 32 per sector, 128 per wavefront."""
        return 32 * max(0.0, self.sectors - self.ideal_sectors) + 128 * max(
            0.0, self.wavefronts - self.ideal_wavefronts
        )

    @property
    def counted(self) -> bool:
        """Return whether the line has counters."""
        return bool(self.sectors or self.wavefronts)


def margin_lines(
    lines: Iterable[SourceLine], findings: Sequence[Finding] = (), file: str | None = None
) -> dict[int, MarginLine]:
    """Return the counters and findings in ``file`` by line number. Without ``file``, all must be from one file."""
    margin: dict[int, MarginLine] = {}
    for line in (line for line in lines if file in (None, line.file)):
        counted = line.counters
        entry = margin.setdefault(line.line, MarginLine(line.line, line.source))
        entry.sectors += counted.get("sectors", 0)
        entry.ideal_sectors += counted.get("ideal_sectors", 0)
        entry.wavefronts += counted.get("shared_wavefronts", 0)
        entry.ideal_wavefronts += counted.get("ideal_shared_wavefronts", 0)
    for finding in findings:
        if finding.line and file in (None, finding.file):
            entry = margin.setdefault(finding.line, MarginLine(finding.line, finding.source_line))
            entry.carets.append((finding.column, message(finding)))
    return margin


def main_file(lines: Sequence[SourceLine], findings: Sequence[Finding] = ()) -> str:
    """Return the file with the most lines that have counters or findings. It is the kernel's file, not a header."""
    weight: dict[str, int] = {}
    for file in [*(line.file for line in lines), *(finding.file for finding in findings)]:
        weight[file] = weight.get(file, 0) + 1
    return max(weight, key=lambda name: weight[name]) if weight else ""


def worst(margin: dict[int, MarginLine], bars: Iterable[BarResult] = ()) -> list[MarginLine]:
    """Return the three lines with the most avoidable traffic. Lines whose traffic missed a bar come first."""
    missed = {counter for bar in bars if not bar.passed for counter in bar.values}
    sectors, shared = "sectors" in missed, not missed.isdisjoint(("bank_conflict_ways", "shared_wavefronts"))

    def rank(line: MarginLine) -> tuple[bool, float, int]:
        blamed = (sectors and line.sector_ratio > 1) or (shared and line.ways > 1)
        return not blamed, -line.excess_bytes, line.line

    return sorted((line for line in margin.values() if line.excess_bytes > 0), key=rank)[:3]


def render_worst(margin: dict[int, MarginLine], file: str, bars: Iterable[BarResult] = ()) -> RenderableType | None:
    """Return the lines with the most avoidable traffic and a sentence about each; None if there are none."""
    lines = worst(margin, bars)
    if not lines:
        return None
    rows = []
    for line in lines:
        rows.append(Text.assemble(("  ", ""), (f"{file}:{line.line}", "title"), ("  " + line.waste, "")))
        if line.source.strip():
            rows.append(Text("      " + line.source.strip(), style="code", no_wrap=True, overflow="ellipsis"))
    return Group(*rows)


def render_source(
    source: Sequence[str],
    margin: dict[int, MarginLine],
    width: int = 80,
    whole: bool = False,
    ascii_only: bool = False,
) -> RenderableType:
    """Return the source with its margin. ``whole``: do not fold lines that are far from any counter."""
    return _Drawing(source, margin, width, ascii_only).draw(_shown_lines(len(source), margin, whole))


class _Drawing:
    """The layout of a source with counters: it determines the columns of the margin and the indentation."""

    def __init__(self, source: Sequence[str], margin: dict[int, MarginLine], width: int, ascii_only: bool) -> None:
        self.source, self.margin = source, margin
        self.sectors = any(line.sectors for line in margin.values())
        self.shared = any(line.wavefronts for line in margin.values())
        self.bar, self.ellipsis = ("|", "...") if ascii_only else ("│", "…")
        self.margin_width = PAIR * (self.sectors + self.shared)
        self.room = room = width - self.margin_width - len(" 1234 | ")
        # Kernels are deeply nested. If a line with counters would not fit, halve the indentation of all lines.
        self.halved = any(
            len(source[number - 1].expandtabs(4).rstrip()) > room for number in margin if number <= len(source)
        )

    def draw(self, shown: Sequence[int]) -> RenderableType:
        """Return the lines with the numbers in ``shown``, their carets, and a mark where lines are folded."""
        rows: list[RenderableType] = self._head()
        previous = 0
        for number in shown:
            if number > previous + 1:
                rows.append(self._fold())
            previous = number
            line = self.margin.get(number)
            rows.append(self._line(number, line))
            rows += [self._caret(number, column, message) for column, message in (line.carets if line else ())]
        if previous < len(self.source):
            rows.append(self._fold())
        return Group(*rows)

    def _head(self) -> list[RenderableType]:
        if not self.margin_width:
            return []
        above = f"{'global':>{PAIR}}" * self.sectors + f"{'shared':>{PAIR}}" * self.shared
        below = f"{'sectors':>7}{'waste':>6}" * self.sectors + f"{'waves':>7}{'ways':>6}" * self.shared
        return [Text(above, style="quiet"), Text(f"{below} {'line':>4} {self.bar}", style="quiet")]

    def _fold(self) -> Text:
        return Text(" " * self.margin_width + f" {'...':>4} {self.bar}", style="quiet")

    def _line(self, number: int, line: MarginLine | None) -> Text:
        row = Text(no_wrap=True, overflow="ellipsis")
        empty = Text(" " * PAIR)
        if self.sectors:
            row.append_text(_pair(line.sectors, line.sector_ratio) if line and line.sectors else empty)
        if self.shared:
            row.append_text(_pair(line.wavefronts, line.ways) if line and line.wavefronts else empty)
        row.append(f" {number:>4} {self.bar} ", style="quiet")
        text = self.source[number - 1].expandtabs(4).rstrip()
        row.append(text[self._cut(text) :], style="code" if line and line.counted else "quiet")
        return row

    def _caret(self, number: int, column: int, message: str) -> Text:
        source = self.source[number - 1]
        row = Text(" " * self.margin_width + f" {'':>4} {self.bar} ", style="quiet", no_wrap=True, overflow="ellipsis")
        offset = max(0, caret_offset(source, column) - self._cut(source.expandtabs(4)))
        said = message.splitlines()[0] if message else ""
        before, after = min(offset, self.room) - 1, self.room - offset - 2
        if after >= min(len(said), READABLE, before):
            row.append(" " * offset)
            row.append("^ ", style="caret")
            row.append(said, style="bad")
            return row
        # The caret is near the right edge, or beyond it: the message stands left of it, where there is more room.
        if len(said) > before:
            said = said[: before - len(self.ellipsis)] + self.ellipsis
        row.append(said.rjust(before), style="bad")
        row.append(" ^" if offset < self.room else "", style="caret")
        return row

    def _cut(self, text: str) -> int:
        """Return the number of leading blanks to remove from a line."""
        return (len(text) - len(text.lstrip())) // 2 if self.halved else 0


def _shown_lines(total: int, margin: dict[int, MarginLine], whole: bool) -> list[int]:
    if whole or not margin:
        return list(range(1, total + 1))
    near = {
        other for number in margin for other in range(number - CONTEXT, number + CONTEXT + 1) if 1 <= other <= total
    }
    # Show a single line between two shown ones, because a fold mark takes as much space.
    return [number for number in range(1, total + 1) if number in near or {number - 1, number + 1} <= near]


def _pair(amount: float, ratio: float) -> Text:
    """Return a counter and its ratio to the minimum, dimmed if the ratio is about 1."""
    style = "quiet" if ratio < 1.05 else ("warn" if ratio < 2 else "bad")
    text = Text(f"{words.short(amount):>7}", style="quiet" if ratio < 1.05 else "")
    text.append(f"{ratio:>5.1f}x" if ratio < 999.95 else f"{ratio:>5.0f}x", style=style)
    return text


def caret_offset(source: str, column: int) -> int:
    """Return the caret's position in ``source`` with tabs expanded.

    If the column is unknown (0), use the first word.
    """
    if column > 0:
        return len(source[: column - 1].expandtabs(4))
    expanded = source.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def read_source(file: str | Path) -> list[str] | None:
    """Return the lines of a source file; None if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
