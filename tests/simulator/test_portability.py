"""Tests of processor-dependent parts: one program runs natively, without assembly code, and on arm64."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.frontend.rewrite import rewrite
from grader.frontend.toolchain.cache import open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator.library import INCLUDE_DIR, INCLUDE_DIRS, build_objects, include_flags, plan_library
from tests.simulator.harness import KERNELS

RUNTIME = INCLUDE_DIR.parent / "runtime"
PARTS = ("runtime", "checks", "submission_sandbox")
SOURCES = sorted(path for part in PARTS for path in (INCLUDE_DIR.parent / part).rglob("*.cpp"))

_SETTINGS = """
extern "C" int sim_configure(const char*, const char*);
static int settings = sim_configure("watchdog_seconds", "0.3");
"""


def build_program(folder: Path, command: tuple[str, ...], runtime: list[Path], *flags: str) -> Path:
    """Build self_test.cu and the runtime (sources, or objects of the same compiler) as one program."""
    source, settings, program = folder / "self_test.cpp", folder / "settings.cpp", folder / "self_test"
    source.write_text(rewrite((KERNELS / "self_test.cu").read_text(), INCLUDE_DIRS).text)
    settings.write_text(_SETTINGS)
    common = ("-std=c++17", "-O1", "-fno-finite-loops", "-fno-builtin-printf", "-fno-strict-aliasing")
    include = (*include_flags(), f"-I{INCLUDE_DIR.parent}", f"-I{RUNTIME}")
    files = map(str, (*runtime, source, settings))
    done = subprocess.run(
        [*command, *common, *flags, *include, *files, "-o", str(program), "-lpthread"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


def check(*command: str, address_space: int | None = None) -> None:
    def limit() -> None:
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done


@pytest.mark.parametrize("flags", [(), ("-DSIM_UCONTEXT",)], ids=["assembly", "ucontext"])
def test_self_test_passes_on_this_machine(tmp_path, flags):
    """Link the simulator's objects, but compile context.cpp with each of its ways to switch stacks."""
    objects = [
        path
        for path in build_objects(plan_library(), open_cache())
        if path.name.startswith(tuple(f"{part}_" for part in PARTS))
    ]
    assert len(objects) == len(SOURCES)
    if flags:
        objects = [path for path in objects if path.name != "runtime_context.o"] + [RUNTIME / "context.cpp"]
    program = str(build_program(tmp_path, find_cxx().command, objects, *flags))
    check(program)
    # Check with limited address spaces as well, because the runner of a submission has one.
    check(program, address_space=1 << 30)
    check(program, address_space=400 << 20)


def test_arm64(tmp_path):
    compiler, emulator = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64-static")
    if not compiler or not emulator:
        pytest.skip(
            "needs aarch64-linux-gnu-g++ and qemu-aarch64-static (apt install g++-aarch64-linux-gnu qemu-user-static)"
        )
    check(emulator, str(build_program(tmp_path, (compiler,), SOURCES, "-static")))
