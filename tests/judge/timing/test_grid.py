"""``grader bench --grid``: its sizes, the CSV file, continued runs, and the plot, with a fake clock."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from msgspec import structs

from grader.cli.bench_grid import bench_grid
from grader.course import Course, Entry
from grader.course.task import Exercise
from grader.execution.build.build import NVCC_FLAGS
from grader.judge.timing import bench, grid, grid_on_gpu
from grader.judge.timing.floor import Limits
from grader.judge.timing.grid import Row, plan, read_rows, run_grid
from grader.report.grid_plot import draw, kernels, ratios, save_plot, series
from grader.setup.errors import GraderError
from tests.twice import KERNEL

WITH_GRID = [entry for entry in Course().exercises if entry.load().grid is not None]


def task(name: str) -> Exercise:
    return Course().find(name).load()


def points(exercise: Exercise) -> list[Row]:
    return plan(exercise, "NVIDIA H200", "abc")


POINT = Row("NVIDIA H200", "day/x", "abc", "-O3", "f32", 1024, 512, 8, 1, 64, False)


def measured(row: Row) -> Row:
    """Return a row of 512 tokens per microsecond, with numbers of few digits."""
    mean = row.B * row.N / 512
    figures = {"mean_us": mean, "p50_us": mean / 2, "p99_us": 2 * mean, "tokens_per_second": 5.12e8}
    rival = {"rival": "cuDNN", "rival_p50_us": mean, "times_as_fast": 2.0, "rival_memory_bytes": 2e6}
    return structs.replace(row, runs=20, memory_bytes=1e6, tensor_core_percent=0.1, **figures, **rival)


def collect(path: Path, every: list[Row], minutes: float = 1e9, clock=lambda: 0.0) -> list[Row | None]:
    return list(run_grid(every, path, measured, minutes, clock))


def test_every_pair_is_measured_or_left_out_with_a_reason():
    every = points(task("mma_flash_attention"))
    assert {(point.dtype, point.nvcc_flags) for point in every} == {("bf16", NVCC_FLAGS)}
    pairs = {(point.C, point.H): point for point in every}
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
        point = Row("", entry.name, "", "", exercise.dtypes[0], 8, 8 * head_dim, 8, 2, head_dim, False)
        call = exercise.call(point.case(exercise.grid), point.dtype, 1)
        assert call.dims["head_dim"] == head_dim
        (shape,) = (shape for name, shape in call.output_shapes.items() if name == "out")
        assert sorted(shape)[-1] <= 16 * max(8, head_dim)
        elements = 1
        for size in shape:
            elements *= size
        assert elements == point.B * point.N * point.C
        assert exercise.operations(call) == 4 * point.B * point.C * point.N**2
        masked = structs.replace(point, causal=True)
        call = exercise.call(masked.case(exercise.grid), point.dtype, 1)
        assert exercise.operations(call) == 2 * point.B * point.C * point.N * (point.N + 1)


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


@pytest.mark.parametrize(("column", "before", "after"), [("source", "abc", "def"), ("nvcc_flags", "-O3", "-O1")])
def test_a_new_source_or_flag_is_another_measurement(tmp_path, column, before, after):
    path = tmp_path / "grid.csv"
    new = structs.replace(measured(POINT), mean_us=1.0, **{column: after})
    collect(path, [POINT])
    list(run_grid([new], path, lambda row: row, 1))
    assert [getattr(row, column) for row in read_rows(path)] == [before, after]
    assert kernels(read_rows(path)) == {"x (f32) on NVIDIA H200": [new]}


def test_without_a_gpu_there_is_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(GraderError, match="a grid is measured on a GPU, and there is none here"):
        bench_grid(WITH_GRID[:1], [WITH_GRID[0].solution], tmp_path / "grid.csv", 1)
    assert not list(tmp_path.iterdir())


TASKS = """
import torch
from grader.course.task import Case, Exercise, Grid, Input, Output, normal

def unsupported(x):
    raise RuntimeError("No available kernel.")

def slow(x):
    return 2 * x

def fast(x):
    return x + x

twice = Exercise(
    summary="Double it.",
    launchers="void twice(const float* x, float* out, int n, cudaStream_t stream)",
    inputs={"x": Input("n", normal(mean=1.0))},
    outputs={"out": Output("n")},
    reference=lambda x: 2 * x,
    cases=[Case("one", n=1)],
    flops=lambda d: d["n"],
    grid=Grid(
        (8,),
        lambda batch, heads, n, head_dim, causal: {"n": batch * heads * n * head_dim},
        rivals={"unsupported": unsupported, "slow": slow, "fast": fast},
    ),
)
"""


def test_a_size_is_timed_beside_the_fastest_rival(tmp_path, pretended_gpu, monkeypatch):
    (tmp_path / "exercises" / "day01_x").mkdir(parents=True)
    (tmp_path / "exercises" / "day01_x" / "tasks.py").write_text(TASKS)
    right, wrong = tmp_path / "right.cu", tmp_path / "wrong.cu"
    right.write_text(KERNEL)
    wrong.write_text(KERNEL.replace("2.0f", "3.0f"))
    exercise = Entry(tmp_path, "day01_x", "twice").load()
    for name in ("gpu_architecture", "compile_kernel", "build_runner", "uuid"):
        monkeypatch.setattr(grid_on_gpu, name, getattr(bench, name))
    monkeypatch.setattr(grid_on_gpu, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(grid_on_gpu, "limits_of_gpu", lambda: Limits(l2_bytes=16384))
    answers = {"mem_get_info": (1 << 30, 1 << 30), "memory_allocated": 1000, "max_memory_allocated": 5000}
    for name in ("mem_get_info", "memory_allocated", "max_memory_allocated", "synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda value=answers.get(name): value)
    times = {"slow": 9.0, "fast": 5.0}
    monkeypatch.setattr(grid_on_gpu, "time_on_gpu", lambda runs, count, *_: [times[runs[0].func.__name__]] * count)
    row = Row("NVIDIA H200", exercise.name, "", "", "f32", 16, 16, 2, 1, 8, False)
    with grid_on_gpu.measuring(exercise, right) as measurer:
        found = measurer.measure(row)
    assert (found.note, found.rival, found.rival_p50_us) == ("", "fast", 5.0)
    assert found.times_as_fast == 5.0 / found.p50_us and found.runs >= 6
    assert (found.memory_bytes, found.rival_memory_bytes) == (2 * 4 * 256, 5000 - 1000 + 4 * 256)
    with grid_on_gpu.measuring(exercise, wrong) as measurer:
        assert "differs from torch's result" in measurer.measure(row).note


def test_the_plot(tmp_path):
    every = points(task("mixed_precision_attention"))
    rows = [row if row.note else measured(row) for row in every]
    ((name, drawn),) = kernels(rows).items()
    assert name == "mixed_precision_attention (bf16) on NVIDIA H200"
    (lengths,) = {tuple(row.N for row in points) for points in series(drawn, 32).values()}
    assert lengths == grid.LENGTHS
    names, sizes, cells = ratios(drawn, causal=True)
    assert (len(names), len(sizes)) == (9, len(grid.LENGTHS) * len(grid.BATCHES)) and names[0] == "D 32, H 16"
    assert {value for line in cells for value in line} == {2.0}
    figure = draw(rows)
    assert figure.get_figwidth() <= 9, "a notebook would shrink the numbers"
    assert min(text.get_fontsize() for axis in figure.axes for text in axis.texts) >= 8
    save_plot(rows, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(GraderError, match="no size of the grid is measured"):
        save_plot([row for row in rows if row.note], tmp_path / "none.png")
