"""Times of an earlier check are reported only if nothing has changed, and only if the kernel passed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.course.task import TimeBar
from grader.frontend.toolchain.cache import BuildCache
from grader.frontend.toolchain.compilers import Compiler
from grader.judge.timing import kept as k
from grader.judge.timing.kept import Kept, kept
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, Timing
from tests.execution.runner.fake_driver import FakeDriver

NAME = "day02_reductions/softmax"


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def passed() -> Stage:
    timing = Timing("large", "f32", "GPU", {"n": 5}, runs=20, bytes=8e6, median_us=12.5, verified_us=float("inf"))
    return Stage("fast", PASSED, "large (f32) 12.5 us", timings=[timing])


@pytest.fixture
def place(tmp_path: Path) -> Kept:
    return Kept("a" * 32, BuildCache(tmp_path), "landlock", Clock())


def test_the_result_is_reported_with_its_age(place: Kept) -> None:
    assert place.find() is None
    place.keep(passed())
    for seconds, said in (
        (0, "0 seconds"),
        (1, "1 second"),
        (125, "2 minutes"),
        (3600, "1 hour"),
        (80_000, "22 hours"),
    ):
        place.clock.now = 1000.0 + seconds  # type: ignore[attr-defined]
        found = place.find()
        assert found is not None and found.timings == passed().timings and found.status == PASSED
        assert found.summary == f"large (f32) 12.5 us (measured {said} ago; --again measures anew)"
        assert "An earlier check measured these times" in found.note


@pytest.mark.parametrize("seconds", [-1, k.SECONDS])
def test_a_result_of_another_day_is_not_used(place: Kept, seconds: float) -> None:
    place.keep(passed())
    place.clock.now = 1000.0 + seconds  # type: ignore[attr-defined]
    assert place.find() is None


def test_a_result_in_another_sandbox_is_not_used(place: Kept) -> None:
    place.keep(passed())
    assert replace(place, tier="none").find() is None and place.find() is not None


@pytest.mark.parametrize("status", [FAILED, SKIPPED])
def test_only_a_pass_is_kept(place: Kept, status: Any) -> None:
    place.keep(passed())
    place.keep(Stage("fast", status, "unverified: the GPU is busy"))
    assert place.find() is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"measured": "x"}', '{"measured": 1000, "tier": "landlock", "stage": 3}']
)
def test_a_damaged_file_is_measured_again(place: Kept, text: str) -> None:
    place.keep(passed())
    found = place.cache.find(place.key)
    assert found is not None
    (found / "stage.json").write_text(text)
    assert place.find() is None
    place.keep(passed())
    assert place.find() is not None


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.execution.runner.gpu._driver", lambda: FakeDriver(9, 0))
    monkeypatch.setattr("grader.execution.build.build.find_nvcc", lambda: NVCC)


NVCC = Compiler(("nvcc",), "nvcc", "13.0", "nvcc 13.0")


def test_the_key_changes_with_everything_that_the_times_depend_on(
    on_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Course().find(NAME)
    task = entry.load()
    file = tmp_path / "softmax.cu"
    text = entry.solution.read_text()

    def key() -> str:
        found = kept(entry, task, file)
        assert found is not None
        return found.key

    file.write_text(text)
    first = key()
    assert key() == first
    other = tmp_path / "copy" / "softmax.cu"
    other.parent.mkdir()
    other.write_text(text)
    again = kept(entry, task, other)
    assert again is not None and again.key == first, "the folder has no influence"
    file.write_text(text + "// changed\n")
    assert key() != first
    file.write_text(text)
    task.time_bars.append(TimeBar("large", 9.0, "H200"))
    assert key() != first
    task.time_bars.pop()
    with monkeypatch.context() as other_gpu:
        other_gpu.setattr(k, "uuid", lambda: "GPU-2")
        assert key() != first
    with monkeypatch.context() as other_driver:
        other_driver.setattr(k, "driver_version", lambda: 13010)
        assert key() != first
    with monkeypatch.context() as other_nvcc:
        newer = Compiler(("nvcc",), "nvcc", "13.1", "nvcc 13.1")
        other_nvcc.setattr("grader.execution.build.build.find_nvcc", lambda: newer)
        assert key() != first
    assert key() == first


def test_a_file_that_the_front_end_refuses_has_no_times(on_gpu: None, tmp_path: Path) -> None:
    entry = Course().find(NAME)
    file = tmp_path / "softmax.cu"
    file.write_text('extern "C" void f(std::string x) {}\n')
    assert kept(entry, entry.load(), file) is None
