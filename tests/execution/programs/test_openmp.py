"""OpenMP in the host code of programs: ``grader nvcc -Xcompiler -fopenmp``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.frontend.toolchain.compilers import find_cxx
from tests.execution.programs.running import KERNELS

FILES = [str(KERNELS / name) for name in ("openmp.cu", "openmp_sum.cpp")]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openmp")
    (folder / "empty.cpp").write_text("int main() {}\n")
    argv = [*find_cxx().command, "-fopenmp", "empty.cpp", "-o", "empty"]
    if subprocess.run(argv, cwd=folder, capture_output=True).returncode != 0:
        pytest.skip("the compiler has no OpenMP (clang++ needs libomp)")
    assert run(["nvcc", "-Xcompiler", "-fopenmp", *FILES, "-o", str(folder / "program")]) == 0
    return folder / "program"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_several_threads_launch_kernels(program: Path, workers: str) -> None:
    done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "GRADER_WORKERS": workers})
    assert done.stdout == "499500 999 1019 1039 1059\n" and done.returncode == 0
    assert "There are no findings in 80 launches." in " ".join(done.stderr.split())


def test_a_race_between_the_launches_of_two_threads_is_found(program: Path) -> None:
    done = subprocess.run([program, "same"], capture_output=True, text=True)
    assert "race between streams on element" in " ".join(done.stderr.split())


def test_a_build_without_the_option_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plain.cu"
    file.write_text('extern "C" int omp_get_num_threads();\nint main() { return omp_get_num_threads() - 1; }\n')
    assert run(["nvcc", str(file), "-o", str(tmp_path / "plain")]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert said == (
        "error: used but not defined: omp_get_num_threads For OpenMP, build with -Xcompiler -fopenmp (grader nvcc)."
    )
