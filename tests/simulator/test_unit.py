"""Unit tests of the checks' C++ classes, linked with the objects of the simulator's library.

They run with the compiler that kernels are built with. The kernels of the corpus run with both compilers.
"""

from __future__ import annotations

import functools
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.frontend.toolchain.cache import digest, digest_folder, open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator.library import INCLUDE_DIR, build_objects, include_flags, plan_library
from tests.seeds import SEED

UNIT = Path(__file__).parent / "unit"
SOURCES = sorted(UNIT.glob("*.cpp"))
CASES = [
    pytest.param(name, id=f"{path.stem}-{name}")
    for path in SOURCES
    for name in re.findall(r"^CASE\((\w+)\)", path.read_text(), re.MULTILINE)
]
FLAGS = ("-std=c++17", "-O1", "-g", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror")
INCLUDES = (*include_flags(), f"-I{INCLUDE_DIR.parent}", f"-I{UNIT}")


@functools.cache
def program() -> Path:
    """Build all cases as one program, with warnings as errors."""
    compiler, cache = find_cxx(), open_cache()
    plan = plan_library(compiler)

    def build(folder: Path) -> None:
        def compile_one(source: Path) -> None:
            run(*compiler.command, *FLAGS, *INCLUDES, "-c", str(source), "-o", f"{source.stem}.o")

        def run(*argv: str) -> None:
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr

        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(compile_one, SOURCES))
        objects = [*(f"{source.stem}.o" for source in SOURCES), *map(str, build_objects(plan, cache))]
        run(*compiler.command, "-o", "unit", *objects, "-pthread", "-ldl")

    key = digest(["unit tests", plan.key, *FLAGS, digest_folder([UNIT])])
    return cache.get(key, build, "the unit tests of the simulator")[0] / "unit"


@pytest.mark.parametrize("case", CASES)
def test_unit_case_passes(case: str) -> None:
    done = subprocess.run([program(), case, str(SEED)], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
