"""Names whose value or definition differs between nvcc and the simulator.

A submission could use them to show nvcc another kernel than the simulator.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.build.build import compile_kernel
from grader.execution.submission_sandbox.compiler_conditions import differing_name
from grader.frontend.tokens import Source
from grader.simulator.library import INCLUDE_DIRS


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#if __CUDACC_VER_BUILD__\n#endif", "__CUDACC_VER_BUILD__"),
        ("int x = __CUDACC_VER_BUILD__;", "__CUDACC_VER_BUILD__"),
        ("#define HERE __OPTIMIZE__\n", "__OPTIMIZE__"),
        ("#ifdef __SANITIZE_THREAD__\n#else\n#define __SANITIZE_THREAD__\n#endif", "__SANITIZE_THREAD__"),
        ("#if 0\n#elif defined(__GNUC__)\n#endif", "__GNUC__"),
        ("#ifdef __clang_major__\n#endif", "__clang_major__"),
        ("#if defined threadIdx\n#endif", "threadIdx"),
        ("#ifndef cudaDevicePropDontCare\n#endif", "cudaDevicePropDontCare"),
        ("#if /* a comment */ SIM_SM\n#endif", "SIM_SM"),
        ("#/**/ifdef __SANITIZE_THREAD__\n#endif", "__SANITIZE_THREAD__"),
        ("#\\\nifdef threadIdx\n#endif", "threadIdx"),
        ("%:ifdef threadIdx\n%:endif", "threadIdx"),
        ("/**/ %: /**/ ifdef threadIdx\n#endif", "threadIdx"),
        ("#ifdef INT32_MAX\n#endif", "INT32_MAX"),
        ("#define SIZE_MAX 4\n#include <cstdint>", "SIZE_MAX"),
        ("#undef UINT_LEAST8_MAX\n", "UINT_LEAST8_MAX"),
        ('#if __has_include("sim/dim.h")\n#endif', "__has_include"),
        ("#ifdef _GLIBCXX_VECTOR\n#endif", "_GLIBCXX_VECTOR"),
        ("int x = __COUNTER__;", "__COUNTER__"),
        ("int x = __TIME__[0];", "__TIME__"),
        ("#if __INCLUDE_LEVEL__ == 0\n#endif", "__INCLUDE_LEVEL__"),
        ("#if __has_cpp_attribute(gnu::noipa)\n#endif", "__has_cpp_attribute"),
        ("#if __has_builtin(__builtin_ia32_pause)\n#endif", "__has_builtin"),
        ("#if __cpp_concepts\n#endif", "__cpp_concepts"),
        ("#ifdef CUB_VERSION\n#endif", "CUB_VERSION"),
        ("#ifndef _MY_KERNEL_CU\n#define _MY_KERNEL_CU\n#endif", "_MY_KERNEL_CU"),
        ("#ifndef __annotate__\n#define __annotate__(x)\n#endif", "__annotate__"),
    ],
)
def test_a_name_that_may_differ_is_found(text: str, name: str) -> None:
    assert differing_name(Source(text + "\nint y;\n"), INCLUDE_DIRS) == name


@pytest.mark.parametrize(
    "text",
    [
        "#if __CUDA_ARCH__ >= 900 && defined(__CUDACC__) && CUDART_VERSION >= 12000\n#endif",
        "#if __CUDACC_VER_MAJOR__ > 12 || !defined(__CUDA_ARCH_FEAT_SM90_ALL)\n#endif",
        "#define WIDTH 4\n#if WIDTH == 4 && !defined(SLOW)\n#endif",
        "#define _width 4\n#if _width == 4\n#endif",
        "#ifndef CUTOFF\n#define CUTOFF 4\n#endif",
        "#ifdef current\n#endif",
        "#if 1 // threadIdx\n#endif",
        "#define HEAD_MAX (INT32_MAX - 1)\nint x = INT32_MAX;",
        "#define INT_MAX 4\n#include <climits>\n#ifdef INT_MAX\n#endif",
        '#pragma unroll\n#error threadIdx\nconst char* x = "__GNUC__";  // __GNUC__',
        "int x = threadIdx.x + __LINE__; const char* f = __FILE__; cudaMalloc(&f, warpSize);",
        "__global__ void __launch_bounds__(32) f(const float* __restrict__ x) { __syncthreads(); }",
    ],
)
def test_names_with_one_value_stay_silent(text: str) -> None:
    assert differing_name(Source(text + "\nint y;\n"), INCLUDE_DIRS) == ""


def test_a_macro_before_climits_has_one_value(tmp_path: Path) -> None:
    """Check that <limits.h> comes before the file, as with nvcc, so that <climits> does not define the macro again."""
    file = tmp_path / "k.cu"
    file.write_text("#define INT_MAX 4\n#include <climits>\nstatic_assert(INT_MAX == 4);\n__global__ void k() {}\n")
    compile_kernel(file)
