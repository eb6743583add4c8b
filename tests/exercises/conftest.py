"""Helpers for the tests of all exercises: the wrong kernels, and a verdict as a learner sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.course import Course, Entry
from grader.course.authoring.mistakes import Mistake, read_mistakes
from grader.report.terminal import as_text
from grader.verdict import Verdict

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
VERDICTS = Path(__file__).parent / "test_verdicts.py"


@dataclass(frozen=True)
class Wrong:
    """A wrong kernel, which contains one mistake."""

    entry: Entry
    mistake: Mistake


def wrong_kernels() -> list[Wrong]:
    """Return all wrong kernels of the course."""
    return [Wrong(entry, mistake) for entry in COURSE.exercises for mistake in read_mistakes(entry).wrong]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all kernels of an exercise consecutively, so that test_verdicts.py can reuse the exercise's random inputs."""
    verdicts = [place for place, item in enumerate(items) if item.path == VERDICTS]
    for place, item in zip(verdicts, sorted((items[place] for place in verdicts), key=exercise_of)):
        items[place] = item


def exercise_of(item: pytest.Item) -> str:
    """Return the name of the exercise that a test grades, or an empty string."""
    values = getattr(getattr(item, "callspec", None), "params", {})
    entry = values["wrong"].entry if "wrong" in values else values.get("entry")
    return entry.name if entry is not None else ""


def as_seen(verdict: Verdict) -> str:
    """Return the terminal report, on one line."""
    return " ".join(as_text(verdict, width=200).split())
