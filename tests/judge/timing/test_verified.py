"""The grader's own clock measures honest kernels correctly, and cheating kernels gain no time.

The simulator replaces the GPU, and a file in memory replaces the memory shared between processes. Everything except the
durations works as on a GPU.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Group

from grader.course.task import Bench, Exercise, Output, TimeBar, normal
from grader.execution.build.build import compile_kernel
from grader.execution.jail.running import NO_JAIL
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import SharingFailed
from grader.execution.runner.program import build_runner
from grader.judge import fast
from grader.judge.timing import bench, others, turns, verified
from grader.judge.timing.bench import BenchReport
from grader.judge.timing.floor import Limits
from grader.judge.timing.machine import Machine
from grader.report import theme
from grader.report.timings import render_timings
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, Timing
from grader.verdict.wording import stages
from tests.judge.timing.host_memory import HostMemory
from tests.twice import twice

HEAD = """
#include <cuda_runtime.h>
#include <cstdlib>
#include <cstring>
__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
static void work(const float* x, float* out, int n, cudaStream_t stream) {
    twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
"""
LAUNCHER = """
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { %s }
"""


def task(**more: Any) -> Exercise:
    """Return the task out = 2 x."""
    return twice(**{"bench": [Bench("small", n=1000), Bench("large", n=5001)], **more})


def measure(tmp_path: Path, text: str, exercise: Exercise | None = None, limits: Limits | None = None) -> list:
    """Return the times of a kernel at all sizes."""
    exercise = exercise or task()
    file = tmp_path / "twice.cu"
    file.write_text(text)
    runner = build_runner("cpu")
    kernel, nothing = (compile_kernel(path, "cpu", checks=False) for path in (file, verified.NOTHING))
    return verified.verify(
        exercise,
        [(case, dtype) for case in exercise.bench for dtype in exercise.dtypes],
        lambda: Child(runner, kernel.library, kernel.libsim),
        lambda: Child(runner, nothing.library, nothing.libsim),
        HostMemory,
        limits or Limits(l2_bytes=4096),
    )


@pytest.fixture(autouse=True)
def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure few times, because durations do not matter in these tests."""
    monkeypatch.setattr(bench, "GPU", "cpu")
    monkeypatch.setattr(verified, "MOST_SETS", 8)
    monkeypatch.setattr(verified, "NULL_CALLS", 5)
    monkeypatch.setattr(verified, "FEWEST_SETS", 8)  # no measurement ends early
    monkeypatch.setattr(verified, "SHORTEST_US", 0.0)
    monkeypatch.setattr(verified, "SIGNIFICANT", 0.0)  # any difference counts, even on a busy machine
    monkeypatch.setattr(verified, "SLACK_US", 1e8)
    monkeypatch.setattr(verified, "SECONDS", math.inf)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the measured times: 1 ms per call, and 20 ms more with a kernel."""
    whole = verified.Clock._one
    calls = itertools.count()

    def as_if_idle(clock: Any, child: Child, call: Any, launcher: str, lines: list[str]) -> tuple:
        _, *seen = whole(clock, child, call, launcher, lines)
        milliseconds = (1 if launcher == "do_nothing" else 21) + next(calls) % 3 / 100
        return (milliseconds / 1000, *seen)

    monkeypatch.setattr(verified.Clock, "_one", as_if_idle)


SLEEPY = (
    "#include <time.h>\n"
    + HEAD
    + LAUNCHER % "timespec t{0, 20000000}; nanosleep(&t, nullptr); work(x, out, n, stream);"
)


def test_an_honest_kernel_gets_its_time(tmp_path: Path, steady: None) -> None:
    results = measure(tmp_path, HEAD + LAUNCHER % "work(x, out, n, stream);")
    for result in results:
        assert result.problem == "" and result.sets == 8 and result.standard_error > 0, result
        assert 19_900 < result.microseconds < 20_100
    assert [result.name for result in results] == ["small", "large"]


@pytest.mark.parametrize(("spread", "sets"), [(0.01, 6), (5.0, 8)])
def test_a_precise_time_needs_fewer_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: float, sets: int
) -> None:
    """End after the fewest sets if their times agree, and measure all sets if they do not."""
    monkeypatch.setattr(verified, "FEWEST_SETS", 6)
    calls = itertools.count()
    whole = verified.Clock._one
    launched: list[str] = []

    def varying(clock: Any, child: Child, call: Any, launcher: str, lines: list[str]) -> tuple:
        _, *seen = whole(clock, child, call, launcher, lines)
        launched.append(launcher)
        milliseconds = 1 if launcher == "do_nothing" else 21 + spread * (next(calls) % 3)
        return (milliseconds / 1000, *seen)

    monkeypatch.setattr(verified.Clock, "_one", varying)
    monkeypatch.setattr(verified, "FEWEST_NULL_CALLS", 3)
    for resolution, nulls in ((0.0, 3), (-1.0, 5)):
        monkeypatch.setattr(verified, "RESOLUTION_US", resolution)
        launched.clear()
        results = measure(tmp_path, HEAD + LAUNCHER % "work(x, out, n, stream);")
        assert [result.sets for result in results] == [sets, sets] and not any(result.problem for result in results)
        assert launched.count("do_nothing") == 2 * 2 * (verified.WARMUP + nulls)


def test_only_calls_of_the_kernel_are_compared_with_the_reference(tmp_path: Path) -> None:
    references: list[int] = []

    def twice(x: Any) -> Any:
        references.append(len(x))
        return 2 * x

    measure(tmp_path, HEAD + LAUNCHER % "work(x, out, n, stream);", task(reference=twice))
    assert references == [1000] * (8 + verified.WARMUP) + [5001] * (8 + verified.WARMUP)


def test_the_words_that_are_read_first_do_not_follow_torchs_seed() -> None:
    exercise = task()
    places = []
    for _ in range(2):
        torch.manual_seed(1)
        case = exercise.bench[1]
        clock = verified.Clock(exercise, case, "f32", HostMemory, 4096, lambda case=case: exercise.call(case, "f32", 1))
        places.append(torch.randint(1 << 40, (4,), generator=clock.random).tolist())
    assert places[0] != places[1]


def test_the_clock_includes_all_work_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = verified.Clock._one
    seconds: dict[str, list[float]] = {}

    def noted(clock: Any, child: Child, call: Any, launcher: str, lines: list[str]) -> tuple:
        seen = whole(clock, child, call, launcher, lines)
        seconds.setdefault(launcher, []).append(seen[0])
        return seen

    monkeypatch.setattr(verified.Clock, "_one", noted)
    measure(tmp_path, SLEEPY)
    assert len(seconds["twice"]) == 2 * (8 + verified.WARMUP)
    assert min(seconds["twice"]) >= 0.02, "it sleeps for 20 ms, and longer on a busy machine"


CHEATS = {
    "a result kept by address": (
        "static float kept[8192]; static const float* of = nullptr; "
        "if (of != x) { work(x, out, n, stream); of = x; "
        "cudaMemcpy(kept, out, n * sizeof(float), cudaMemcpyDefault); return; } "
        "cudaMemcpy(out, kept, n * sizeof(float), cudaMemcpyDefault);",
        "a timed result is wrong",
    ),
    "it works only during the warm-up": (
        "static int calls = 0; if (calls++ < 3) work(x, out, n, stream);",
        "a timed result is wrong",
    ),
    "every third call does the work": (
        "static int calls = 0; if (calls++ % 3 == 0) work(x, out, n, stream);",
        "a timed result is wrong",
    ),
    "half of the work at large sizes": (
        "work(x, out, n > 1000 ? n / 2 : n, stream);",
        "a timed result is wrong",
    ),
    "zeros": ("cudaMemsetAsync(out, 0, n * sizeof(float), stream);", "a timed result is wrong"),
    "it ends its process": ("exit(0);", "the kernel did not return"),
    "a launch that fails": ("twice_kernel<<<1, 4096, 0, stream>>>(x, out, n);", "the launch failed"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_get_no_time(tmp_path: Path, name: str) -> None:
    body, problem = CHEATS[name]
    results = measure(tmp_path, HEAD + LAUNCHER % body)
    failed = next(result for result in results if result.problem)
    assert failed.problem == problem and failed.text
    assert all(result.microseconds == 0 for result in results if result.problem or not result.sets)


def test_writes_after_the_answer_are_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reject outputs that are written after the grader first looked at them."""
    whole = verified.Clock._one

    def changes_between(clock: Any, *arguments: Any) -> tuple:
        seconds, reply, chosen, first = whole(clock, *arguments)
        return seconds, reply, chosen, torch.where(first == first[0], first + 1, first)

    monkeypatch.setattr(verified.Clock, "_one", changes_between)
    result = measure(tmp_path, HEAD + LAUNCHER % "work(x, out, n, stream);")[0]
    assert "outputs changed" in result.problem and "changed after the launcher had returned" in result.text


def test_writes_next_to_an_output_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = verified.Clock._one

    def writes_past_the_end(clock: Any, *arguments: Any) -> tuple:
        seconds, reply, chosen, _ = whole(clock, *arguments)
        place = clock.buffers.outputs["out"]
        clock.seen[place.start + place.bytes] ^= 1
        return seconds, reply, chosen, clock.seen.view(torch.int32)[chosen - clock.out_start // 4]

    monkeypatch.setattr(verified.Clock, "_one", writes_past_the_end)
    result = measure(tmp_path, HEAD + LAUNCHER % "work(x, out, n, stream);")[0]
    assert result.problem == "a timed result is wrong" and "outside its output" in result.text


def test_a_time_below_the_bound_is_rejected(tmp_path: Path) -> None:
    honest = HEAD + LAUNCHER % "work(x, out, n, stream);"
    possible = measure(tmp_path, honest, limits=Limits(bytes_per_second=1e12))
    assert not any(result.problem for result in possible) and possible[1].floor_us == pytest.approx(5001 * 8e-6)
    slow_memory = measure(tmp_path, honest, limits=Limits(bytes_per_second=1.0))
    assert slow_memory[0].impossible and "which is impossible on this GPU" in slow_memory[0].problem
    assert "moving the bytes" in slow_memory[0].text
    counted = task(flops=lambda d: 2.0 * d["n"])
    slow_arithmetic = measure(tmp_path, honest, counted, Limits(operations_per_second=1.0))
    assert slow_arithmetic[0].floor_us == pytest.approx(2000e6) and slow_arithmetic[0].problem


def test_the_bound_does_not_count_bytes_in_the_cache() -> None:
    call = task().call(Bench("small", n=1000), "f32", 1)
    assert Limits(1e9, l2_bytes=8000).floor_us(task(), call) == 0
    assert Limits(1e9, l2_bytes=2000).floor_us(task(), call) == pytest.approx(6.0)
    assert Limits().floor_us(task(), call) == 0


def test_tensor_cores_multiply_eight_bits_twice_as_fast() -> None:
    counted = replace(task(), flops=lambda _: 2e9)
    call = counted.call(counted.cases[0], "f32", 0)
    limits = Limits(operations_per_second=1e12)
    assert limits.floor_us(counted, call) == pytest.approx(2000)
    assert limits.floor_us(replace(counted, flops_of="f8"), call) == pytest.approx(1000)


def test_an_accumulated_output_is_reset_for_each_set(tmp_path: Path) -> None:
    exercise = task(
        outputs={"out": Output("n", inout=True, start=normal())},
        reference=lambda x, out: out + x,
    )
    adds = HEAD.replace("out[i] = 2.0f * x[i]", "out[i] += x[i]") + LAUNCHER % "work(x, out, n, stream);"
    assert [result.problem for result in measure(tmp_path, adds, exercise)] == ["", ""]
    twice = adds.replace("{ work(", "{ work(x, out, n, stream); work(")
    assert measure(tmp_path, twice, exercise)[0].problem == "a timed result is wrong"


def test_calls_that_are_too_short_are_not_measured() -> None:
    assert verified.verify(task(), [], lambda: None, lambda: None, HostMemory, Limits()) == []  # type: ignore[arg-type, return-value]


# --- the stage ---


@pytest.fixture
def stage_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], Stage]:
    """Return the stage *fast* of a kernel whose events show these times, on the simulator as if it were a GPU."""
    folder = tmp_path / "exercises" / "day01_x"
    folder.mkdir(parents=True)
    monkeypatch.setattr(fast, "gpu_architecture", lambda *_: "sm_90")
    monkeypatch.setattr(fast, "build_runner", lambda *_: build_runner("cpu"))
    monkeypatch.setattr(fast, "compile_kernel", lambda path, *_, **__: compile_kernel(path, "cpu", checks=False))
    monkeypatch.setattr(fast, "GpuMemory", HostMemory)
    monkeypatch.setattr(fast, "uuid", lambda: "GPU-of-this-test")
    monkeypatch.setattr(turns, "folder", lambda: tmp_path)
    machine = Machine("pretended", l2_bytes=4096)
    monkeypatch.setattr(fast, "measure_machine", lambda dtypes: machine)

    def judge(text: str, events_us: float, *limits: TimeBar) -> Stage:
        timings = [
            Timing(case.name, "f32", "GPU", median_us=events_us, bytes=8 * case.dims["n"]) for case in task().bench
        ]
        report = BenchReport("day01_x/twice", "twice.cu", "cuda", machine, timings, "", "")
        monkeypatch.setattr(fast, "bench", lambda *_, **__: report)
        file = folder / "twice.cu"
        file.write_text(text)
        return fast.judge_fast(task(time_bars=list(limits)), file, NO_JAIL)

    return judge


