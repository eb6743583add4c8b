"""A table of the lines of a kernel with the most floating-point operations and inactive lanes.

The kernel must be built to count operations: ``grader check --verbose`` and ``load_kernel(..., operations=True)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def computing(lines: Sequence[SourceLine]) -> list[SourceLine]:
    """Return the lines with the most operations, most first."""
    found = [line for line in lines if _work(line)]
    return sorted(found, key=lambda line: (-_work(line), line.line))[:MOST]


def diverging(lines: Sequence[SourceLine]) -> list[SourceLine]:
    """Return the lines with the most inactive lanes, worst first."""
    found = [line for line in lines if _idle(line)]
    return sorted(found, key=lambda line: (-_idle(line), line.line))[:MOST]


def operations(line: SourceLine) -> float:
    """Return the operations of a line, by threads and by tensor cores together."""
    return line.counters.get("flops", 0) + line.counters.get("tensor_operations", 0)


def _work(line: SourceLine) -> float:
    return operations(line) + line.counters.get("special_functions", 0)


def _idle(line: SourceLine) -> float:
    return max(0.0, line.counters.get("possible_lanes", 0) - line.counters.get("executions", 0))


def table(lines: Sequence[SourceLine]) -> RenderableType:
    """Return a table of the lines with the most operations or inactive lanes, in the order of the file."""
    rows = {line.line: line for line in [*computing(lines), *diverging(lines)]}
    drawn = theme.table(expand=True)
    for column in ("line", "operations", "special", "lanes"):
        drawn.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    drawn.add_column("source", overflow="ellipsis", no_wrap=True, ratio=1)
    for number in sorted(rows):
        counters = rows[number].counters
        lanes = counters.get("active_lanes", 0)
        style = "quiet" if not _idle(rows[number]) else "warn" if lanes >= WARP / 2 else "bad"
        drawn.add_row(
            str(number),
            words.short(operations(rows[number])) if operations(rows[number]) else "",
            words.short(counters["special_functions"]) if counters.get("special_functions") else "",
            Text(f"{lanes:.1f}" if lanes else "", style=style),
            Text(rows[number].source.strip(), style="code"),
        )
    return drawn
