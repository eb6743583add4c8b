"""A course with one cheap exercise, and submissions of a class."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from tests.small_course import write_course
from tests.twice import KERNEL

TASKS = """
from grader.course.task import Case, Exercise, Input, Output, between, normal

twice = Exercise(
    summary="out = 2 x",
    launchers="void twice(const float* x, float* out, int n, cudaStream_t stream)",
    inputs={"x": Input("n", normal(mean=1.0))}, outputs={"out": Output("n")}, reference=lambda x: 2 * x,
    cases=[Case("some", n=100), Case("any", n=between(65, 200))], timeout=2.0,
)
"""


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return the course, and make it the current folder for commands."""
    root = tmp_path / "course"
    twice = 'title = "Twice"\nkind = "implement"\npoints = 10'
    write_course(root, {"day01_start": TASKS}, {"day01_start/twice": twice})
    (root / "exercises/day01_start/twice.cu").write_text('extern "C" void twice() {}\n')
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(root)
    return Course(root)


@pytest.fixture
def hand_in(tmp_path: Path):
    """Return a function that writes a kernel to a student's folder."""
    folder = tmp_path / "class"
    folder.mkdir()

    def put(student: str, kernel: str = KERNEL) -> Path:
        (folder / student).mkdir()
        (folder / student / "twice.cu").write_text(kernel)
        return folder

    return put
