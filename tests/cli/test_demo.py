"""``grader demo`` with the course's day 6."""

from __future__ import annotations

import shutil
from pathlib import Path

from grader.cli.demo import BROKEN, RIGHT
from grader.course import Course
from grader.course.learner import pristine

COURSE = Path(__file__).resolve().parents[2]


def test_the_demo_shows_the_broken_kernel_although_the_learner_fixed_it(grader, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    for part in ("exercises", "solutions", "lessons"):
        shutil.copytree(COURSE / part, tmp_path / part)
    monkeypatch.setenv("GRADER_COURSE", str(tmp_path))
    course = Course(tmp_path)
    pristine.keep_copies(course)
    shutil.copyfile(course.find(BROKEN).solution, course.find(BROKEN).skeleton)

    done = grader("demo")
    assert done.code == 0, done.all
    right, broken = done.out.split("A broken one")
    assert RIGHT in right and "Passed" in right
    assert BROKEN in broken and "stops at Correct" in broken
    assert "grader watch" in broken
    assert max(map(len, done.out.splitlines())) <= 80 + len(str(tmp_path))
