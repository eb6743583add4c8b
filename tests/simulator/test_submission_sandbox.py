"""Tests of the memory that a submission may access, case by case.

``submission_sandbox/calls.cpp`` calls the sandbox directly, without kernels and checks.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator.library import INCLUDE_DIR

HERE = Path(__file__).parent / "submission_sandbox"
SIMULATOR = INCLUDE_DIR.parent


def test_every_access_is_allowed_or_stopped_as_expected(tmp_path: Path) -> None:
    compiler = [
        *find_cxx().command,
        "-std=c++17",
        "-O1",
        "-w",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ]
    library, program = tmp_path / "submission.so", tmp_path / "calls"
    guarded = ["-shared", "-fPIC", "-fcf-protection=branch"] if platform.machine() == "x86_64" else []
    subprocess.run(
        [*compiler, *guarded, "-Wl,-z,relro,-z,now", str(HERE / "submission.cpp"), "-o", str(library)], check=True
    )
    sources = [str(HERE / "calls.cpp"), str(SIMULATOR / "submission_sandbox/sandbox.cpp")]
    includes = [f"-I{INCLUDE_DIR}", f"-I{SIMULATOR}"]
    subprocess.run([*compiler, *includes, *sources, "-o", str(program), "-ldl", "-pthread"], check=True)
    done = subprocess.run([str(program), str(library)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
