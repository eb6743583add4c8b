"""Graders on one machine take turns on a GPU. A time measured while others used the GPU decides nothing."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from grader.course.task import Bench, Case, Exercise, Output, TimeBar
from grader.execution.runner.client import Child
from grader.judge.fast import judge_measured
from grader.judge.timing import others, turns, verified
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, Timing
from grader.verdict.wording import timed

GPU = "GPU-0"
FOLDER = turns.folder
ANOTHER = """
import sys
from pathlib import Path
from grader.judge.timing import turns
turns.folder = lambda: Path(sys.argv[1])
with turns.turn("GPU-0", sys.argv[2] == "alone", 0) as granted:
    print(granted)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the locks."""
    monkeypatch.setattr(turns, "folder", lambda: tmp_path)
    return tmp_path


def granted(alone: bool, gpu: str = GPU) -> bool:
    """Return whether a second turn would be granted at once."""
    with turns.turn(gpu, alone, 0) as got:
        return got


def another_process(place: Path, how: str, **options: object) -> str:
    """Request a turn in another process; return what that process printed."""
    command = [sys.executable, "-c", ANOTHER, str(place), how]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout.strip()  # type: ignore[call-overload]


def test_an_exclusive_turn_excludes_all_others(place: Path) -> None:
    with turns.turn(GPU, alone=True) as got:
        assert got
        assert another_process(place, "alone") == another_process(place, "shared") == "False"
        assert granted(alone=True), "a process that has a turn may request another"
        assert granted(alone=True, gpu="GPU-1"), "turns of another GPU are independent"
    assert another_process(place, "alone") == "True"


def test_shared_turns_exclude_an_exclusive_turn() -> None:
    with turns.turn(GPU, alone=False) as got:
        assert got and granted(alone=False) and not granted(alone=True)
    assert granted(alone=True)


def test_shared_turns_do_not_overtake_a_waiting_exclusive_turn(place: Path) -> None:
    with turns.turn(GPU, alone=False), open(place / f"grader-{GPU}.next.lock") as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
        assert not granted(alone=False)
    assert granted(alone=False)


class Clock:
    """A fake clock that advances only during sleep. At 5 seconds, it calls the function ``happens``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object] = lambda: None) -> None:
        self.now, self.happens = 0.0, happens
        monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))

    def sleep(self, seconds: float) -> None:
        if self.now < 5 <= self.now + seconds:
            self.happens()
        self.now += seconds


