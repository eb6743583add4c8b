"""The verdict on a learner's own kernel: its report, the source with counters for each line, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from msgspec import structs

from grader.report import source_view, terminal
from grader.report.html import source_rows
from grader.report.notebook.panel import WIDTH, Panel
from grader.report.notebook.player import Player
from grader.report.notebook.source import BOX, colored
from grader.report.notebook.verdicts import timeless, with_relative_paths
from grader.report.terminal import NextStep
from grader.verdict import Verdict, words
from grader.verdict.wording import limits

RED, BLUE = "#b3372e", "#2f6f9f"
BAR = 40
"""The length of the longest bar of the chart of times, in characters."""


class Graded(Panel):
    """The output of a check.

    ``verdict``: its data; ``note``: a sentence to show above it; ``players``: recorded blocks to show below it.
    """

    def __init__(
        self,
        verdict: Verdict,
        steps: Sequence[NextStep],
        verbose: bool = False,
        note: str = "",
        players: Sequence[Player] = (),
    ) -> None:
        self.verdict = structs.replace(with_relative_paths(timeless(verdict)), isolation_note=verdict.isolation_note)
        self.note = note
        self.players = players
        self._source = source_html(verdict)
        super().__init__(terminal.render(self.verdict, WIDTH, verbose, steps))

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [self.note, super().__str__()]))

    def html(self) -> str:
        """Return the report and the source as HTML. The source is folded if the kernel passed."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        played = "".join(
            f"<details><summary>What the threads did, step by step</summary>{player.html()}</details>"
            for player in self.players
        )
        return note + super().html() + played + self._source + bound_html(self.verdict)


def bound_html(verdict: Verdict) -> str:
    """Return a folded chart of the lower bound of each GPU unit, from the counters; empty without counters."""
    bound = next((stage.bound for stage in verdict.stages if stage.bound is not None), None)
    longest = bound.microseconds if bound is not None else 0.0
    if bound is None or longest == 0:
        return ""
    bars = [
        f'{limits.UNITS[unit.unit]:>31}  <span style="color:{BLUE}">'
        f"{'█' * max(1, round(BAR * unit.microseconds / longest))}"
        f"</span> {words.microseconds(unit.microseconds)}"
        for unit in sorted(bound.units, key=lambda unit: -unit.microseconds)
        if unit.microseconds >= limits.SHOWN * longest
    ]
    title = f"What limits the kernel: the minimum time of each unit of one {bound.gpu}, from the counted work"
    said = f"<p>{escape(limits.text(bound))}</p>"
    drawn = "\n".join(bars)
    return f'<details><summary>{escape(title)}</summary><pre tabindex="0" style="{BOX}">{drawn}</pre>{said}</details>'


def source_html(verdict: Verdict) -> str:
    """Return the colored source, with traffic on the left, and findings and compiler messages below their lines."""
    source = source_view.read_source(verdict.file)
    if source is None:
        return ""
    counted = {row["number"]: row for row in source_rows(verdict, source)}
    said: dict[int, list[tuple[int, str]]] = {}
    for stage in verdict.stages:
        for item in stage.diagnostics:
            if Path(item.file).name == Path(verdict.file).name and 0 < item.line <= len(source):
                offset = source_view.caret_offset(source[item.line - 1], item.column)
                said.setdefault(item.line, []).append((offset, item.message))
    for number, row in counted.items():
        said.setdefault(number, []).extend((caret["offset"], caret["message"]) for caret in row["carets"])
    pairs = [pair for pair in _PAIRS if any(row[pair[0]] for row in counted.values())]
    lines = [_head(pairs)] if pairs else []
    for number, text in enumerate(colored("\n".join(source).expandtabs(4)), 1):
        margin = _margin(counted.get(number, {}), pairs)
        lines.append(f"{margin}{number:>5}  {text}")
        for offset, message in said.get(number, []):
            blanks = " " * (len(pairs) * 13 + 7 + offset)
            lines.append(
                f'<span style="color:{RED}">{blanks}^ {escape(message.splitlines()[0] if message else "")}</span>'
            )
    title = "Your kernel, with what each line moves" if pairs else "Your kernel"
    opened = "" if verdict.passed else " open"
    listing = "\n".join(line.rstrip() for line in lines)
    return f'<details{opened}><summary>{title}</summary><pre tabindex="0" style="{BOX}">{listing}</pre></details>'


_PAIRS = (("sectors", "waste", "global"), ("waves", "ways", "shared"))
"""The counters in the margin, as tuples: the key of the counter, the key of counter / minimum, the kind of memory."""


def _head(pairs: Sequence[tuple[str, str, str]]) -> str:
    above = "".join(f"{memory:>13}" for _, _, memory in pairs)
    return f"{above}\n" + "".join(f"{counter:>7}{ratio:>6}" for counter, ratio, _ in pairs) + " line"


def _margin(row: dict[str, Any], pairs: Sequence[tuple[str, str, str]]) -> str:
    margin = ""
    for counter, ratio, _ in pairs:
        amount, times = row.get(counter, ""), row.get(ratio, "")
        wasted = bool(times) and float(times[:-1]) >= 2
        margin += f"{amount:>7}" + (f'<b style="color:{RED}">{times:>6}</b>' if wasted else f"{times:>6}")
    return margin