def test_the_time_that_counts_is_shown(stage_of: Callable[[str, float], Stage], steady: None) -> None:
    stage = stage_of(SLEEPY, 20_000.0)
    assert stage.status == PASSED, stage.message
    assert "by the grader's clock" in stage.summary
    assert all(
        timing.verified_us and timing.verified_us > 1000 and timing.verified_error_us for timing in stage.timings
    )
    shown = theme.plain_text(Group(*render_timings(stage.timings)))
    assert "Verified times" in shown and "+-" in shown


def test_a_limit_on_the_time_decides_on_the_gpu_that_it_names(
    stage_of: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "verify", lambda *_: [])
    limits = [TimeBar("large", 9.0, "pretended"), TimeBar("large", 1.0, "H200")]
    stage = stage_of(SLEEPY, 10.0, *limits)
    assert stage.status == FAILED and stages.summary(stage) == "1 of 2 times above the limit"
    stage = stage_of(SLEEPY, 8.0, *limits)
    assert stage.status == PASSED and [bar.status for bar in stage.time_bars] == [PASSED, SKIPPED]


def test_false_times_of_the_kernels_own_process_fail(stage_of: Callable[[str, float], Stage], steady: None) -> None:
    stage = stage_of(SLEEPY, 1.0)
    assert stage.status == FAILED and stage.summary == "the kernel's process reported wrong times"
    assert "does not use the stream" in stage.message and "events around the launch show 1 us" in stage.message


