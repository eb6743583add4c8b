"""What the tests over all exercises share: the list of kernels, built ahead in two threads, and how a learner sees a verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.authoring.mistakes import Mistake, read_mistakes
from grader.building.build import compile_kernel
from grader.course import Course, Entry
from grader.errors import GraderError
from grader.present.terminal import as_text
from grader.verdict import Verdict

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
VERDICTS = Path(__file__).parent / "test_verdicts.py"


@dataclass(frozen=True)
class Wrong:
    """One mistake of an exercise."""

    entry: Entry
    mistake: Mistake


def wrong_kernels() -> list[Wrong]:
    """All mistakes of the course."""
    return [Wrong(entry, mistake) for entry in COURSE.exercises for mistake in read_mistakes(entry).wrong]


@dataclass
class Kernels:
    """The files of the wrong kernels, written once."""

    folder: Path

    def path(self, wrong: Wrong) -> Path:
        """The file of one: it is called as the exercise's own, in a folder of its own."""
        place = (
            self.folder
            / wrong.entry.day
            / wrong.entry.variable
            / "".join(c if c.isalnum() else "_" for c in wrong.mistake.name)
        )
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{wrong.entry.variable}.cu"
        if not path.exists():
            path.write_text(wrong.mistake.text(wrong.entry))
        return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All kernels of an exercise in a row: they get the same inputs, which are drawn once (test_verdicts.py)."""
    verdicts = [place for place, item in enumerate(items) if item.path == VERDICTS]
    for place, item in zip(verdicts, sorted((items[place] for place in verdicts), key=exercise_of)):
        items[place] = item


def exercise_of(item: pytest.Item) -> str:
    """The exercise that a test is about; empty for a test about none."""
    values = getattr(getattr(item, "callspec", None), "params", {})
    entry = values["wrong"].entry if "wrong" in values else values.get("entry")
    return entry.name if entry is not None else ""


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """Where the wrong kernels are."""
    return Kernels(tmp_path_factory.mktemp("wrong"))


@pytest.fixture(scope="session", autouse=True)
def built_ahead(request: pytest.FixtureRequest, kernels: Kernels) -> Iterator[None]:
    """Compiles what the chosen tests will need while earlier tests run."""
    files: list[Path] = []
    for item in request.session.items:
        values = getattr(getattr(item, "callspec", None), "params", {})
        if "wrong" in values:
            wrong = values["wrong"]
            with contextlib.suppress(GraderError, OSError):  # the test itself will say so
                files.append(kernels.path(wrong))
        elif "kernel" in values:
            files.append(values["kernel"])
    pool = ThreadPoolExecutor(max_workers=2)
    for file in dict.fromkeys(files):
        pool.submit(_build, file)
    yield
    pool.shutdown(wait=True, cancel_futures=True)


def _build(file: Path) -> None:
    try:
        compile_kernel(file, "cpu", checks=True)
    except GraderError:
        return


def as_seen(verdict: Verdict) -> str:
    """The terminal report, on one line."""
    return " ".join(as_text(verdict, width=200).split())
