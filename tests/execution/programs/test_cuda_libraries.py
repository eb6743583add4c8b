"""nvcc gets the libraries whose headers a program includes, from the toolkit or from NVIDIA's pip packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.programs.cuda_libraries import library_flags
from grader.execution.programs.files import Unit, unit
from grader.setup.errors import GraderError
from tests.execution.programs.running import KERNELS


@pytest.fixture
def program(tmp_path: Path) -> list[Unit]:
    (tmp_path / "own.h").write_text("#include <cublas_v2.h>\n")
    (tmp_path / "one.cu").write_text('#include "own.h"\n#  include <cublasLt.h>\n#include <cuda_fp16.h>\n')
    (tmp_path / "two.cu").write_text("#include <cublas_v2.h>  // #include <curand.h>\n")
    return [unit(tmp_path / name) for name in ("one.cu", "two.cu")]


def folder_with(top: Path, *names: str) -> Path:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    return top


def test_libraries_of_the_toolkit(program: list[Unit], tmp_path: Path) -> None:
    toolkit = folder_with(tmp_path / "cuda", "include/cublas_v2.h", "include/cublasLt.h", "include/curand.h")
    assert library_flags(program, toolkit, []) == ["-lcublas", "-lcublasLt"]
    assert library_flags([unit(KERNELS / "cub_device.cu")], toolkit, []) == []


def test_libraries_of_pip_packages(program: list[Unit], tmp_path: Path) -> None:
    toolkit = folder_with(tmp_path / "cuda", "include/cuda_runtime.h")
    headers = ("include/cublas_v2.h", "include/cublasLt.h")
    other = folder_with(tmp_path / "cu12", *headers)  # without libraries
    package = folder_with(tmp_path / "cu13", *headers, "lib/libcublas.so.13", "lib/libcublasLt.so.13")
    assert library_flags(program, toolkit, [other, package]) == [
        f"-I{package / 'include'}",
        f"-L{package / 'lib'}",
        f"-Xlinker=-rpath={package / 'lib'}",
        "-l:libcublas.so.13",
        "-l:libcublasLt.so.13",
    ]


def test_a_missing_library_is_named(program: list[Unit], tmp_path: Path) -> None:
    with pytest.raises(GraderError, match=r"has no cublas_v2\.h") as caught:
        library_flags(program, tmp_path, [])
    assert "cublas" in caught.value.hint
