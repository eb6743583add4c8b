"""Each user mistake ends with one clear message and the right exit code; nothing is mocked.

Tests of settings and signals start a new process. The other tests run in this process, which has already loaded torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.cli import app, is_interrupt
from grader.cli.app import run
from grader.frontend.toolchain.cache import cache_folder

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = "day01_residual_add/residual_add"
SOLUTION = ROOT / "solutions" / f"{EXERCISE}.cu"


def check(file: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Run ``grader check`` on a file; return the exit code and the output with each run of white space as one blank."""
    command = [sys.executable, "-m", "grader", "check", EXERCISE, "--file", str(file), *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def check_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], tuple[int, str]]:
    """Return a function that runs ``check`` in this process."""
    monkeypatch.chdir(ROOT)

    def call(file: Path) -> tuple[int, str]:
        code = run(["check", EXERCISE, "--file", str(file)])
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return call


def changed(tmp_path: Path, find: str, replace: str) -> Path:
    """Write the solution with one change, and return its path."""
    source = SOLUTION.read_text()
    assert find in source
    path = tmp_path / "residual_add.cu"
    path.write_text(source.replace(find, replace, 1))
    return path


def test_syntax_error(tmp_path: Path, check_here: Callable[[Path], tuple[int, str]]) -> None:
    path = changed(tmp_path, 'extern "C"', 'int broken = ;\nextern "C"')
    line = path.read_text().splitlines().index("int broken = ;") + 1
    code, said = check_here(path)
    assert code == 1 and "expected" in said and f"residual_add.cu:{line}:14" in said and "int broken = ;" in said


def test_wrong_prototype(tmp_path: Path, check_here: Callable[[Path], tuple[int, str]]) -> None:
    path = changed(
        tmp_path, "float* out, long long n, cudaStream_t stream) {", "float* out, int n, cudaStream_t stream) {"
    )
    code, said = check_here(path)
    assert code == 1 and "const float* residual, float* out, long long n, cudaStream_t stream" in said


def test_no_launcher(tmp_path: Path, check_here: Callable[[Path], tuple[int, str]]) -> None:
    path = tmp_path / "empty.cu"
    path.write_text("// nothing here\n")
    code, said = check_here(path)
    assert code == 1 and "residual_add_f32" in said


def test_unsupported_construct(tmp_path: Path, check_here: Callable[[Path], tuple[int, str]]) -> None:
    path = tmp_path / "residual_add.cu"
    path.write_text(SOLUTION.read_text() + '\n__global__ void t() { asm volatile("frobnicate.b32 %0;" :: "r"(1)); }\n')
    code, said = check_here(path)
    assert code == 1 and "frobnicate.b32" in said


def test_missing_header(tmp_path: Path, check_here: Callable[[Path], tuple[int, str]]) -> None:
    path = tmp_path / "residual_add.cu"
    path.write_text("#include <cublas_v2.h>\n" + SOLUTION.read_text())
    code, said = check_here(path)
    assert code == 1 and "cublas_v2.h" in said


def test_no_compiler() -> None:
    code, said = check(SOLUTION, GRADER_CXX="/nowhere/g++")
    assert code == 2 and "/nowhere/g++" in said and "Install" in said


def test_no_gpu() -> None:
    code, said = check(SOLUTION, "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert code == 2 and "GPU" in said and "--device cpu" in said


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    builds = cache_folder() / "v1"
    builds.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # If this is root, another user runs the kernel. It must be able to open the folder, unlike pytest's.
        Path(folder).chmod(0o755)
        instead = Path(folder) / f"llm-kernels-{os.getuid()}"
        instead.mkdir(mode=0o700)
        (instead / "v1").symlink_to(builds)  # so that the simulator is not built once more
        code, said = check(SOLUTION, GRADER_CACHE=str(blocked / "cache"), TMPDIR=folder)
    assert code == 0 and "is not writable" in said and f"kept in {instead}" in said, said


@pytest.mark.parametrize("after", [0.8, 1.6])
def test_interrupted_and_then_run_again(tmp_path: Path, after: float) -> None:
    path = tmp_path / "residual_add.cu"
    path.write_text(SOLUTION.read_text() + f"\n// {after}\n")
    # Send SIGINT only after the program's first line has run, because Python's own start would print a traceback.
    # Set the signal's handler: if a shell started the tests in the background, this process would ignore SIGINT.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from grader.cli import main; print('begun', flush=True); main()"
    command = [sys.executable, "-c", program, "check", EXERCISE, "--file", str(path)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(after)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert "Traceback" not in err
    # The check may have finished before the signal.
    finished = child.returncode == 0 and not err.strip() and "Passed" in out
    assert finished or (child.returncode, err.strip()) == (130, "interrupted"), out + err
    code, said = check(path)
    assert code == 0 and "Passed" in said


def test_an_interrupt_that_python_turns_into_another_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while Python creates a class raises RuntimeError in Python 3.11.

    The command still reports an interrupt.
    """

    def fails(_: object) -> Any:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    monkeypatch.setattr(app, "_app", fails)
    assert app.run(["check"]) == app.INTERRUPTED
    assert capsys.readouterr().err == "\ninterrupted\n"
    assert not is_interrupt(RuntimeError("of another kind"))
