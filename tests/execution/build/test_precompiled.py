"""Precompiled headers for g++.

A build uses them if they match the includes at the start of a kernel file, and compiles without them otherwise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.cli import demo
from grader.course import Course
from grader.execution.build.build import compile_kernel, plan_kernel
from grader.execution.build.diagnostics import CompileError
from grader.execution.build.precompiled import USUAL, headers_at_head
from grader.frontend.toolchain.cache import BuildCache, installed_folder


def empty_cache(folder: Path) -> BuildCache:
    """Return a cache that contains only the simulator, so that no test needs to build it."""
    return BuildCache(folder / "cache", installed=installed_folder())


KERNEL = """// A kernel with halves.
#include <cuda_fp16.h>
#include <cmath>  // expf

__global__ void twice(__half* x) { x[threadIdx.x] = __hadd(x[threadIdx.x], x[threadIdx.x]); }
extern "C" void launch(__half* x, cudaStream_t stream) { twice<<<1, 32, 0, stream>>>(x); }
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("int x;\n#include <mma.h>\n", ()),
        ("#define half float\n#include <cuda_fp16.h>\n", ()),
        ("// all of it \\\n#include <cuda_fp16.h>\n", ()),
        (
            '#include <cuda_runtime.h>\n#include "sim/ptx.h"\n#line 1 "k.cu"\n\n#include <mma.h>\n',
            ("sim/ptx.h", "mma.h"),
        ),
        ("#include <cmath>\n#include <mma.h>  // wmma\n#include <cuda_bf16.h>\nint x;\n", ("cuda_bf16.h", "mma.h")),
        ('#ifndef LLMK_A_CUH\n#define LLMK_A_CUH\n#line 1 "a"\n#include <cuda_fp16.h>\n', ("cuda_fp16.h",)),
        ("#ifndef OTHER\n#define OTHER\n#include <cuda_fp16.h>\n", ()),
    ],
)
def test_only_includes_before_all_code_are_precompiled(text: str, found: tuple[str, ...]) -> None:
    assert headers_at_head(text) == ("cuda_runtime.h", *found)


def test_the_demo_begins_with_headers_that_are_read_when_the_course_is_installed() -> None:
    course = Course(Path(__file__).parents[3])
    for file in (course.find(demo.RIGHT).solution, course.find(demo.BROKEN).skeleton):
        assert headers_at_head(plan_kernel(file).text) in USUAL


def test_a_later_header_defines_no_names_earlier(tmp_path: Path) -> None:
    file = tmp_path / "late.cu"
    file.write_text("__half early;\n" + KERNEL)
    with pytest.raises(CompileError, match=r"late\.cu:1:1: error: '__half' does not name a type|unknown type name"):
        compile_kernel(file, cache=empty_cache(tmp_path))


def test_an_incompatible_precompiled_header_is_ignored(tmp_path: Path) -> None:
    """If the compiler rejects the precompiled header, such as one of another version, it reads the headers instead."""
    file = tmp_path / "halves.cu"
    cache = empty_cache(tmp_path)
    file.write_text(KERNEL)
    first = compile_kernel(file, cache=cache).plan
    forms = list(cache.folder.rglob("*.gch"))
    assert len(forms) == (first.compiler.family == "gcc")
    for broken in forms:
        broken.write_bytes(b"gpch" + bytes(4096))
    file.write_text(f"{KERNEL}// changed\n")
    again = compile_kernel(file, cache=cache)
    assert again.library.is_file() and not again.cached and again.plan.key != first.key


def test_the_jail_reads_precompiled_headers_but_does_not_write_them(tmp_path: Path) -> None:
    """Each jailed build can read the folder of precompiled headers. tests/attacks tests that it cannot write there."""
    from grader.execution.jail import compiling
    from grader.execution.runner.tiers import in_force
    from grader.frontend.toolchain.compilers import find_cxx
    from grader.frontend.toolchain.process import Command, Finished

    calls: list[Command] = []

    def run(command: Command) -> Finished:
        calls.append(command)
        return compiling.run_in(in_force().jail)(command)

    file = tmp_path / "halves.cu"
    file.write_text(KERNEL)
    cache = empty_cache(tmp_path)
    assert compile_kernel(file, cache=cache, run=run).library.is_file()
    ahead = [word for word in calls[0].argv if word.startswith("-include")]
    assert len(ahead) == (find_cxx().family == "gcc")
    for word in ahead:
        folder = Path(word.removeprefix("-include")).parent
        assert folder in calls[0].reads and list(folder.glob("*.gch"))
