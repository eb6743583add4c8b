"""A small course in a temporary folder, and a fake judge that needs no compiler."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.cli.app import run
from grader.course import Course, Entry
from grader.judge import CheckOptions
from grader.verdict import CaseResult, Stage, Verdict
from tests.small_course import write_course

TASKS = """
from grader.course.task import Exercise, Input, Output

first = Exercise(
    summary="Do it.",
    launchers="void first(float* x, int rows, cudaStream_t stream)", inputs={"w": Input("4")}, reference=None, cases=[],
    outputs={"x": Output("rows 4", inout=True)},
)
second = Exercise(
    summary="Find it.",
    launchers="void second(float* x, cudaStream_t stream)", inputs={}, outputs={}, reference=None, cases=[],
)
"""
EXERCISES = {
    "day01_start/first": 'title = "The first"\nkind = "implement"\npoints = 10',
    "day01_start/second": 'title = "The second"\nkind = "debug"\npoints = 5\n'
    'difficulty = "hard"\nminutes = 75\nneeds = ["day01_start/first"]',
}
HINTS = """
first = ["a nudge", "the idea", "nearly the code"]
second = ["look", "look there", "line 7"]
"""


@dataclass
class Outcome:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        """Return both output streams with each run of white space replaced by one blank."""
        return " ".join((self.out + " " + self.err).split())


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a course with two exercises; commands run inside it."""
    root = tmp_path / "course"
    write_course(root, {"day01_start": TASKS}, EXERCISES)
    (root / "exercises/day01_start/hints.toml").write_text(HINTS)
    for name in ("first", "second"):
        (root / f"exercises/day01_start/{name}.cu").write_text(f"// TODO: {name}\n")
        (root / f"solutions/day01_start/{name}.cu").write_text(f"// solved: {name}\n")
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(root)
    return Course(root)


@pytest.fixture
def grader(course: Course, capsys: pytest.CaptureFixture[str]):
    """Return a function that runs a command line in the course."""

    def call(*arguments: str) -> Outcome:
        code = run(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the judge by one that passes files with the word 'solved'; return the list of judged exercises."""
    asked: list[str] = []

    def check(entry: Entry, file: Path | None = None, options: CheckOptions | None = None, **changes: Any) -> Verdict:
        options = replace(options or CheckOptions(), **changes)
        asked.append(entry.name)
        path = Path(file or entry.skeleton)
        passed = "solved" in path.read_text()
        case = CaseResult("one element", "f32", "passed" if passed else "failed", {"n": 1}, "" if passed else "crash")
        stage = Stage("correct", "passed" if passed else "failed", cases=[case])
        return Verdict(
            entry.name, entry.title, str(path), options.device, options.seed or 7, entry.kind, entry.points, passed,
            float(entry.points) if passed else 0.0, [Stage("builds", "passed", "1 launcher"), stage], 0.1,
        )  # fmt: skip

    monkeypatch.setattr("grader.judge.check", check)
    return asked


@pytest.fixture
def git(course: Course):
    """Make the course a git repository and return a function that runs git in it."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def call(*arguments: str, email: str = "author@example.org") -> str:
        who = ["-c", f"user.email={email}", "-c", "user.name=Somebody", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(course.root), *who, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    call("init", "--quiet")
    call("add", ".")
    call("commit", "--quiet", "-m", "The course")
    return call
