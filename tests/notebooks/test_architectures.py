"""Statements of day 14 about nvcc flags, checked with nvcc."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grader.frontend.toolchain.compilers import find_nvcc

ROOT = Path(__file__).resolve().parents[2]
DAY = ROOT / "lessons" / "day14_tensor_cores_blackwell"

WGMMA = 'extern "C" __global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }'
TENSOR_MEMORY = 'extern "C" __global__ void f() { asm volatile("tcgen05.fence::after_thread_sync;"); }'
PLAIN = 'extern "C" __global__ void f(float* x) { *x += 1; }'


def load() -> ModuleType:
    """Load the lesson's module, which is not in a package."""
    spec = importlib.util.spec_from_file_location("day14_architectures", DAY / "architectures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["day14_architectures"] = module
    spec.loader.exec_module(module)
    return module


architectures = load()


def nvcc(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Compile `source` with nvcc and these flags in `folder`."""
    compiler = find_nvcc(required=False)
    if compiler is None:
        pytest.skip("there is no nvcc on this machine to ask")
    (folder / "file.cu").write_text(source, encoding="utf-8")
    command = [*compiler.command, "-std=c++17", "-I", str(ROOT / "lessons"), *arguments, "file.cu"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1000, check=False)


@pytest.mark.parametrize("architecture", architectures.ARCHITECTURES, ids=lambda architecture: architecture.name)
def test_each_flag_builds_mma_sync(architecture: Any, tmp_path: Path) -> None:
    source = (ROOT / "lessons" / "day12_tensor_cores_ampere" / "gemm_4_pipeline.cu").read_text(encoding="utf-8")
    done = nvcc(tmp_path, source, architecture.flag, "-cubin")
    assert done.returncode == 0, done.stderr


def test_without_a_flag_there_is_no_such_mma(tmp_path: Path) -> None:
    refused = nvcc(
        tmp_path,
        (ROOT / "lessons" / "day12_tensor_cores_ampere" / "gemm_4_pipeline.cu").read_text(encoding="utf-8"),
        "-cubin",
    )
    assert refused.returncode != 0 and "sm_80 or higher" in refused.stderr, refused.stderr


def test_one_file_for_all_of_them(tmp_path: Path) -> None:
    done = nvcc(tmp_path, PLAIN, *architectures.everywhere(), "-c", "-o", "file.o")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("source", "builds", "does_not"),
    [(WGMMA, "90a", "90"), (TENSOR_MEMORY, "100a", "100"), (WGMMA, "90a", "100a"), (TENSOR_MEMORY, "100a", "120a")],
    ids=["wgmma wants the a", "tcgen05 wants the a", "Blackwell has no wgmma", "RTX 50 has no tcgen05"],
)
def test_the_a_is_needed(source: str, builds: str, does_not: str, tmp_path: Path) -> None:
    assert nvcc(tmp_path, source, f"-arch=sm_{builds}", "-cubin").returncode == 0
    refused = nvcc(tmp_path, source, f"-arch=sm_{does_not}", "-cubin")
    assert refused.returncode != 0 and f"sm_{does_not}" in refused.stderr, refused.stderr


def test_ptx_of_an_a_is_for_nothing_later(tmp_path: Path) -> None:
    later = nvcc(tmp_path, PLAIN, "-gencode=arch=compute_80,code=sm_120", "-cubin")
    assert later.returncode == 0, later.stderr
    specific = nvcc(tmp_path, PLAIN, "-gencode=arch=compute_90a,code=sm_100", "-cubin")
    assert specific.returncode != 0 and "90a" in specific.stderr, specific.stderr
