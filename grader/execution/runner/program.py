"""Builds the runner, the C++ program that runs kernels: with a C++ compiler for the simulator, with nvcc for a GPU."""

from __future__ import annotations

from pathlib import Path

from grader.execution.build.build import arch_flags
from grader.execution.jail.programs import CONFINE
from grader.frontend.toolchain.cache import BuildCache, digest, digest_folder, open_cache
from grader.frontend.toolchain.compilers import find_cxx, find_nvcc
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import GraderError

SOURCE = Path(__file__).parent / "source"
NOTHING = SOURCE / "do_nothing.cu"
"""A kernel file with the launcher ``do_nothing``, whose kernel is empty."""

_COMMON = ("runner.cpp", "wire.cpp")
_CONFINE = ("limits.cpp", "landlock.cpp", "system_calls.cpp")
_LIBRARIES = ("-lstdc++", "-lm", "-lgcc_s", "-ldl", "-lpthread", "-lrt")
"""Libraries that kernels may need. The runner is linked with them, so that a sandbox makes them accessible."""


def build_runner(device: str = "cpu", arch: str | None = None, cache: BuildCache | None = None) -> Path:
    """Return the runner's executable. Build it if it is not in the cache."""
    if device == "cuda":
        compiler = find_nvcc()
        assert compiler
        flags = ("-std=c++17", "-O2", *arch_flags(arch or "sm_90"), "-cudart=static", "--threads=0")
        sources = (*_COMMON, "device_cuda.cu")
    else:
        compiler = find_cxx()
        flags = ("-std=c++17", "-O1")
        sources = (*_COMMON, "device_simulator.cpp")
    key = digest(["runner", device, compiler.identity, *flags, digest_folder([SOURCE, CONFINE])])

    def build(folder: Path) -> None:
        files = [str(SOURCE / name) for name in sources] + [str(CONFINE / name) for name in _CONFINE]
        keep = "-Wl,--no-as-needed" if device == "cpu" else "-Xlinker=--no-as-needed"
        done = run_command(Command((*compiler.command, *flags, *files, "-o", "runner", keep, *_LIBRARIES), folder))
        if done.returncode != 0:
            raise GraderError(
                f"the program that runs kernels does not compile with {compiler}:\n{done.output.strip()}",
                "`grader doctor` shows this machine's tools.",
            )

    entry, _ = (cache or open_cache()).get(key, build, "the runner")
    return entry / "runner"
