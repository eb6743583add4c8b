"""``grader bench``: percentiles, rooflines, rotation of inputs, recorded files, and timing with a fake simulator."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import course
from grader.cli.app import run
from grader.course import Entry
from grader.course.inputs import named
from grader.execution.build.build import NVCC_FLAGS
from grader.execution.jail.running import NO_JAIL
from grader.execution.runner.buffers import prepare
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import SharingFailed
from grader.execution.runner.program import build_runner
from grader.execution.runner.warm import WarmRunners
from grader.judge import fast
from grader.judge.timing import bench as b
from grader.judge.timing import events, machine, recordings, turns, verified
from grader.judge.timing.machine import Machine, measure_machine, roofline
from grader.judge.timing.on_device import DeviceBuffers, prepare_on_device
from grader.judge.timing.sources import FLAGS
from grader.setup.errors import GraderError
from grader.verdict import PASSED, Timing
from tests.execution.runner.test_runner import exercise
from tests.judge.timing.host_memory import HostMemory
from tests.twice import KERNEL


def report(device: str = "cuda", median: float = 10.0, gpu: str = "NVIDIA H200") -> b.BenchReport:
    machine = Machine(gpu, copy_gigabytes_per_second=1000.0, product_gigaflops={"f32": 50_000.0})
    timing = Timing("large", "f32", b.GPU_CLOCK, {"n": 5}, runs=20, bytes=8e6, flops=1e6, median_us=median)
    timing.torch_eager_us, timing.torch_compile_us = 40.0, 20.0
    roofline(timing, machine)
    return b.BenchReport("day01_x/add", "add.cu", device, machine, [timing], "2024-02-29", "grader bench add")


def test_roofline_of_a_kernel_bound_by_memory() -> None:
    timing = report().timings[0]
    assert timing.gigabytes_per_second == pytest.approx(800)
    assert [timing.percent_of_copy, timing.percent_of_roofline] == pytest.approx([80, 80])
    assert timing.torch_ratio == pytest.approx(2.0)


def test_roofline_of_a_kernel_bound_by_arithmetic() -> None:
    timing = Timing("x", "f32", b.GPU_CLOCK, bytes=1e3, flops=1e9, median_us=40.0)
    roofline(timing, report().machine)
    assert timing.gigaflops_per_second == pytest.approx(25_000)
    assert timing.percent_of_roofline == pytest.approx(50)
    assert timing.torch_ratio is None


def test_operands_of_eight_bits_have_a_roofline_of_their_own() -> None:
    timing = Timing("x", "bf16", b.GPU_CLOCK, bytes=1e3, flops=1e9, median_us=40.0)
    machine = Machine("a GPU", product_gigaflops={"bf16": 20_000.0, "f8": 50_000.0})
    roofline(timing, machine, "f8")
    assert timing.percent_of_roofline == pytest.approx(50)


def test_percentiles() -> None:
    values = events.percentiles([float(i) for i in range(1, 102)])
    assert values == {"median_us": 51.0, "p50_us": 51.0, "p90_us": 91.0, "p95_us": 96.0, "p99_us": 100.0}


def test_statistics_include_all_runs() -> None:
    values = events.statistics([1.0, 2.0, 3.0, 4.0, 10.0])
    assert values["median_us"] == values["p50_us"] == 3.0
    assert (values["mean_us"], values["minimum_us"], values["maximum_us"]) == (4.0, 1.0, 10.0)
    assert values["deviation_us"] == pytest.approx((50 / 4) ** 0.5)  # squared deviations from the mean, 50, over n - 1
    assert events.statistics([7.0])["deviation_us"] is None


@pytest.mark.parametrize(
    ("size", "expected"), [(500 << 20, (1, 0)), (100 << 20, (2, 0)), (30 << 20, (5, 0)), (1 << 10, (1, 100 << 20))]
)
def test_rotation_is_larger_than_the_cache(size: int, expected: tuple[int, int]) -> None:
    assert b.rotation(size, 50 << 20) == expected


def test_runs_fit_the_budget() -> None:
    assert [events.THOROUGH.runs_for(us) for us in (1.0, 1e6, 1000.0)] == [events.MOST_RUNS, 20, 300]
    assert events.QUICK.runs_for(1e6) == 10


def test_recording_keeps_the_other_exercises(tmp_path: Path) -> None:
    recordings.record(report(), Entry(tmp_path, "day01_x", "other"))
    path = recordings.record(report(), Entry(tmp_path, "day01_x", "add"))
    recordings.record(report(median=12.345678), Entry(tmp_path, "day01_x", "add"))
    content = json.loads(path.read_text())
    assert path == tmp_path / "lessons/day01_x/h200.json"
    assert content["version"] == 1 and list(content["exercises"]) == ["add", "other"]
    kept = content["exercises"]["add"]
    assert kept["timings"][0]["median_us"] == 12.346 and kept["machine"]["device"] == "NVIDIA H200"
    assert kept["command"] and kept["date"] == "2024-02-29"
    assert kept["sources"] == {FLAGS: NVCC_FLAGS}  # this course has no solution


def test_figures_of_an_h200_are_shown_before_those_of_an_h100(tmp_path: Path) -> None:
    entries = [Entry(tmp_path, "day01_x", name) for name in ("add", "other")]
    for entry in entries:
        path = recordings.record(report(gpu="NVIDIA H100 80GB HBM3"), entry)
    assert path == tmp_path / "lessons/day01_x/h100.json"
    recordings.record(report(), entries[0])
    shown = [recordings.recorded(entry) for entry in entries]
    assert [found.machine.device for found in shown if found] == ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]


def test_simulated_times_are_never_recorded(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="only times of a real GPU"):
        recordings.record(report("cpu"), Entry(tmp_path, "day01_x", "add"))


@pytest.mark.parametrize("gpu", ["NVIDIA A100-SXM4-80GB", "NVIDIA GH200 480GB", "NVIDIA H2000", ""])
def test_figures_of_another_gpu_go_into_a_file_of_their_own(tmp_path: Path, gpu: str) -> None:
    entry = Entry(tmp_path, "day01_x", "add")
    with pytest.raises(GraderError, match=f"figures of an H200 or an H100, but this GPU is an {gpu}") as raised:
        recordings.record(report(gpu=gpu), entry)
    assert "--record-in FILE" in raised.value.hint and not (tmp_path / "lessons").exists()
    own = tmp_path / "own" / "figures.json"
    assert recordings.record(report(gpu=gpu), entry, own) == own
    assert json.loads(own.read_text())["exercises"]["day01_x/add"]["machine"]["device"] == gpu


@pytest.mark.parametrize("arguments", [["--record"], ["--record", "--all"]])
def test_another_gpu_is_refused_before_it_is_timed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "gpu_name", lambda: "NVIDIA L4")
    monkeypatch.setattr(b, "bench", lambda *_, **__: pytest.fail("it was timed"))
    names = [] if "--all" in arguments else ["residual_add"]
    assert run(["bench", *names, "--device", "cuda", *arguments]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "this GPU is an NVIDIA L4" in said and "--record-in FILE" in said


@pytest.mark.parametrize("on_device", [False, True])
def test_timing_in_the_child(libraries: tuple[Path, Path], on_device: bool) -> None:
    task = exercise("double_it")
    call = task.call(task.cases[0], "f32", 1)
    placed = prepare_on_device(call, HostMemory) if on_device else prepare(call, quick=True)
    with Child(build_runner(), libraries[1], libraries[0]) as child, placed as buffers:
        assert not (buffers.results()["out"] == 2 * call.tensors["x"]).any()
        for runs, sets in ((5, 1), (7, 3)):
            times = b.time_in_child(task, call, buffers, child, runs, sets, 0)
            assert len(times) == runs and all(t >= 0 for t in times)
        assert (buffers.results()["out"] == 2 * call.tensors["x"]).all()


@pytest.mark.parametrize("where", [" 64 32", " 4096 999999999999"])
def test_invalid_device_memory_is_refused(
    libraries: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Refuse outputs that begin after the memory's end, and memory that cannot be mapped."""
    task = exercise("double_it")
    call = task.call(task.cases[0], "f32", 1)
    monkeypatch.setattr(DeviceBuffers, "where", where)
    if "999" in where:
        monkeypatch.setattr(DeviceBuffers, "files", [])
    with Child(build_runner(), libraries[1], libraries[0]) as child, prepare_on_device(call, HostMemory) as buffers:
        with pytest.raises(GraderError, match="the request cannot be read"):
            b.time_in_child(task, call, buffers, child, 3, 1, 0)
        assert child.alive


