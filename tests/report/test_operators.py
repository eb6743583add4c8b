"""The table at the end of ``grader bench --all``, drawn from figures recorded on an H200."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.course import Course
from grader.judge.timing.bench import GPU_CLOCK
from grader.judge.timing.recordings import recorded
from grader.report import theme
from grader.report.operators import Row, operators_table, rate
from grader.verdict import Timing


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    def found() -> Iterator[Row]:
        for entry in Course().exercises:
            operator, report = entry.load().operator, recorded(entry)
            if operator:
                assert report is not None, f"{entry.name} has no recorded times"
                yield from ((operator, entry.variable, timing) for timing in report.timings)

    return list(found())


def drawn(rows: list[Row]) -> list[str]:
    return theme.plain_text(operators_table(rows)).splitlines()


def test_each_time_has_one_line_of_80_columns(rows: list[Row]) -> None:
    lines = drawn(rows)
    assert max(map(len, lines)) <= 80
    sizes = [line for line in lines if " us " in line]
    assert len(sizes) == len(rows) >= 9 * 3 * 2
    assert all("%" in line and line.split()[-1].replace(".", "").isdigit() for line in sizes)
    assert not any("…" in line for line in lines)


def test_an_operator_and_a_dtype_are_named_once(rows: list[Row]) -> None:
    text = "\n".join(drawn(rows))
    for operator in {row[0] for row in rows}:
        assert sum(line.split()[:1] == [operator] and " us " in line for line in text.splitlines()) == 1
    assert "linear is linear_register_tiled and linear_wmma" in " ".join(text.split())


def test_a_rate_is_in_flops_only_if_operations_are_the_limit() -> None:
    timing = Timing("large", "f32", GPU_CLOCK, gigabytes_per_second=800.0, gigaflops_per_second=40_000.0)
    timing.percent_of_copy, timing.percent_of_roofline = 20.0, 80.0
    assert rate(timing) == "40 TFLOP/s"
    timing.percent_of_roofline = 20.0
    assert rate(timing) == "800 GB/s"
    assert rate(Timing("large", "f32", GPU_CLOCK)) == ""