def test_the_same_times_on_a_busy_gpu_are_unverified(
    stage_of: Callable[[str, float], Stage], steady: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def busy(gpu: str) -> Iterator[others.Others]:
        assert gpu == "GPU-of-this-test"
        yield others.Others(known=True, busy={1})

    monkeypatch.setattr(others, "watch", busy)
    stage = stage_of(SLEEPY, 1.0)
    assert stage.status == SKIPPED and stages.summary(stage) == "unverified: the GPU is busy"
    assert stage.timings and "nvidia-smi" in stage.timings[0].note


def test_a_wrong_result_at_a_timed_size_fails(stage_of: Callable[[str, float], Stage]) -> None:
    stage = stage_of(HEAD + LAUNCHER % "work(x, out, n > 1000 ? n - 1 : n, stream);", 10.0)
    assert stage.status == FAILED and stage.summary == "a timed result is wrong"
    assert "large (f32)" in stage.message and "never written" in stage.message


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SharingFailed("the GPU's driver cannot share memory: cuMemCreate gives error 801"), "error 801"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."), "too little memory"),
    ],
)
def test_times_are_unverified_if_nothing_can_be_measured(
    stage_of: Callable[[str, float], Stage], monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def cannot(size: int) -> None:
        raise error

    cannot.device = "cpu"  # type: ignore[attr-defined]
    monkeypatch.setattr(fast, "GpuMemory", cannot)
    stage = stage_of(HEAD + LAUNCHER % "work(x, out, n, stream);", 10.0)
    assert stage.status == PASSED and "by the grader's clock" not in stage.summary
    assert "not verified" in stage.timings[0].note and said in stage.timings[0].note


@pytest.mark.parametrize(
    "error",
    [
        SharingFailed("the GPU's driver cannot share memory: cuMemCreate gives error 2"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
    ],
)
def test_a_kernel_that_takes_all_memory_is_not_excused(
    stage_of: Callable[[str, float], Stage], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made: list[int] = []

    def runs_out(size: int) -> HostMemory:
        made.append(size)
        if len(made) > 2 * (verified.NULL_CALLS + verified.WARMUP) + 3:
            raise error
        return HostMemory(size)

    runs_out.device = "cpu"  # type: ignore[attr-defined]
    monkeypatch.setattr(fast, "GpuMemory", runs_out)
    stage = stage_of(HEAD + LAUNCHER % "work(x, out, n, stream);", 10.0)
    assert stage.status == FAILED and "the kernel's process prevents" in stage.message
