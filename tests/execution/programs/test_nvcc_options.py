"""``grader nvcc`` accepts common nvcc command lines and writes ordinary object files, libraries and executables."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.execution.programs.nvcc_options import read_command_line
from grader.frontend.toolchain.compilers import find_cxx
from grader.setup.errors import GraderError
from tests.execution.programs.running import KERNELS


def test_a_usual_command_line() -> None:
    call = read_command_line(
        shlex.split(
            "-O3 -std=c++14 -arch=sm_70 -gencode arch=compute_80,code=sm_80 -Iinclude -I other -DN=3 "
            "-D M -c a.cu -o a.o -Xcompiler -Wall,-O3,-fopenmp --use_fast_math -lineinfo -Llib -lm -lcudart"
        )
    )
    assert call.inputs == [Path("a.cu")] and call.output == Path("a.o") and call.compile_only
    assert call.include_dirs == [Path("include"), Path("other")] and call.defines == ["-DN=3", "-DM"]
    assert call.host_flags == ["-Wall", "-fopenmp"] and call.std == "c++14"
    assert call.link_flags == [f"-L{Path('lib').resolve()}", "-lm"]
    assert call.ignored == ["-O3", "-arch=sm_70", "-gencode arch=compute_80,code=sm_80", "--use_fast_math", "-lineinfo"]


@pytest.mark.parametrize("line", ["-ptx a.cu", "-shared a.cu", "-o"])
def test_unsupported_outputs_are_named(line: str) -> None:
    with pytest.raises(GraderError):
        read_command_line(line.split())


def test_a_make_file_builds_a_program_that_shows_its_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(KERNELS / "endings.cu", "endings.cu")
    assert run(["nvcc", "-O2", "-c", "endings.cu", "-o", "endings.o"]) == 0
    assert run(["nvcc", "endings.o", "-o", "program", "-lm"]) == 0
    assert capfd.readouterr().err == ""
    done = subprocess.run(["./program", "exit"], capture_output=True, text=True)
    assert done.returncode == 3
    said = " ".join(done.stderr.split())
    assert "past the end of memory from cudaMalloc (32 bytes) at endings.cu:" in said
    assert "The program ended with status 3. There is 1 finding in 1 launch." in said


def test_options_without_effect_are_named_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k(int* x) { *x = 1; }\n")
    assert run(["nvcc", "-O2", "-arch=sm_70", "-c", str(source), "-o", str(tmp_path / "a.o")]) == 0
    assert capfd.readouterr().err == ""
    assert run(["nvcc", "-v", "-O2", "-arch=sm_70", "-c", str(source), "-o", str(tmp_path / "a.o")]) == 0
    assert "no effect for the simulated GPU: -O2 -arch=sm_70" in " ".join(capfd.readouterr().err.split())


def test_variables_set_workers_and_the_time_limit_of_a_built_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    assert run(["nvcc", str(KERNELS / "endings.cu"), "-o", str(program)]) == 0

    def started(**variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **variables}
        return subprocess.run([program, "hang"], capture_output=True, text=True, env=environment)

    done = started(GRADER_TIMEOUT="0.5", GRADER_WORKERS="2")
    assert done.returncode == -signal.SIGTERM
    said = " ".join(done.stderr.split())
    line = (KERNELS / "endings.cu").read_text().split("x[0] += i")[0].count("\n") + 1
    assert f"The program was stopped after 0.5 s, while it was at endings.cu:{line} in forever." in said
    for variable in ("GRADER_TIMEOUT", "GRADER_WORKERS"):
        done = started(**{variable: "many"})
        assert done.returncode == 2 and f"error: {variable}=many: set it to a number of " in done.stderr


def test_makefiles_that_name_cudas_folder_link_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["nvcc", "--toolkit"]) == 0
    folder = capfd.readouterr().out.strip()
    (tmp_path / "device.cu").write_text(
        '__global__ void k(int* x) { x[threadIdx.x + 1] = 7; }\nextern "C" int launch() {\n    int *x, y = 0;\n'
        "    cudaMalloc(&x, 4);\n    k<<<1, 1>>>(x);\n    return cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);\n}\n"
    )
    (tmp_path / "host.c").write_text(
        "int launch();\nint cudaSetDevice();\nint main() { return cudaSetDevice(0) + launch(); }\n"
    )
    assert run(["nvcc", f"-I{folder}/include", "-c", "device.cu"]) == 0
    compiler = find_cxx().command[0]
    subprocess.run([compiler, "-x", "c", "-c", "-w", "host.c"], check=True)
    subprocess.run(
        [compiler, "host.o", "device.o", f"-L{folder}/lib64", "-lcuda", "-lcudart", "-o", "both"], check=True
    )
    done = subprocess.run(["./both"], capture_output=True, text=True)
    assert done.returncode == 0 and "device.cu:1, block (0, 0, 0) thread (0, 0, 0)" in " ".join(done.stderr.split())


def test_options_in_a_file_and_a_rule_for_make(tmp_path: Path) -> None:
    (tmp_path / "in clude").mkdir()
    (tmp_path / "in clude" / "n.h").write_text("#define N 3\n")
    source, rule, made = tmp_path / "a.cu", tmp_path / "a.d", tmp_path / "a.o"
    source.write_text('#include "n.h"\n#include <cstdio>\n__global__ void k(int* x) { *x = N; }\n')
    (tmp_path / "includes.rsp").write_text(f'-I"{tmp_path}/in clude"\n')
    words = ["--options-file", str(tmp_path / "includes.rsp"), "-forward-unknown-to-host-compiler", "-MD", "-MT", "it"]
    assert run(["nvcc", *words, "-MF", str(rule), "-x", "cu", "-c", str(source), "-o", str(made)]) == 0
    assert made.exists()
    assert rule.read_text() == f"it: {source} {str(tmp_path / 'in clude' / 'n.h').replace(' ', chr(92) + ' ')}\n"
    with pytest.raises(GraderError, match="cannot be read"):
        read_command_line(["--options-file", str(tmp_path / "missing.rsp")])


CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(it LANGUAGES CXX CUDA)
add_executable(app main.cu kernel.cu)
target_include_directories(app PRIVATE include)
target_compile_definitions(app PRIVATE N=64)
"""


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake_accepts_it_as_nvcc(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "go.h").write_text("void go(int* x);\n")
    (tmp_path / "kernel.cu").write_text(
        '#include "go.h"\n__global__ void k(int* x) { x[threadIdx.x] = 7; }\nvoid go(int* x) { k<<<1, N + 1>>>(x); }\n'
    )
    (tmp_path / "main.cu").write_text(
        '#include "go.h"\nint main() { int* x; cudaMallocManaged(&x, N * 4); go(x); cudaFree(x); }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    assert run(["nvcc", "--toolkit"]) == 0
    nvcc = Path(capfd.readouterr().out.strip()) / "bin" / "nvcc"
    for line in (["-S", ".", "-B", "build", f"-DCMAKE_CUDA_COMPILER={nvcc}"], ["--build", "build"]):
        done = subprocess.run(["cmake", *line], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([tmp_path / "build" / "app"], capture_output=True, text=True)
    assert "kernel.cu:2" in done.stderr and "0 bytes past the end" in " ".join(done.stderr.split())
