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


PROTOTYPE = "float* out, long long n, cudaStream_t stream) {"
SIGNATURE = "const float* residual, float* out, long long n, cudaStream_t stream"
UNKNOWN_PTX = '\n__global__ void t() { asm volatile("frobnicate.b32 %0;" :: "r"(1)); }\n'


@pytest.mark.parametrize(
    ("find", "replace", "says"),
    [
        ('extern "C"', 'int broken = ;\nextern "C"', ["expected", "residual_add.cu:{line}:14", "int broken = ;"]),
        (PROTOTYPE, PROTOTYPE.replace("long long", "int"), [SIGNATURE]),
        (SOLUTION.read_text(), "// nothing here\n", ["residual_add_f32"]),
        (SOLUTION.read_text(), SOLUTION.read_text() + UNKNOWN_PTX, ["frobnicate.b32"]),
        (SOLUTION.read_text(), "#include <cublas_v2.h>\n" + SOLUTION.read_text(), ["cublas_v2.h"]),
    ],
    ids=["syntax error", "wrong prototype", "no launcher", "unsupported instruction", "missing header"],
)
def test_a_file_that_does_not_compile(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    find: str,
    replace: str,
    says: list[str],
) -> None:
    before, found, after = SOLUTION.read_text().partition(find)
    assert found
    path = tmp_path / "residual_add.cu"
    path.write_text(before + replace + after)
    monkeypatch.chdir(ROOT)
    assert run(["check", EXERCISE, "--file", str(path)]) == 1
    said = " ".join("".join(capsys.readouterr()).split())
    assert not [part for part in says if part.format(line=before.count("\n") + 1) not in said], said


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
    # Import most modules first: Python may ignore a KeyboardInterrupt during an import and keep the import lock.
    program += "import torch, grader.judge.driver; from grader.cli import main; print('begun', flush=True); main()"
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