@pytest.mark.parametrize(("launcher", "says"), [("crash", "did not return"), ("refuse", "the kernel failed")])
def test_a_kernel_that_cannot_be_timed(libraries: tuple[Path, Path], launcher: str, says: str) -> None:
    task = exercise(launcher)
    call = task.call(task.cases[0], "f32", 1)
    with (
        Child(build_runner(), libraries[1], libraries[0]) as child,
        prepare(call) as buffers,
        pytest.raises(GraderError, match=says),
    ):
        b.time_in_child(task, call, buffers, child, 3, 1, 0)


TASKS = """
import torch
from grader.course.task import Bench, Case, Exercise, Input, Output, normal

twice = Exercise(
    summary="Double it.",
    launchers="void twice(const float* x, float* out, int n, cudaStream_t stream)",
    inputs={"x": Input("n", normal(mean=1.0))},
    outputs={"out": Output("n")},
    reference=lambda x: 2 * x,
    cases=[Case("one", n=1)],
    bench=[Bench("small", n=100), Bench("large", n=5000)],
    flops=lambda d: d["n"],
    torch_baseline=lambda x: 2 * x,
)
"""


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """Return a course with one exercise, solved."""
    folder = tmp_path / "exercises" / "day01_x"
    folder.mkdir(parents=True)
    (folder / "tasks.py").write_text(TASKS)
    (folder / "twice.cu").write_text(KERNEL)
    return Entry(tmp_path, "day01_x", "twice")


