"""The source listing with counters in the margin."""

from __future__ import annotations

import pytest

from grader.report import source_view, theme
from grader.verdict import BarResult
from tests.report import samples

SOURCE = [f"line {number};" for number in range(1, 31)]
SOURCE[4] = "    out[row * n + i] = x[i * n + row];"
SOURCE[6] = "\tsum += tile[threadIdx.x][k];"


def drawn(margin: dict[int, source_view.MarginLine], **options: bool) -> str:
    return theme.plain_text(source_view.render_source(SOURCE, margin, 80, **options))


def test_the_margin_holds_sectors_and_conflicts() -> None:
    text = drawn(source_view.margin_lines(samples.lines()))
    (line,) = [row for row in text.splitlines() if "out[row * n + i]" in row]
    assert line.split()[:3] == ["32.8k", "8.0x", "5"]
    (line,) = [row for row in text.splitlines() if "sum += tile" in row]
    assert line.split()[:3] == ["65.5k", "32.0x", "7"]
    assert "line 11;" in text and "line 12;" not in text and "..." in text
    assert "line 12;" in drawn(source_view.margin_lines(samples.lines()), whole=True)


def test_worst_lines_come_first() -> None:
    worst = source_view.worst(source_view.margin_lines(samples.lines()))
    assert [line.line for line in worst] == [7, 5]
    assert worst[0].waste == "32-way bank conflict"
    assert worst[1].waste == "moves 8 times as many sectors as its data needs"


@pytest.mark.parametrize(
    ("counter", "passed", "first"),
    [("sectors", False, 5), ("sectors", True, 7), ("bank_conflict_ways", False, 7), ("launches", False, 7)],
)
def test_lines_that_contribute_to_a_missed_bar_come_first(counter: str, passed: bool, first: int) -> None:
    bar = BarResult(counter, 2.0, passed, at_most=1.0, values={counter: 2.0})
    assert source_view.worst(source_view.margin_lines(samples.lines()), [bar])[0].line == first


def test_carets_stand_at_findings() -> None:
    text = drawn(source_view.margin_lines([], [samples.out_of_bounds()]))
    lines = text.splitlines()
    assert "..." in lines[0] or "line" in lines[0]
    finding = samples.out_of_bounds()
    finding.line, finding.column = 5, 24
    lines = drawn(source_view.margin_lines(samples.lines(), [finding])).splitlines()
    at = next(number for number, row in enumerate(lines) if "out[row * n + i]" in row)
    assert lines[at + 1].index("^") == lines[at].index("x[i * n")


@pytest.mark.parametrize("column", [44, 70, 200])
def test_a_finding_near_the_right_edge_is_readable(column: int) -> None:
    finding = samples.out_of_bounds()
    finding.line, finding.column = 5, column
    source = [*SOURCE]
    source[4] = "x" * (column - 1) + "y[i];"
    margin = source_view.margin_lines(samples.lines(), [finding])
    lines = theme.plain_text(source_view.render_source(source, margin, 80)).splitlines()
    at = next(number for number, row in enumerate(lines) if "xxx" in row)
    assert "out-of-bounds access: 4-byte" in lines[at + 1] and len(lines[at + 1].rstrip()) <= 80
    if "y" in lines[at]:
        assert lines[at + 1].index("^") == lines[at].index("y")


@pytest.mark.parametrize(("width", "column"), [(80, 20), (60, 5), (50, 1), (40, 1)])
def test_a_message_stands_on_the_side_with_more_room(width: int, column: int) -> None:
    finding = samples.out_of_bounds()
    finding.line, finding.column = 5, column
    source = [*SOURCE]
    source[4] = "x" * (column - 1) + "y[i];"
    margin = source_view.margin_lines(samples.lines(), [finding])
    lines = theme.plain_text(source_view.render_source(source, margin, width)).splitlines()
    at = next(number for number, row in enumerate(lines) if row.rstrip().endswith("y[i];"))
    assert lines[at + 1].index("^ ou") == lines[at].index("y")


def test_the_main_file_is_the_one_with_the_most_counters() -> None:
    lines = samples.lines()
    lines[0].file = "header.cuh"
    assert source_view.main_file(lines) == samples.FILE
    assert source_view.main_file([]) == ""
