"""A stand-in for the simulator and launchers to call, built once per session."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grader.frontend.toolchain.compilers import find_cxx

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the paths of the stand-in simulator and of the launchers."""
    folder = tmp_path_factory.mktemp("runner")
    built = []
    for name in ("fake_simulator", "fake_kernels"):
        target = folder / f"{name}.so"
        command = [
            *find_cxx().command,
            "-std=c++17",
            "-O0",
            "-shared",
            "-fPIC",
            "-o",
            str(target),
            str(HERE / f"{name}.cpp"),
        ]
        subprocess.run(command, check=True)
        built.append(target)
    return built[0], built[1]
