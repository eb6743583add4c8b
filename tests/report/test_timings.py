"""The table of ``grader bench`` fits in 80 columns, even with long names of sizes."""

from __future__ import annotations

import pytest

from grader.judge.timing.recordings import recorded
from grader.report import theme
from grader.report.timings import percentiles_table, render_bench, spread_table
from grader.verdict import Timing
from tests.exercises.conftest import COURSE

RECORDED = [entry for entry in COURSE.exercises if recorded(entry) is not None]


def printed(renderable) -> list[str]:  # type: ignore[no-untyped-def]
    """Return the lines that a terminal of 80 columns shows."""
    return theme.plain_text(renderable).splitlines()


def timing(name: str, dtype: str, us: float = 13350.0) -> Timing:
    times = dict(median_us=us, p50_us=us, p90_us=us, p95_us=us, p99_us=us)
    return Timing(name, dtype, "gpu", **times, percent_of_roofline=100.0, percent_of_copy=100.0, torch_ratio=10.25)


def test_short_names_begin_their_lines() -> None:
    lines = printed(percentiles_table([timing("small", "f32", 4.26), timing("small", "bf16", 188)]))
    assert [line.split()[:2] for line in lines] == [["size", "dtype"], ["small", "f32"], ["small", "bf16"]]
    assert len({len(line) for line in lines}) == 1


def test_a_timed_copy_of_the_same_bytes_has_a_column() -> None:
    old, new = timing("small", "f32", 5.0), timing("large", "f32", 50.0)
    assert "bytes" not in printed(percentiles_table([old]))[0]
    new.copy_us = 46.5
    lines = printed(percentiles_table([old, new]))
    assert lines[0].split()[-5:] == ["copy", "same", "bytes", "x", "torch"]
    assert lines[1].split()[-3:] == ["100", "%", "10.25"] and lines[2].split()[-3:] == ["93", "%", "10.25"]


def test_a_long_name_stands_above_its_figures() -> None:
    name = "64 sequences, 4096 keys, pages of 16"
    lines = printed(percentiles_table([timing(name, "f16"), timing(name, "bf16"), timing("N 4096, D 64", "bf16")]))
    assert [line.split()[0] for line in lines] == ["dtype", "64", "f16", "bf16", "N", "bf16"]
    assert lines[1] == name and lines[4] == "N 4096, D 64"
    assert max(map(len, lines)) <= theme.WIDTH - 2


def test_titles_take_two_lines_if_one_is_too_wide() -> None:
    every = [timing("large", dtype, 98.76) for dtype in ("f16", "bf16")]
    for one in every:
        one.copy_us = 40.0
    lines = printed(percentiles_table(every))
    assert lines[0].split() == ["same", "x"] and lines[1].split()[-2:] == ["bytes", "torch"]
    assert lines[0].index("same") + len("same") == lines[1].index("bytes") + len("bytes")
    assert lines[2] == "large" and max(map(len, lines)) <= theme.WIDTH - 2


def test_the_spread_of_long_times_fits_a_terminal() -> None:
    every = [timing("2 x 16 heads, 8192 queries and keys", "bf16"), timing("small", "f32", 4.26)]
    for one in every:
        one.runs, one.mean_us, one.deviation_us, one.minimum_us, one.maximum_us = (
            400,
            98765.4,
            23456.7,
            12345.6,
            999999.0,
        )
    lines = printed(spread_table(every))
    assert lines[0].split() == ["dtype", "runs", "mean", "std", "min", "max"]
    assert lines[2].split() == ["bf16", "400", "98,765", "us", "23,457", "us", "12,346", "us", "1,000", "ms"]
    assert max(map(len, lines)) <= theme.WIDTH - 2


def test_missing_means_are_reported() -> None:
    assert "not recorded" in " ".join(printed(spread_table([timing("small", "f32")])))


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: entry.name)
def test_every_recorded_size_has_a_line(entry) -> None:  # type: ignore[no-untyped-def]
    report = recorded(entry)
    lines = printed(render_bench(report))
    for timing in report.timings:
        assert any(line.strip().startswith(timing.name) for line in lines), timing.name
    assert max(map(len, printed(percentiles_table(report.timings)))) <= theme.WIDTH - 2
