"""``grader nvcc`` takes nvcc's usual command lines, and what it makes are ordinary files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.errors import GraderError
from grader.programs.nvcc_options import read_command_line

KERNELS = Path(__file__).parent / "kernels"


def test_a_usual_command_line() -> None:
    call = read_command_line(
        [
            "-O3",
            "-std=c++14",
            "-arch=sm_70",
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-Iinclude",
            "-I",
            "other",
            "-DN=3",
            "-D",
            "M",
            "-c",
            "a.cu",
            "-o",
            "a.o",
            "-Xcompiler",
            "-Wall,-O3,-fopenmp",
            "--use_fast_math",
            "-lineinfo",
            "-Llib",
            "-lm",
            "-lcudart",
        ]
    )
    assert call.inputs == [Path("a.cu")] and call.output == Path("a.o") and call.compile_only
    assert call.include_dirs == [Path("include"), Path("other")] and call.defines == ["-DN=3", "-DM"]
    assert call.host_flags == ["-Wall", "-fopenmp"] and call.std == "c++14"
    assert call.link_flags == [f"-L{Path('lib').resolve()}", "-lm"]
    assert call.ignored == ["-O3", "-arch=sm_70", "-gencode arch=compute_80,code=sm_80", "--use_fast_math", "-lineinfo"]


@pytest.mark.parametrize("line", ["-ptx a.cu", "-shared a.cu", "-o"])
def test_what_it_does_not_make_is_told(line: str) -> None:
    with pytest.raises(GraderError):
        read_command_line(line.split())


def test_a_make_file_builds_a_program_that_shows_its_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(KERNELS / "endings.cu", "endings.cu")
    assert run(["nvcc", "-O2", "-c", "endings.cu", "-o", "endings.o"]) == 0
    assert run(["nvcc", "endings.o", "-o", "program", "-lm"]) == 0
    assert "these options mean nothing: -O2" in capfd.readouterr().err
    done = subprocess.run(["./program", "exit"], capture_output=True, text=True)
    assert done.returncode == 3
    said = " ".join(done.stderr.split())
    assert "past the end of memory from cudaMalloc (32 bytes) at endings.cu:" in said
    assert "There is 1 finding in 1 launch." in said
