"""`make` with the real pip, also in unusual folders and on machines with few programs."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.setup import wheels
from tests.setup.conftest import TinyCourse

MAKE = shutil.which("make")
# The programs that every machine has. git is not among them.
TOOLS = ("sh", "find", "env", "uname")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder that is the complete PATH. It contains no Python."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool))
    put(folder, "g++", "exit 0")
    return folder


def put(folder: Path, name: str, does: str) -> None:
    """Create a program for a test."""
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


def fake_python(folder: Path, name: str, version: str) -> None:
    """Create a fake Python that answers the Makefile's version query and prints its name when run."""
    put(folder, name, f'case "$*" in *find_spec*) test {version} -ge 11;; *) echo "taken: {name} $*";; esac')


def make(course: TinyCourse, machine: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run make with only the machine's programs on the PATH."""
    surroundings = {"PATH": str(machine), "LC_ALL": "C", "HOME": "/proc/nowhere", **variables}
    done = subprocess.run(
        [MAKE, *arguments],
        cwd=course.root,
        env=surroundings,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=1000,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_python_that_is_too_old_is_skipped(course: TinyCourse, machine: Path) -> None:
    fake_python(machine, "python3", "9")
    fake_python(machine, "python3.12", "12")
    code, said = make(course, machine)
    assert code == 0 and "taken: python3.12 -ESs -m grader.setup" in said


def test_the_python_of_the_environment_comes_first(course: TinyCourse, machine: Path) -> None:
    (course.root / ".venv" / "bin").mkdir(parents=True)
    fake_python(course.root / ".venv" / "bin", "python", "11")
    fake_python(machine, "python3", "13")
    assert "taken: python -ESs" in make(course, machine)[1]
    (course.root / ".venv" / "bin" / "python").unlink()
    assert "taken: python3 -ESs" in make(course, machine)[1]


def test_options_reach_the_set_up(course: TinyCourse, machine: Path) -> None:
    fake_python(machine, "python3", "13")
    _, said = make(course, machine, "TORCH=cpu", "PIP_FLAGS=--proxy 'http://a b'")
    assert "--torch=cpu -- --proxy http://a b" in said and "--this-python" not in said
    (machine / "my pythons").mkdir()
    fake_python(machine / "my pythons", "python3.14", "14")
    _, said = make(course, machine, f"PYTHON={machine}/my pythons/python3.14")
    assert "taken: python3.14" in said and "--this-python" in said


def test_no_python(course: TinyCourse, machine: Path) -> None:
    code, said = make(course, machine)
    assert code == 2 and "no Python 3.11 to 3.14 with venv found" in said and "python3-venv" in said


def test_a_requested_python_that_is_too_old(course: TinyCourse) -> None:
    """An old Python can parse grader/setup/__main__.py up to the line that rejects it."""
    entry = (course.root / "grader" / "setup" / "__main__.py").read_text()
    old = (
        "import sys\nsys.version_info = (3, 9, 18)\nsys.version = '3.9.18 (main)'\n"
        + entry.partition("import sys\n")[2]
    )
    done = subprocess.run([sys.executable, "-c", old], cwd=course.root, capture_output=True, text=True)
    assert done.returncode == 1
    assert "make: the course needs Python 3.11 or newer" in done.stderr and "is 3.9.18" in done.stderr


@pytest.mark.skipif(
    Version(importlib.metadata.version("pip")) < Version("24.1"),
    reason="the test packs the installed pip into a wheel, and checks the progress that pip reports since 24.1",
)
def test_the_whole_set_up(tmp_path: Path, machine: Path) -> None:
    """Set up a course from a zip with `make -j`.

    Its path has a space and an umlaut, the locale is C, and there is no git, no home folder and no network.
    """
    course = TinyCourse(tmp_path / "Kürs für alle")
    index = tmp_path / "wheels"
    index.mkdir()
    pins = {name: wheels.repack(name, index) for name in ("pip", "setuptools")} | {"torch": "2.0"}
    for version in ("2.0", "2.1"):
        wheels.write_empty("torch", version, index)
    (course.root / "constraints.txt").write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    (machine / "python3").symlink_to(os.path.realpath(sys.executable))
    offline = f"PIP_FLAGS=--no-index --find-links {index}"

    code, said = make(course, machine, "-j8", offline)
    assert code == 0 and "complete" in said, said
    assert (course.root / ".venv" / "built").exists()
    assert "WARNING" not in said and len(said.splitlines()) < 10
    assert torch_version(course) == "2.0"
    assert make(course, machine, "-j8", offline) == (0, "")

    constraints = course.root / "constraints.txt"
    constraints.write_text(constraints.read_text().replace("torch==2.0", "torch==2.1"))
    code, said = make(course, machine, offline)
    assert code == 0 and "Updating" in said and torch_version(course) == "2.1", said

    constraints.write_text(constraints.read_text().replace("torch==2.1", "torch==2.2"))
    code, said = make(course, machine, offline)
    assert code == 2 and "torch" in said and "Traceback" not in said
    assert torch_version(course) == "2.1", "the old environment must stay"


def torch_version(course: TinyCourse) -> str:
    """Return the torch version that the environment's Python finds."""
    program = [course.root / ".venv" / "bin" / "python", "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(program, capture_output=True, text=True).stdout.strip()
