"""``grader bench --grid``: its sizes, the CSV file, continued runs, and the plot, with a fake clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from grader.cli.bench_grid import bench_grid
from grader.course import Course
from grader.course.task import Exercise
from grader.judge.timing import grid
from grader.judge.timing.grid import Row, plan, read_rows, run_grid
from grader.report.grid_plot import kernels, save_plot, series
from grader.setup.errors import GraderError

WITH_GRID = [entry for entry in Course().exercises if entry.load().grid is not None]


def task(name: str) -> Exercise:
    return Course().find(name).load()


def points(exercise: Exercise) -> list[Row]:
    return plan(exercise, "NVIDIA H200", "abc")


POINT = Row("NVIDIA H200", "day/x", "abc", "f32", 1024, 512, 8, 1, 64)


def measured(row: Row) -> Row:
    """Return a row of 512 tokens per microsecond, with numbers of few digits."""
    mean = row.B * row.N / 512
    figures = {"mean_us": mean, "p50_us": mean / 2, "p99_us": 2 * mean, "tokens_per_second": 5.12e8}
    return structs.replace(row, runs=20, memory_bytes=1e6, tensor_core_percent=0.1, **figures)


def collect(path: Path, every: list[Row], minutes: float = 1e9, clock=lambda: 0.0) -> list[Row | None]:
    return list(run_grid(every, path, measured, minutes, clock))


def test_every_pair_is_measured_or_left_out_with_a_reason():
    every = points(task("mma_flash_attention"))
    pairs = {(point.C, point.H): point for point in every if point.dtype == "f16"}
    assert set(pairs) == {(c, h) for c in grid.WIDTHS for h in grid.HEADS}
    left_out = {pair: point.note for pair, point in pairs.items() if point.note}
    assert left_out[1024, 12] == "1024 is not a multiple of 12"
    assert left_out[512, 16] == "the kernel does not support head_dim 32, only 64, 96, 128, 256"
    kept = {pair for pair in pairs if pair not in left_out}
    assert kept == {(512, 8), (768, 8), (768, 12), (1024, 8), (1024, 16), (2048, 8), (2048, 16), (2048, 32)}
    sizes = [point for point in every if not point.note]
    assert len(sizes) == 2 * len(kept) * len(grid.LENGTHS) * len(grid.BATCHES)
    work = [point.B * point.C * point.N**2 for point in sizes]
    assert work == sorted(work)


def test_an_exercise_without_a_grid_says_so():
    with pytest.raises(GraderError, match="has no grid of sizes"):
        points(task("softmax"))


@pytest.mark.parametrize("entry", WITH_GRID, ids=lambda entry: entry.variable)
def test_sizes_become_calls_of_the_exercise(entry):
    exercise = entry.load()
    for head_dim in exercise.grid.head_dims:
        point = Row("", entry.name, "", exercise.dtypes[0], 8, 8 * head_dim, 8, 2, head_dim)
        call = exercise.call(point.case(exercise.grid), point.dtype, 1)
        assert call.dims["head_dim"] == head_dim
        (shape,) = (shape for name, shape in call.output_shapes.items() if name == "out")
        assert sorted(shape)[-1] <= 16 * max(8, head_dim)
        elements = 1
        for size in shape:
            elements *= size
        assert elements == point.B * point.N * point.C
        assert exercise.operations(call) == 4 * point.B * point.C * point.N**2


def test_rows_come_back_from_the_file(tmp_path):
    every = points(task("flash_attention"))[:12]
    rows = collect(tmp_path / "out" / "grid.csv", every)
    assert read_rows(tmp_path / "out" / "grid.csv") == rows
    point, row = every[-1], rows[-1]
    assert row.tokens_per_second == 5.12e8
    assert (row.N, row.C, row.H, row.B, row.head_dim) == (point.N, point.C, point.H, point.B, point.C // point.H)
    left_out = [row for row in rows if row.note]
    assert left_out and all(row.mean_us is None and row.N == 0 for row in left_out)


def test_a_run_stops_at_the_time_limit_and_the_next_continues(tmp_path):
    path, every = tmp_path / "grid.csv", points(task("flash_attention"))[:20]
    now = iter(range(0, 10000, 10))  # a fake clock: each call adds ten seconds
    first = collect(path, every, minutes=1, clock=lambda: float(next(now)))
    assert len(first) == 6
    second = collect(path, every)
    assert second[:6] == [None] * 6 and None not in second[6:]
    assert [row.key for row in read_rows(path)] == [point.key for point in every]
    assert collect(path, every) == [None] * 20


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    path, every = tmp_path / "grid.csv", points(task("flash_attention"))[:8]
    rows = collect(path, every)
    path.write_text(path.read_text()[:-20])
    assert read_rows(path) == rows[:-1]
    assert collect(path, every) == [None] * 7 + [rows[-1]]
    assert read_rows(path) == rows


def test_a_size_that_failed_is_tried_again(tmp_path):
    path, point = tmp_path / "grid.csv", POINT
    failing = run_grid([point], path, lambda row: structs.replace(row, note="no memory"), 1)
    assert [row.note for row in failing] == ["no memory"]
    assert collect(path, [point])[0].mean_us == 2.0
    assert collect(path, [point]) == [None]


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "\x00\xff"])
def test_another_file_is_not_written_to(tmp_path, content):
    path = tmp_path / "grid.csv"
    path.write_text(content, encoding="latin1")
    with pytest.raises(GraderError, match=r"the columns of a grid|cannot be read"):
        collect(path, [])
    assert path.read_text(encoding="latin1") == content


def test_a_new_source_is_another_measurement(tmp_path):
    path = tmp_path / "grid.csv"
    new = structs.replace(measured(POINT), source="def", mean_us=1.0)
    collect(path, [POINT])
    list(run_grid([new], path, lambda row: row, 1))
    assert [row.source for row in read_rows(path)] == ["abc", "def"]
    assert kernels(read_rows(path)) == {"x (f32) on NVIDIA H200": [new]}


def test_without_a_gpu_there_is_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(GraderError, match="a grid is measured on a GPU, and there is none here"):
        bench_grid(WITH_GRID[:1], [WITH_GRID[0].solution], tmp_path / "grid.csv", 1)
    assert not list(tmp_path.iterdir())


def test_the_plot(tmp_path):
    every = points(task("mixed_precision_attention"))
    rows = [row if row.note else measured(row) for row in every if row.dtype == "f16"]
    ((name, drawn),) = kernels(rows).items()
    assert name == "mixed_precision_attention (f16) on NVIDIA H200"
    (lengths,) = {tuple(row.N for row in points) for points in series(drawn, 32).values()}
    assert lengths == grid.LENGTHS
    save_plot(rows, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(GraderError, match="no size of the grid is measured"):
        save_plot([row for row in rows if row.note], tmp_path / "none.png")