@pytest.mark.parametrize(("seconds", "got"), [(10, True), (4, False), (0, False)])
def test_waiting_for_a_turn_has_a_time_limit(
    seconds: int, got: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(place / f"grader-{GPU}.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        clock = Clock(monkeypatch, other.close)
        with turns.turn(GPU, True, seconds) as mine:
            assert mine is got and min(seconds, 5) <= clock.now <= min(seconds, 5) + (0.1 if seconds else 0)
            assert granted(alone=True) is got, "this process must not hold a turn that it did not get"


def test_a_lock_that_cannot_be_taken_grants_no_turn(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    (place / "elsewhere").touch()
    (place / f"grader-{GPU}.lock").symlink_to(place / "elsewhere")
    with turns.turn(GPU, alone=True) as got:
        assert not got and clock.now == 0, "a symbolic link in place of a lock must be refused without waiting"
    (place / f"grader-{GPU}.lock").unlink()
    assert granted(alone=True)


def test_a_pipe_in_place_of_a_lock_does_not_block(place: Path) -> None:
    os.mkfifo(place / f"grader-{GPU}.lock")
    assert granted(alone=True)


def test_all_users_use_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert FOLDER() == Path("/tmp")


def test_another_user_locks_the_same_file(place: Path) -> None:
    before = os.umask(0o077)
    try:
        with turns.turn(GPU, alone=True):
            locks = sorted(place.glob("*.lock"))
            assert len(locks) == 2 and all(lock.stat().st_mode & 0o777 == 0o644 for lock in locks)
    finally:
        os.umask(before)


class NvmlError(Exception):
    """The base class of pynvml's errors."""


class NotFound(NvmlError):
    """The error of pynvml for a device without samples."""


def nvml(there: list[int], used: list[tuple[int, float, int]]) -> ModuleType:
    """Return a fake pynvml that reports these processes and samples.

    A sample: (process, seconds after NOW, percent).
    """
    module = ModuleType("pynvml")

    def utilization(device: str, since: int) -> list[SimpleNamespace]:
        if not used:
            raise NotFound
        return [SimpleNamespace(pid=p, timeStamp=int((NOW + t) * 1e6), smUtil=u) for p, t, u in used]

    module.__dict__.update(
        NVMLError=NvmlError,
        NVMLError_NotFound=NotFound,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda gpu: gpu,
        nvmlDeviceGetComputeRunningProcesses=lambda device: [SimpleNamespace(pid=pid) for pid in there],
        nvmlDeviceGetProcessUtilization=utilization,
    )
    return module


NOW = 1000.0
ME = os.getpid()


@pytest.mark.parametrize(
    ("there", "used", "known", "busy"),
    [
        ([ME], [], True, set()),
        ([ME], [(ME, 6, 90), (11, 6, 90)], True, {11}),
        ([ME], [(11, 6, 10), (13, 6, 9)], True, {11}),  # users below 10 % of the time do not count
        ([ME], [(11, 1, 90), (13, 0.999, 90)], True, {11}),  # samples of the first second do not count
        ([ME], [(12, 6, 90)], True, set()),  # process 12 is a child of this process
        ([1], [(11, 6, 90)], False, set()),  # the ids lack this process, so they are of another namespace
    ],
)
def test_other_users_of_the_gpu(
    there: list[int],
    used: list[tuple[int, float, int]],
    known: bool,
    busy: set[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = nvml(there, used)
    ended: list[bool] = []
    module.nvmlShutdown = lambda: ended.append(True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(others, "time", SimpleNamespace(time=lambda: NOW))
    monkeypatch.setattr(Child, "started", {12})
    with others.watch(GPU) as seen:
        pass
    assert (seen.known, seen.busy, ended) == (known, busy, [True])


def test_without_samples_of_the_driver_no_disturbance_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml([ME], [])

    def fail() -> None:
        raise NvmlError

    module.nvmlInit = fail  # type: ignore[attr-defined]
    for replaced in (module, None):
        monkeypatch.setitem(sys.modules, "pynvml", replaced)
        with others.watch(GPU) as seen:
            pass
        assert not seen.known and not seen.busy


def judged(busy: bool, timing: Timing, *measured: verified.Measured) -> Stage:
    """Return the stage *fast* of an exercise with a limit of 5 us on an H200."""
    task = Exercise(
        summary="nothing",
        launchers="void f(float* out, int n, cudaStream_t stream)",
        inputs={},
        outputs={"out": Output("n")},
        reference=lambda n: None,
        cases=[Case("some", n=1)],
        bench=[Bench("size", n=1)],
        time_bars=[TimeBar("size", at_most_us=5.0, gpu="H200")],
    )
    stage = Stage("fast")
    stage.timings = [timing]
    return judge_measured(stage, task, measured, "NVIDIA H200", busy)


def timing(median: float, own: float | None = None) -> Timing:
    """Return the timing of the only size."""
    return Timing(
        "size", "f32", "GPU", median_us=median, verified_us=own, verified_error_us=None if own is None else 1.0
    )


def test_a_time_on_a_busy_gpu_is_unverified_and_no_verdict() -> None:
    impossible = verified.Measured("size", "f32", problem="less than 1 us", text="impossible", impossible=True)
    for slow in (timing(900.0), timing(1.0, own=900.0)):
        assert judged(False, slow).status == FAILED
        stage = judged(True, slow)
        assert (stage.status, stage.summary, stage.time_bars) == (SKIPPED, timed.BUSY, [])
        assert stage.timings[0].verified_us is None and timed.BUSY_NOTE in stage.timings[0].note
    assert judged(False, timing(1.0), impossible).status == FAILED
    assert judged(True, timing(1.0), impossible).status == SKIPPED
    assert judged(False, timing(1.0)).status == PASSED


def test_a_wrong_result_is_wrong_on_a_busy_gpu_too() -> None:
    wrong = verified.Measured("size", "f32", problem="a timed result is wrong", text="out is wrong")
    assert judged(True, timing(1.0), wrong).status == FAILED


def test_times_are_not_negative() -> None:
    clock = object.__new__(verified.Clock)
    clock.null, clock._null_spread = [50.0, 52.0], 1.0
    result = verified.Measured("size", "f32", floor_us=1000.0)
    clock.conclude([30.0, 31.0, 32.0], result)
    assert result.microseconds == 0.0 and not result.significant
    assert result.impossible and "-" not in result.problem and "less than 35" in result.problem, result.problem
