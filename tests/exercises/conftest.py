"""What the tests over all exercises share: the list of kernels, built ahead in two threads, and how a learner sees a verdict."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.building.build import compile_kernel
from grader.course import Course, Entry
from grader.errors import GraderError
from grader.present.terminal import as_text
from grader.source import course_headers
from grader.verdict import Verdict

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
_OWN_INCLUDE = re.compile(r'^#include "(llmk/\w+\.cuh)"\n', re.MULTILINE)


@dataclass(frozen=True)
class Wrong:
    """One mistake: a change of the solution, or a file of its own; where it must fail and what a learner must read.

    What is changed may also stand in a header of the course that the solution includes: the header's text then stands in
    the file, as if the learner had written it there.
    """

    entry: Entry
    name: str
    stage: str | list[str]
    """Where it must fail; a list where that may depend on chance, as with a race that may or may not spoil the output."""
    says: str
    find: str = ""
    replace: str = ""
    count: int = 1
    file: str = ""

    @property
    def text(self) -> str:
        """The whole wrong kernel."""
        if self.file:
            return (self.entry.wrong_kernels.parent / self.file).read_text()
        solution = self.entry.solution.read_text()
        if self.find not in solution:
            solution = with_headers_pasted(solution)
        found = solution.count(self.find)
        assert found == self.count, (
            f"{self.name!r}: {self.find!r} occurs {found} times in the solution, not {self.count}"
        )
        return solution.replace(self.find, self.replace)


def with_headers_pasted(text: str) -> str:
    """A kernel file with the text of the headers that it includes, each once, and no ``#include`` of them any more."""
    pasted: set[str] = set()

    def paste(include: re.Match[str]) -> str:
        if include[1] in pasted:
            return ""
        pasted.add(include[1])
        header = (course_headers.FOLDER.parent / include[1]).read_text().replace("#pragma once\n", "")
        return _OWN_INCLUDE.sub(paste, header)

    return _OWN_INCLUDE.sub(paste, text)


def described(entry: Entry) -> dict:
    """The exercise's file of mistakes."""
    if not entry.wrong_kernels.is_file():
        return {}
    return tomllib.loads(entry.wrong_kernels.read_text())


def wrong_kernels() -> list[Wrong]:
    """All mistakes of the course."""
    return [Wrong(entry, **mistake) for entry in COURSE.exercises for mistake in described(entry).get("wrong", [])]


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
            / "".join(c if c.isalnum() else "_" for c in wrong.name)
        )
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{wrong.entry.variable}.cu"
        if not path.exists():
            path.write_text(wrong.text)
        return path


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
            with contextlib.suppress(AssertionError, OSError):  # the test itself will say so
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
