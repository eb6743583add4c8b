"""Builds the runner, the C++ program that runs kernels: with a C++ compiler for the simulator, with nvcc for a GPU."""

from __future__ import annotations

from pathlib import Path

from grader.execution.build.build import arch_flags
from grader.execution.jail.programs import CONFINEMENT, compiled
from grader.frontend.toolchain.cache import BuildCache
from grader.frontend.toolchain.compilers import find_cxx, find_nvcc

SOURCE = Path(__file__).parent / "source"
NOTHING = SOURCE / "do_nothing.cu"
"""A kernel file with the launcher ``do_nothing``, whose kernel is empty."""

_LIBRARIES = ("-lstdc++", "-lm", "-lgcc_s", "-ldl", "-lpthread", "-lrt")
"""Libraries that kernels may need. The runner is linked with them, so that a sandbox makes them accessible."""


def build_runner(device: str = "cpu", arch: str | None = None, cache: BuildCache | None = None) -> Path:
    """Return the runner's executable. Build it if it is not in the cache."""
    if device == "cuda":
        compiler = find_nvcc()
        assert compiler
        flags = ("-std=c++17", "-O2", *arch_flags(arch or "sm_90"), "-cudart=static", "--threads=0")
        own, keep = "device_cuda.cu", "-Xlinker=--no-as-needed"
    else:
        compiler = find_cxx()
        flags = ("-std=c++17", "-O1")
        own, keep = "device_simulator.cpp", "-Wl,--no-as-needed"
    sources = [*(SOURCE / name for name in ("runner.cpp", "wire.cpp", own)), *CONFINEMENT]
    return compiled("runner", "the program that runs kernels", compiler, flags, sources, (keep, *_LIBRARIES), cache)
