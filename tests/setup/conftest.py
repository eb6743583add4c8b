"""A course that consists of one package. Its set-up uses a fake pip that tests can stop at any step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DRIVE = Path(__file__).with_name("drive.py")
PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tiny"
version = "1.0"
requires-python = "{supported}"
dependencies = ["torch"]
optional-dependencies = {{ test = [] }}

[tool.setuptools]
packages = ["grader"]
"""
# Replaces the module that builds the simulator. Like the fake pip, it hangs or fails if a test requests that.
INSTALL = """\
import sys, pathlib
if (pathlib.Path.cwd() / "fake.json").exists():
    import pip.__main__
    pip.__main__.told("ahead")
(pathlib.Path(sys.prefix) / "built").touch()
"""


class TinyCourse:
    """A course folder with only the repository's Makefile and grader.setup."""

    def __init__(self, root: Path):
        self.root = root
        (root / "grader").mkdir(parents=True)
        shutil.copytree(REPOSITORY / "grader" / "setup", root / "grader" / "setup")
        (root / "grader" / "__init__.py").touch()
        (root / "grader" / "cli").mkdir()
        (root / "grader" / "cli" / "__init__.py").touch()
        (root / "grader" / "cli" / "install.py").write_text(INSTALL)
        shutil.copy(REPOSITORY / "Makefile", root)
        supported = next(line for line in (REPOSITORY / "pyproject.toml").open() if line.startswith("requires-python"))
        (root / "pyproject.toml").write_text(PYPROJECT.format(supported=supported.split('"')[1]))
        self.pin("2.0")

    def pin(self, version: str) -> None:
        """Pin torch to a version in constraints.txt."""
        (self.root / "constraints.txt").write_text(f"torch=={version}\n")

    def tell(self, place: str | None, **more: str) -> None:
        """Set the step at which the fake pip hangs, or prints ``says`` and fails. None: it does neither."""
        (self.root / "reached").unlink(missing_ok=True)
        (self.root / "fake.json").write_text(json.dumps({"place": place, **more}))

    def start(self, *arguments: str, python: str | Path = sys.executable, **variables: str) -> subprocess.Popen:
        """Start the set-up, as `make` does."""
        return subprocess.Popen(
            [python, "-ESs", DRIVE, *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | variables,
        )

    def set_up(self, *arguments: str, **more: str) -> tuple[int, str]:
        """Run the set-up to its end; return its exit status and output."""
        process = self.start(*arguments, **more)
        said, _ = process.communicate(timeout=1000)
        return process.returncode, said

    def stop(self, place: str, number: int, *arguments: str) -> tuple[int, str]:
        """Run the set-up until it reaches a step, then send it a signal."""
        self.tell(place)
        process = self.start(*arguments)
        while not (self.root / "reached").exists():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)
        process.send_signal(number)
        said, _ = process.communicate(timeout=1000)
        self.tell(None)
        return process.returncode, said

    @property
    def torch(self) -> str:
        """The version of torch in .venv if it is completely installed; otherwise empty."""
        found = [path.read_text() for path in self.root.glob(".venv/lib/python3*/site-packages/torch/version.txt")]
        return found[0] if found else ""

    @property
    def complete(self) -> bool:
        """Return whether the set-up reports that it is complete, and the installed files confirm it."""
        return (
            (self.root / ".venv" / ".installed").exists()
            and (self.root / ".venv" / "built").exists()
            and bool(self.torch)
        )


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyCourse:
    """Return a course that was never set up."""
    monkeypatch.setenv("GRADER_CXX", "true")  # any program works: nothing is compiled here
    return TinyCourse(tmp_path / "course")
