"""Runs nvcc on the tests' texts, with the options of a GPU build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NVCC = shutil.which("nvcc")


def nvcc(text: str, folder: Path, what: str = "-c", std: str = "c++17") -> subprocess.CompletedProcess[str]:
    """Compile a text. ``what`` is -c for host and device code, or -ptx for device code only."""
    if NVCC is None:
        pytest.skip("nvcc is not on the PATH")
    file = folder / "all.cu"
    file.write_text(text)
    target = "-gencode=arch=compute_90a,code=sm_90a"  # -arch=sm_90a also compiles for compute_90
    options = [f"-std={std}", target, "--expt-relaxed-constexpr", "--extended-lambda", what]
    return subprocess.run([NVCC, *options, file, "-o", folder / "all.o"], capture_output=True, text=True)
