"""The course installed from a wheel, without a clone.

The tests create a course folder, grade an exercise in it, and update it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from grader.cli import doctor
from grader.course import Course
from grader.frontend.toolchain.cache import installed_folder
from grader.setup import shipped

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = "day01_residual_add/residual_add"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


class Installed:
    """A virtual environment with the wheel. It can also import the packages of the environment that runs the tests."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        self.bin = folder / "bin"
        self.packages = next(folder.glob("lib/python3*/site-packages"))
        # List the installed packages' folders in a .pth file. Python searches them last and ignores the .pth files in
        # them, so it does not find an editable installation of the grader.
        places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (self.packages / "others.pth").write_text("".join(f"{place}\n" for place in sorted(places)))
        if installed_folder().is_dir():  # use the simulator that `make` built; without it, the tests build one
            (folder / "share").mkdir()
            (folder / "share" / "llm-kernels").symlink_to(installed_folder())
        pip = [*PIP, "--python", str(self.bin / "python"), "install", "--no-index", "--no-deps", str(wheel)]
        subprocess.run(pip, check=True, capture_output=True, text=True)

    def grader(self, *arguments: str, cwd: Path, **variables: str) -> tuple[int, str]:
        """Return the exit code of a command line and its output, each run of white space as one blank."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GRADER_COURSE")}
        command = [str(self.bin / "grader"), *arguments]
        env = kept | variables
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, " ".join(done.stdout.split())


def copy_of_clone(folder: Path) -> Path:
    """Copy what the wheel is built from, because a build leaves files in its folder."""
    source = folder / "clone"
    for name in ("grader", *shipped.FOLDERS):
        leave = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.bak")
        shutil.copytree(ROOT / name, source / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, source)
    return source


def build(folder: Path) -> Path:
    """Build the wheel."""
    source = copy_of_clone(folder)
    # The wheel must not contain these files: the first two are not part of the course, the third is from an old build.
    (source / "exercises" / "__pycache__").mkdir()
    (source / "exercises" / "__pycache__" / "tasks.pyc").touch()
    (source / "exercises" / "mine.cu.1.bak").touch()
    stale = source / "build" / "lib" / "grader" / shipped.INSIDE / "exercises" / "stale.cu"
    stale.parent.mkdir(parents=True)
    stale.touch()
    wheels = folder / "wheels"
    pip = [*PIP, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(wheels.glob("*.whl"))


def test_an_extra_is_installed_by_the_name_that_pip_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, file in (("other", "other/__init__.py"), ("gpu-course", "grader/__init__.py")):
        record = tmp_path / f"{name}-1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (record / "RECORD").write_text(f"{file},,\n")
        (tmp_path / name.replace("gpu-course", "grader")).mkdir()
        (tmp_path / file).touch()
    assert "pip install -e '.[nvcc]'" in shipped.install_extra("nvcc")
    monkeypatch.setattr(shipped, "IN_WHEEL", True)
    monkeypatch.setattr(shipped, "_INSIDE", tmp_path / "grader" / shipped.INSIDE)
    assert shipped.install_extra("nvcc") == "pip install 'gpu-course[nvcc]'"
    monkeypatch.setattr("grader.frontend.toolchain.compilers.find_nvcc", lambda required: None)
    assert doctor.nvcc_compiler().advice.endswith("\npip install 'gpu-course[nvcc]'")
    monkeypatch.setattr(doctor, "torch_build", lambda: "CPUs")
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho H200\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert doctor.gpu().advice.endswith("pip install --force-reinstall torch")


def test_the_source_distribution_has_the_course(tmp_path: Path) -> None:
    program = "import setuptools.build_meta as backend; backend.build_sdist('built')"
    source = copy_of_clone(tmp_path)
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)
    with tarfile.open(next((source / "built").glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not {*shipped.files(ROOT), "constraints.txt", "grader/setup/wheel.py"} - names


def test_the_course_from_a_wheel(tmp_path: Path) -> None:
    wheel = build(tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = [path for path in (ROOT / "grader").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {path.relative_to(ROOT).as_posix() for path in ours if path.suffix != ".md"}
    assert not wanted - names, "the wheel must contain these files"
    inside = f"grader/{shipped.INSIDE}/"
    assert {name.removeprefix(inside) for name in names if name.startswith(inside)} == set(shipped.files(ROOT))

    installed = Installed(wheel, tmp_path / "venv")
    code, said = installed.grader("doctor", cwd=tmp_path, PATH="/usr/bin:/bin", CUDA_HOME="", CUDA_PATH="")
    assert code == 2 and "`grader init FOLDER` copies the course" in said
    assert "`make`" not in said and "course folder" not in said and "pip install -e" not in said
    assert "pip install 'llm-kernels[nvcc]'" in said or "nvcc nvcc" in said, "this machine may have nvcc elsewhere"
    code, said = installed.grader("list", cwd=tmp_path)
    assert code == 2 and "there is no course in" in said and "grader init FOLDER" in said
    code, said = installed.grader("init", "mine", cwd=tmp_path)
    assert code == 0 and f"The course is in {tmp_path / 'mine'}: {len(Course(ROOT).days)} days" in said
    mine = tmp_path / "mine"
    code, said = installed.grader("list", cwd=mine / "exercises")
    assert code == 0 and "residual_add" in said

    skeleton, solution = mine / "exercises" / f"{EXERCISE}.cu", mine / "solutions" / f"{EXERCISE}.cu"
    assert skeleton.read_bytes() == (ROOT / "exercises" / f"{EXERCISE}.cu").read_bytes()
    code, said = installed.grader("check", EXERCISE, cwd=mine)
    assert code == 1 and "correct" in said, said
    # The kernel includes a header of the course, which the package contains.
    work = '#include "llmk/reduce.cuh"\n' + solution.read_text()
    skeleton.write_text(work)
    code, said = installed.grader("check", EXERCISE, cwd=mine)
    assert code == 0, said
    program = mine / "lessons" / "bring_your_own_kernel" / "row_sums_fixed.cu"
    code, said = installed.grader("run", str(program), cwd=tmp_path)  # programs need no course
    assert code == 0, said

    # A newer package changes two files: one that the learner has not changed and one that the learner has changed.
    newer = installed.packages / "grader" / shipped.INSIDE
    for place in ("exercises/day01_residual_add/hints.toml", f"exercises/{EXERCISE}.cu"):
        with (newer / place).open("a") as file:
            file.write("\n")
    code, said = installed.grader("init", cwd=mine / "lessons")
    assert code == 0 and "updated exercises/day01_residual_add/hints.toml" in said
    assert f"the course's new version is exercises/{EXERCISE}.cu.new" in said
    assert skeleton.read_text() == work
    code, said = installed.grader("reset", EXERCISE, cwd=mine)
    assert code == 0 and "the copy that `grader init` kept" in said
    assert skeleton.read_bytes() == (newer / "exercises" / f"{EXERCISE}.cu").read_bytes()
    code, said = installed.grader("init", cwd=mine)
    assert code == 0 and "was already up to date" in said
