"""C files beside CUDA files: the headers of the runtime API are C as well as C++."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.execution.jail.imports import exported
from grader.frontend.toolchain.cache import open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator import library
from tests.execution.programs.running import KERNELS

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
INCLUDES = [f"-I{folder}" for folder in library.INCLUDE_DIRS]


def test_a_c_file_runs_beside_a_cuda_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    assert run(["nvcc", str(KERNELS / "host.c"), str(KERNELS / "twice.cu"), "-o", str(program)]) == 0
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.stdout == "8 4 2 cudaErrorInvalidValue\n" and done.returncode == 0
    assert "There are no findings in 1 launch." in " ".join(done.stderr.split())
    assert run(["run", str(KERNELS / "host.c"), str(KERNELS / "twice.cu")]) == 0
    assert capfd.readouterr().out == done.stdout


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("header", ["cuda_runtime_api.h", "cuda_runtime.h", "driver_types.h", "cuda_profiler_api.h"])
def test_headers_are_c(header: str, compiler: str, tmp_path: Path) -> None:
    file = tmp_path / "header.c"
    file.write_text(f"#include <{header}>\n#include <cuda_runtime_api.h>\nint main(void) {{ return cudaSuccess; }}\n")
    for std in ("c99", "c11"):
        flags = (f"-std={std}", "-Wall", "-Wextra", "-Werror", "-DSIM_HOST_FILE", *INCLUDES)
        done = subprocess.run([compiler, *flags, "-c", file, "-o", tmp_path / "o"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_c_files_have_each_function_of_the_runtime(tmp_path: Path) -> None:
    file = tmp_path / "functions.c"
    file.write_text("#include <cuda_runtime_api.h>\n")
    text = subprocess.run(
        [*find_cxx().command, "-x", "c", "-E", "-P", *INCLUDES, file], capture_output=True, text=True, check=True
    ).stdout
    declared = set(re.findall(r'"sim_" "(cuda\w+)"', text))
    libsim = library.ensure_library(find_cxx(), open_cache())
    provided = {name.removeprefix("sim_") for name in exported(libsim) if name.startswith("sim_cuda")}
    assert declared == provided and len(declared) > 130
    listed = ", ".join(f"(void*){name}" for name in sorted(declared))
    file.write_text(
        "#include <cuda_runtime_api.h>\nvoid* functions[] = {" + listed + "};\n"
        "int main(void) { return functions[0] == 0; }\n"
    )
    assert run(["nvcc", str(file), "-o", str(tmp_path / "functions")]) == 0
    assert subprocess.run([tmp_path / "functions"], capture_output=True).returncode == 0


def test_a_cpp_file_uses_members_of_launch_configurations(tmp_path: Path) -> None:
    file = tmp_path / "launch.cpp"
    file.write_text(
        "#include <cuda_runtime.h>\nint main() {\n    cudaLaunchConfig_t config = {};\n    config.gridDim = dim3(2);\n"
        "    int* x;\n    return cudaMalloc(&x, 4) || cudaFree(x) || config.gridDim.x != 2;\n}\n"
    )
    assert run(["run", str(file)]) == 0
