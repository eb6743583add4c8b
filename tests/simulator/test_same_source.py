"""The kernels of these tests are CUDA: nvcc, where there is one, accepts each of them as it is."""

from __future__ import annotations

import subprocess

import pytest

from grader.toolchain.compilers import find_nvcc
from tests.simulator.harness import KERNELS

NAMES = [
    "collective_mistakes",
    "cooperative_groups",
    "cub",
    "cuda_barrier",
    "expressions",
    "half",
    "math",
    "ptx",
    "streams",
    "vector_types",
    "wmma",
]


@pytest.mark.parametrize("name", NAMES)
def test_nvcc_accepts(name, tmp_path):
    nvcc = find_nvcc(required=False)
    if nvcc is None:
        pytest.skip("no nvcc here")
    command = [
        *nvcc.command,
        "-std=c++17",
        "-arch=sm_90",
        "-c",
        str(KERNELS / f"{name}.cu"),
        "-o",
        str(tmp_path / "x.o"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
