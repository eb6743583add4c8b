"""``grader bench --here``: what it measures, continued runs, the table and the plot, with a fake GPU."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.cli import bench_here
from grader.cli.app import run as cli
from grader.cli.bench_here import Progress
from grader.course import Course, Entry
from grader.course.task import Exercise
from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.toolchain.gpus import runs
from grader.judge.timing import here
from grader.judge.timing.bench import BenchReport
from grader.judge.timing.here import Compared, Measurer, compared, file_for, missing, needed_bytes, newest_file, run
from grader.judge.timing.machine import Machine, roofline
from grader.judge.timing.recordings import read_reports, recorded
from grader.judge.timing.sources import FLAGS
from grader.report import theme
from grader.report.here import here_table, summary
from grader.report.notebook.rooflines import draw_rooflines, rooflines_here
from grader.setup.errors import GraderError
from grader.verdict import Timing

COURSE = Course()
NAMES = ("residual_add", "softmax", "mma_flash_attention", "grouped_gemm")
ENTRIES = [COURSE.find(name) for name in NAMES]
GPU = "NVIDIA GeForce RTX 4090"
MACHINE = Machine(
    GPU, "580.1", torch="2.11.0+cu130", cuda="13.0", l2_bytes=72 << 20, copy_gigabytes_per_second=920.0,
    product_gigaflops={"f16": 165000.0, "bf16": 165000.0, "f32": 55000.0},
)  # fmt: skip


def fake(entry: Entry, task: Exercise, sizes: list[here.Size]) -> BenchReport:
    """Return times as of a GPU with a fifth of an H200's bandwidth; sizes of more than 500 MB do not fit."""
    known = recorded(entry)
    assert known is not None
    wanted = {(case.name, dtype) for case, dtype in sizes}
    timings = []
    for timing in known.timings:
        if (timing.name, timing.dtype) not in wanted:
            continue
        if timing.bytes > 500e6:
            timings.append(Timing(timing.name, timing.dtype, "GPU", note="it needs at least 2 GiB; 1 GiB are free"))
        else:
            slower = Timing(timing.name, timing.dtype, "GPU", bytes=timing.bytes, flops=timing.flops)
            slower.median_us = 5 * timing.median_us
            roofline(slower, MACHINE, task.flops_of)
            timings.append(slower)
    return BenchReport(entry.name, entry.file_name, "cuda", MACHINE, timings, "2030-01-02", here.COMMAND)


def measured(file: Path, measure: Callable[..., BenchReport] = fake, entries: list[Entry] = ENTRIES) -> list[str]:
    """Return the exercises that a run measures."""
    asked: list[str] = []

    def count(entry: Entry, task: Exercise, sizes: list[here.Size]) -> BenchReport:
        asked.append(f"{entry.variable} {len(sizes)}")
        return measure(entry, task, sizes)

    run(entries, file, count, GPU, lambda done, left, name: None)
    return asked


def table(found: list[Compared]) -> list[str]:
    return theme.plain_text(here_table(found)).splitlines()


def test_a_second_run_measures_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    every = {entry.variable: len(missing(entry.load(), None)) for entry in ENTRIES}
    assert measured(file) == [f"{name} {count}" for name, count in every.items()]
    untimed = {one.entry.variable: sum(not here.median_us for here, _ in one.rows()) for one in compared(COURSE, file)}
    assert measured(file) == [f"{name} {count}" for name, count in untimed.items() if count]
    assert {len(one.rows()) for one in compared(COURSE, file)} == set(every.values())


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"

    def interrupted(entry: Entry, task: Exercise, sizes: list[here.Size]) -> BenchReport:
        if entry.variable == "mma_flash_attention":
            raise KeyboardInterrupt
        return fake(entry, task, sizes)

    with pytest.raises(KeyboardInterrupt):
        measured(file, interrupted)
    assert list(read_reports(file)) == [ENTRIES[0].name, ENTRIES[1].name]
    assert [name.split()[0] for name in measured(file)][-2:] == ["mma_flash_attention", "grouped_gemm"]
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_a_changed_solution_and_another_gpu_are_measured_again(tmp_path: Path) -> None:
    file, entry = tmp_path / "bench.json", COURSE.find("rms_norm")
    count = len(missing(entry.load(), None))
    measured(file, entries=[entry])
    content = json.loads(file.read_text())
    content["exercises"][entry.name]["sources"] = {f"solutions/{entry.name}.cu": "another"}
    file.write_text(json.dumps(content))
    assert measured(file, entries=[entry]) == [f"rms_norm {count}"]
    content = json.loads(file.read_text())
    content["exercises"][entry.name]["sources"][FLAGS] = "-O1"
    file.write_text(json.dumps(content))
    assert measured(file, entries=[entry]) == [f"rms_norm {count}"]
    content = json.loads(file.read_text())
    content["exercises"][entry.name]["machine"]["device"] = "NVIDIA L4"
    file.write_text(json.dumps(content))
    assert measured(file, entries=[entry]) == [f"rms_norm {count}"]


