"""A copy of the course, and a function that runs `grader dev` in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.course import Course

ROOT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the copy; commands run inside it. Its lessons contain only notebooks."""
    for part in ("exercises", "solutions", "tests/exercises"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "*.py.bak"))
    for notebook in ROOT.glob("lessons/day*/lesson.ipynb"):
        (tmp_path / "lessons" / notebook.parent.name).mkdir(parents=True)
        shutil.copy(notebook, tmp_path / "lessons" / notebook.parent.name)
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def course(root: Path) -> Course:
    return Course(root)


@pytest.fixture
def dev(root: Path, capsys: pytest.CaptureFixture[str]):
    """Return a function that runs ``grader dev``: exit code and streams, with runs of white space as one blank."""

    def call(*arguments: str) -> tuple[int, str]:
        code = run(["dev", *arguments])
        said = capsys.readouterr()
        return code, "\n".join(" ".join(line.split()) for line in (said.out + said.err).splitlines())

    return call
