"""A stand-in for the simulator and launchers to call."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.jail.programs import compiled
from grader.frontend.toolchain.compilers import find_cxx

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def libraries() -> tuple[Path, Path]:
    """Return the paths of the stand-in simulator and of the launchers."""

    def built(name: str) -> Path:
        flags = ("-std=c++17", "-O0", "-shared", "-fPIC")
        return compiled(f"{name}.so", name, find_cxx(), flags, [HERE / f"{name}.cpp"])

    return built("fake_simulator"), built("fake_kernels")