@pytest.mark.parametrize("content", ["{", "[]", '{"exercises": {"a/b": {"date": 3}}}'])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "bench.json"
    file.write_text(content)
    with pytest.raises(GraderError, match=r"bench\.json cannot be read") as error:
        measured(file)
    assert "Delete the file" in error.value.hint and file.read_text() == content


def test_each_gpu_has_a_file(tmp_path: Path) -> None:
    assert file_for(tmp_path, GPU) == tmp_path / ".grader" / "bench_nvidia_geforce_rtx_4090.json"
    assert newest_file(tmp_path) is None
    measured(file_for(tmp_path, GPU), entries=ENTRIES[:1])
    assert newest_file(tmp_path) == file_for(tmp_path, GPU)


def test_no_gpu_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def absent(needed: str = "sm_50") -> str:
        raise GraderError("there is no usable GPU here", "Use --device cpu.")

    monkeypatch.setattr(here, "gpu_architecture", absent)
    assert cli(["bench", "--here", "softmax"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(
        "error: there is no usable GPU here\n  Run `grader bench --here`"
    )
    assert "grader doctor" in captured.err and "--device cpu" not in captured.err


def test_an_exercise_without_sizes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "check_gpu", lambda: GPU)
    with pytest.raises(GraderError, match="day10_paged_attention/block_allocator has no sizes to time"):
        bench_here.bench_here(COURSE, [ENTRIES[0], COURSE.find("block_allocator")], only_kept=False)


# --- sizes that cannot be timed ---


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Replace the GPU by one with the architecture sm_90 and 1 GiB, on which ``failing`` sizes fail."""
    torch = pytest.importorskip("torch")
    state = SimpleNamespace(architecture="sm_90", free=1 << 30, failing=set(), broken=False, asked=[])

    def architecture(needed: str = "sm_50") -> str:
        if not runs(state.architecture, needed):
            raise GraderError(f"the exercise needs a GPU of {needed}")
        return state.architecture

    def compile_kernel(file: Path, device: str, **options: object) -> None:
        assert device == "cuda" and options["arch"] == state.architecture
        if state.broken:
            raise GraderError(f"{file.name}:7: too much shared memory\nmore")

    def bench(task: Exercise, file: Path, *, sizes: set[tuple[str, str]], **options: object) -> BenchReport:
        state.asked.append(sizes)
        assert task.torch_baseline is None and options["machine"] is MACHINE
        for size in sizes:
            if size in state.failing:
                raise GraderError(f"{task.name} at {size[0]} ({size[1]}): the kernel failed: too large\nmore")
        timings = [Timing(*size, "GPU", median_us=1.0) for size in sizes]
        return BenchReport(task.name, file.name, "cuda", MACHINE, timings, "2030-01-02", "")

    monkeypatch.setattr(here, "gpu_architecture", architecture)
    monkeypatch.setattr(here, "bench", bench)
    monkeypatch.setattr(here, "compile_kernel", compile_kernel)
    monkeypatch.setattr(here, "measure_machine", lambda: MACHINE)
    monkeypatch.setattr(here, "uuid", lambda: "GPU-of-a-test")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (state.free, state.free))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return state


def notes(name: str) -> dict[tuple[str, str], str]:
    entry = COURSE.find(name)
    task = entry.load()
    report = Measurer(lambda text: None).measure(entry, task, missing(task, None))
    assert all(bool(timing.note) != bool(timing.median_us) for timing in report.timings)
    return {(timing.name, timing.dtype): timing.note for timing in report.timings}


def test_all_sizes_are_timed_in_one_child(gpu: SimpleNamespace) -> None:
    gpu.free = 1 << 40
    assert set(notes("residual_add").values()) == {""} and len(gpu.asked) == 1


def test_a_size_that_does_not_fit_is_left_out(gpu: SimpleNamespace) -> None:
    found = notes("residual_add")
    assert found["small", "f32"] == "" and found["large", "f16"] == ""
    assert found["large", "f32"] == "it needs at least 1.25 GiB; 1 GiB of the GPU are free"
    assert ("large", "f32") not in gpu.asked[0]


def test_a_size_that_fails_does_not_stop_the_others(gpu: SimpleNamespace) -> None:
    gpu.free, gpu.failing = 1 << 40, {("small", "bf16")}
    found = {size: note for size, note in notes("residual_add").items() if note and size[0] == "small"}
    assert found == {("small", "bf16"): "the kernel failed: too large"}
    assert len(gpu.asked) == 1 + len(missing(COURSE.find("residual_add").load(), None))


def test_a_solution_that_does_not_compile_is_built_once(gpu: SimpleNamespace) -> None:
    gpu.broken = True
    assert set(notes("residual_add").values()) == {"residual_add.cu:7: too much shared memory"} and gpu.asked == []


def test_an_older_gpu_is_named_once_and_nothing_is_built(gpu: SimpleNamespace) -> None:
    gpu.architecture = "sm_86"
    assert set(notes("wgmma_linear").values()) == {"the exercise needs a GPU of sm_90a"} and gpu.asked == []


def test_the_memory_of_a_size_is_a_lower_bound() -> None:
    task = COURSE.find("residual_add").load()
    (large,) = (case for case in task.bench if case.name == "large")
    for dtype in task.dtypes:
        assert needed_bytes(task, large, dtype) == 5 * large.dims["n"] * ITEM_BYTES[dtype]
    for entry in here.timed_exercises(COURSE.exercises):
        for case, dtype in missing(entry.load(), None):
            assert 0 < needed_bytes(entry.load(), case, dtype) < 60 << 30, (entry.name, case.name, dtype)


# --- the table, the plot, the line of progress ---


def test_one_table_fits_in_80_columns() -> None:
    entries = here.timed_exercises(COURSE.exercises)
    tasks = [entry.load() for entry in entries]
    found = [
        Compared(entry, fake(entry, task, missing(task, None)), recorded(entry)) for entry, task in zip(entries, tasks)
    ]
    lines = table(found)
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    rows = [pair for one in found for pair in one.rows()]
    assert sum(line.split()[-1] == "%" for line in lines if line) == len(rows)
    for entry in entries:
        assert sum(line.strip() == entry.variable for line in lines) == 1


def test_a_row_has_both_times_and_the_percent_of_both_floors(tmp_path: Path) -> None:
    measured(tmp_path / "bench.json")
    found = compared(COURSE, tmp_path / "bench.json", ENTRIES[:1])
    lines = table(found)
    (here_, h200) = next(pair for pair in found[0].rows() if pair[0].name == "large" and pair[0].dtype == "f16")
    assert h200 is not None and here_.median_us == pytest.approx(5 * h200.median_us, rel=1e-3)
    floor = 1e6 * here_.bytes / 920e9
    assert here_.percent_of_roofline == pytest.approx(100 * floor / here_.median_us, rel=1e-3)
    row = lines[next(at for at, line in enumerate(lines) if line.split()[:2] == ["large", "f32"]) + 1]
    percents = [f"{number:.0f}" for number in (here_.percent_of_roofline, h200.percent_of_roofline)]
    times = [f"{here_.median_us:.0f}", f"{h200.median_us:.3g}"]
    assert row.split() == ["f16", *times, percents[0], "%", percents[1], "%"]
    text = " ".join(" ".join(lines).split())
    assert f"here: {GPU}, copy 920 GB/s" in text and "H200: NVIDIA H200, copy 4," in text
    assert "residual_add (large, f32): it needs at least 2 GiB; 1 GiB are free" in text


def test_a_size_without_a_record_has_only_a_time_here(tmp_path: Path) -> None:
    measured(tmp_path / "bench.json", entries=ENTRIES[:1])
    (one,) = compared(COURSE, tmp_path / "bench.json", ENTRIES[:1])
    alone = dataclasses.replace(one, h200=None)
    assert all(other is None for _, other in alone.rows())
    assert any(line.split()[:2] == ["small", "f32"] and " - " in line for line in table([alone]))
    assert summary([alone]).endswith("0 of 0 are as close to the floor here as on the H200, or closer.")


def test_the_plot_has_both_rooflines_and_each_exercise_twice(tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    measured(tmp_path / "bench.json")
    figure = draw_rooflines(compared(COURSE, tmp_path / "bench.json"))
    (ax,) = figure.axes
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(points) == 2 * len(ENTRIES)
    assert {text.get_text() for text in ax.texts} >= set(NAMES)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [f"{GPU}, here", "NVIDIA H200, recorded"]
    slopes = [line.get_ydata()[0] / line.get_xdata()[0] for line in ax.lines if line.get_xdata()[0] == ax.get_xlim()[0]]
    assert [round(slope * 1e-11) for slope in slopes] == [9, 43]
    plt.close(figure)


def test_a_lesson_draws_only_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.setattr("grader.judge.timing.here.newest_file", lambda root: None)
    assert rooflines_here() is None
    measured(tmp_path / "bench.json", entries=ENTRIES[:1])
    monkeypatch.setattr("grader.judge.timing.here.newest_file", lambda root: tmp_path / "bench.json")
    figure = rooflines_here()
    assert len(figure.axes) == 1
    plt.close(figure)


def test_the_remaining_time_is_estimated_from_the_sizes_measured() -> None:
    shown: list[str] = []
    now = iter([0.0, 60.0])
    line = Progress(shown.append, each=False, clock=lambda: next(now))
    line.show(0, 12, "residual_add")
    line.say("building")
    line.show(2, 10, "softmax")
    assert shown == [
        "0 of 12 sizes: residual_add",
        "0 of 12 sizes: residual_add, building",
        "2 of 12 sizes, about 5 min left: softmax",
    ]


def test_a_file_gets_a_line_for_each_exercise() -> None:
    out = io.StringIO()
    with bench_here.progress(theme.console(out, width=80)) as line:
        line.show(0, 3, "softmax")
        line.say("building")
    assert out.getvalue() == "  0 of 3 sizes: softmax\n"