def test_a_whole_bench(entry: Entry, pretended_gpu: None) -> None:
    said: list[str] = []
    report = b.bench(entry, on_progress=said.append, compiled=False)
    assert [(t.name, t.dtype) for t in report.timings] == [("small", "f32"), ("large", "f32")]
    assert said == ["building", "small (f32)", "large (f32)"]
    for timing in report.timings:
        assert timing.runs >= events.THOROUGH.fewest_runs and 0 < timing.p50_us <= timing.p99_us
        assert timing.mean_us and timing.minimum_us and timing.maximum_us and timing.deviation_us is not None
        assert timing.minimum_us <= timing.mean_us <= timing.maximum_us and timing.p99_us <= timing.maximum_us
        assert timing.bytes == 8 * timing.dims["n"] and timing.torch_eager_us == 3.0 and timing.torch_compile_us is None
        assert timing.percent_of_roofline and timing.torch_ratio and timing.note == "" and timing.copy_us == 3.0
    assert b.bench(entry, sizes={("large", "f32")}, compiled=False).timings[0].name == "large"
    assert json.loads(recordings.record(report, entry).read_text())["exercises"]["twice"]["device"] == "cuda"


def test_a_whole_stage(entry: Entry, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Time a kernel by events and by the grader's own clock, with all steps of the stage *fast*."""
    asked: list[frozenset[str]] = []
    said: list[str] = []
    for name in ("gpu_architecture", "uuid", "compile_kernel", "build_runner", "GpuMemory"):
        monkeypatch.setattr(fast, name, getattr(b, name))
    monkeypatch.setattr(fast, "measure_machine", lambda dtypes: asked.append(dtypes) or b.measure_machine())
    monkeypatch.setattr(turns, "folder", lambda: tmp_path)
    monkeypatch.setattr(verified, "SLACK_US", 1e8)
    monkeypatch.setattr(fast, "_contradicted", lambda timing: False)  # events and clock both show the simulator's time
    started: list[tuple[Path, bool]] = []

    class Started(Child):
        def start(self) -> str:
            started.append((self.kernel, self.warm is not None))
            return super().start()

    for module in (b, fast):
        monkeypatch.setattr(module, "Child", Started)
    libsim = b.compile_kernel(entry.skeleton).libsim
    with WarmRunners(Child(b.build_runner(), Path(), libsim) for _ in range(3)) as warm:
        with warm._changed:
            assert warm._changed.wait_for(lambda: len(warm._ready) == 3, 60)
        stage = fast.judge_fast(entry.load(), entry.skeleton, NO_JAIL, said.append, warm)
        assert not warm._ready, "all of them should have been taken"
    assert stage.status == PASSED, stage.message
    kernel, empty = started[0][0], started[1][0]
    assert started == [(kernel, True), (empty, True), (kernel, True), (empty, False)]
    assert [(t.name, t.runs >= 10, t.torch_eager_us, t.copy_us, t.note) for t in stage.timings] == [
        ("small", True, 3.0, 3.0, ""),
        ("large", True, 3.0, 3.0, ""),
    ]
    assert asked == [frozenset({"f32"})]
    assert said[1:] == ["building", "small (f32)", "large (f32)", "the grader's own clock"]


class NoMemory(HostMemory):
    """Memory that the driver cannot share, as under WSL."""

    def __init__(self, size: int) -> None:
        raise SharingFailed("cuMemCreate returns error 801")


class FullMemory(HostMemory):
    """Memory of a GPU that has too little of it."""

    def __init__(self, size: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")


class UnmappableMemory(HostMemory):
    """Memory that the kernel's process cannot map."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        os.close(self.file)
        self.file = os.open(os.devnull, os.O_RDWR)


@pytest.mark.parametrize(
    ("memory", "words"),
    [(HostMemory, [7, 7]), (NoMemory, [5, 5]), (FullMemory, [5, 5]), (UnmappableMemory, [7, 5, 5])],
)
def test_times_are_the_same_where_memory_cannot_be_shared(
    entry: Entry, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch, memory: Any, words: list[int]
) -> None:
    """Copy the tensors through files if memory cannot be shared, and try that only once."""
    asked: list[list[str]] = []
    whole = Child.request

    def request(child: Child, text: str, *arguments: Any, **more: Any) -> Any:
        asked.append(text.partition("\n")[0].split())
        return whole(child, text, *arguments, **more)

    monkeypatch.setattr(Child, "request", request)
    monkeypatch.setattr(b, "GpuMemory", memory)
    timings = b.bench(entry, compiled=False, pace=events.QUICK).timings
    assert [timing.note for timing in timings] == ["", ""] and all(timing.runs >= 10 for timing in timings)
    assert [len(head) for head in asked if head[3] == "1"] == words, "each size begins with one run"
    assert {head[2] for head in asked} == {"2"}, "two runs before the timed ones"


@pytest.mark.parametrize(
    ("pace", "long_us", "first", "turns", "rounds"),
    [
        (events.QUICK, 20_000.0, ["short 1", "long 1"], [0.1, "short 200", 0.004, "long 5"], 2),
        (events.THOROUGH, 10_000.0, ["short 3", "long 3"], [0.1, "short 67", 0.1, "long 4"], 6),
    ],
)
def test_clocks_run_alternately_with_pauses(
    monkeypatch: pytest.MonkeyPatch, pace: events.Pace, long_us: float, first: list[str], turns: list[Any], rounds: int
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(events.time, "sleep", lambda seconds: done.append(round(seconds, 6)))

    def clock(name: str, microseconds: float) -> b.Clock:
        return lambda runs: done.append(f"{name} {runs}") or [microseconds] * runs

    times = events.in_turns({"short": clock("short", 2.0), "long": clock("long", long_us)}, pace)
    assert done == first + turns * rounds
    short, long = (int(turn.split()[1]) for turn in turns[1::2])
    assert times == {"short": [2.0] * short * rounds, "long": [long_us] * long * rounds}


def test_a_copy_of_the_same_bytes(pretended_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[tuple[Any, int]] = []

    def keep(functions: Any, runs: int, flush_bytes: int, pace: events.Pace) -> list[float]:
        assert runs == (0 if pace is events.THOROUGH else 20)
        timed.append((functions, flush_bytes))
        return [7.0]

    monkeypatch.setattr(b, "time_on_gpu", keep)
    assert [b.copy_of(size, 1000) for size in (5120, 1100, 10)] == [7.0] * 3
    assert [(len(functions), flush) for functions, flush in timed] == [(1, 0), (3, 0), (1, 2000)]
    assert b.copy_of(10, 1000, events.QUICK) == 7.0
    for functions, size in zip((timed[0][0], timed[1][0]), (5120, 1024)):
        for copy in functions:
            (source,), target = copy.args, copy.func.__self__
            assert source.nbytes + target.nbytes == size and bool((copy() == source).all())
    assert len({copy.args[0].data_ptr() for copy in timed[1][0]}) == 3


def test_a_fast_but_wrong_kernel_is_reported(entry: Entry, pretended_gpu: None) -> None:
    entry.skeleton.write_text(KERNEL.replace("2.0f", "3.0f"))
    assert "differs from torch's result by 0.5" in b.bench(entry, compiled=False).timings[0].note


def test_torchs_extra_tensors_are_created_before_timing(
    entry: Entry, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = entry.skeleton.parent / "tasks.py"
    text = tasks.read_text()
    assert text.count("torch_baseline=lambda x: 2 * x") == 1
    prepared = "torch_prepare=lambda x: {'factor': x.new_full((1,), 2.0)}, torch_baseline=lambda x, factor: factor * x"
    tasks.write_text(text.replace("torch_baseline=lambda x: 2 * x", prepared))
    timings = b.bench(entry, compiled=False).timings
    assert [timing.torch_eager_us for timing in timings] == [3.0, 3.0] and not any(timing.note for timing in timings)


def test_a_recorded_report_is_read_back(tmp_path: Path) -> None:
    entry = Entry(tmp_path, "day01_x", "add")
    assert recordings.recorded(entry) is None
    path = recordings.record(report(), entry)
    kept = recordings.recorded(entry)
    assert kept is not None and kept.machine == report().machine and kept.command == report().command
    assert kept.timings[0].percent_of_roofline == pytest.approx(80) and kept.timings[0].torch_ratio == 2.0
    assert recordings.recorded(Entry(tmp_path, "day01_x", "other")) is None
    assert kept.timings[0].mean_us is None  # files written by older versions have no mean
    path.write_text('{"exercises": {"add": {"machine": {}}}}')
    with pytest.raises(GraderError, match="cannot be read"):
        recordings.recorded(entry)


def test_times_of_the_simulator_are_labeled_as_such(entry: Entry) -> None:
    timing = b.bench(entry, device="cpu").timings[0]
    assert "not a GPU" in timing.clock and timing.note and timing.percent_of_roofline is None


def test_without_a_gpu_there_is_one_clear_message() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(GraderError, match="no usable GPU"):
        measure_machine()


@pytest.mark.parametrize("name", ["block_sparse", "csr_attention", "global_local_random", "flash_attention_backward"])
def test_torch_is_timed_on_the_same_task(name: str) -> None:
    """Check that the functions of torch that are timed for comparison compute what the reference computes."""
    task = course.find(name).load()
    assert task.efficient is not None and task.torch_baseline is not None
    call = task.call(task.efficient, "f32", seed=11)
    arguments = {**call.scalars, **call.tensors}
    for function in (task.torch_prepare, task.torch_baseline):
        if function is None:
            continue
        result = function(**named(function, arguments))
        if function is task.torch_prepare:
            arguments.update(result)
    expected = task.expected(call)
    found = result if isinstance(result, dict) else {"out": result}
    for output, tensor in found.items():
        off = (tensor.double() - expected[output]).norm() / expected[output].norm()
        assert float(off) < 1e-4, output


def test_an_impossible_time() -> None:
    assert "1.3 us is impossible, because this GPU needs at least 2.17 us" in b.faster_than_possible(1.3, 2.17)
    assert b.faster_than_possible(2.17, 2.17) == ""
