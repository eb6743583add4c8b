"""A table of the lines of a kernel with the most floating-point operations and inactive lanes.

The kernel must be built to count operations: ``grader check --verbose`` and ``load_kernel(..., operations=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from grader.report import theme
from grader.verdict import SourceLine, words
from grader.verdict.wording.counters import WARP

MOST = 4
"""The maximum number of lines with the most operations, and of those with the most inactive lanes."""


def counted(totals: Mapping[str, float]) -> bool:
    """Return whether the kernel was built to count operations."""
    return "flops" in totals


def rows(lines: Sequence[SourceLine]) -> list[dict[str, Any]]:
    """Return the counters of the lines with the most operations or inactive lanes, in the order of the file."""
    chosen = {line.line: line for line in [*_most(lines, _work), *_most(lines, _idle)]}
    found = []
    for number, line in sorted(chosen.items()):
        special = line.counters.get("special_functions", 0)
        work = _work(line) - special
        lanes = line.counters.get("active_lanes", 0)
        found.append(
            {
                "number": number,
                "text": line.source,
                "operations": words.short(work) if work else "",
                "special": words.short(special) if special else "",
                "lanes": f"{lanes:.1f}" if lanes else "",
                "style": "quiet" if not _idle(line) else "warn" if lanes >= WARP / 2 else "bad",
            }
        )
    return found


def _most(lines: Sequence[SourceLine], amount: Callable[[SourceLine], float]) -> list[SourceLine]:
    """Return the lines with the largest amounts. Of equal lines, the first come first."""
    return sorted(filter(amount, lines), key=lambda line: (-amount(line), line.line))[:MOST]


def _work(line: SourceLine) -> float:
    """Return the operations of a line, by threads and by tensor cores, and its special functions."""
    return sum(line.counters.get(name, 0) for name in ("flops", "tensor_operations", "special_functions"))


def _idle(line: SourceLine) -> float:
    """Return the number of inactive lanes in all executions of a line."""
    return max(0.0, line.counters.get("possible_lanes", 0) - line.counters.get("executions", 0))


def table(lines: Sequence[SourceLine]) -> RenderableType:
    """Return a table of the lines with the most operations or inactive lanes, in the order of the file."""
    drawn = theme.table(expand=True)
    for column in ("line", "operations", "special", "lanes"):
        drawn.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    drawn.add_column("source", overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows(lines):
        lanes, source = Text(row["lanes"], style=row["style"]), Text(row["text"].strip(), style="code")
        drawn.add_row(str(row["number"]), row["operations"], row["special"], lanes, source)
    return drawn
