"""Tests that the simulator rejects code that nvcc rejects, so that a kernel that runs on it also compiles for a GPU.

Most cases are conversions of half, which are ambiguous in expressions with other types. Each case was compiled with
nvcc 13.0. kernels/expressions.cu has expressions that nvcc accepts.
"""

from __future__ import annotations

import pytest

from grader.execution.build.build import compile_kernel
from grader.setup.errors import BuildError
from tests.simulator.harness import KERNELS

REJECTED = [
    "max(0, ll)",
    "min(i, ul)",
    "min(i, 3.0f)",
    "max(x, 0)",
    "max(l, i)",
    "abs(u)",
    "rsqrt(i)",
    "h2[0] * h[0]",
    "h[0] = ul",
    "h[0] < x",
    "double(h[0])",
    "b[0] = h[0]",
    "__hadd(h[0], x)",
    "f4.x + f4[0]",
    "f4 = 1.0f",
    "f4 == f4",
    "f4 + f4",
    "h2[0] = x",
    "dim3(1, 2) == dim3(1, 2)",
    "atomicMax(&x, 3.f)",
    "__shfl_xor_sync(~0u, f4, 1)",
    "HALF_MAX",
    "max(h[0], h[1])",
    "exp(h[0])",
    "h2[0][0]",
]

KERNEL = """#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void k(float* p, half* h, half2* h2, __nv_bfloat16* b, int i, unsigned u, long l, unsigned long ul,
                  long long ll, float x, float4 f4) {{
    {statement};
}}
extern "C" void run(cudaStream_t) {{}}
"""


def test_expressions_that_nvcc_accepts_compile():
    assert compile_kernel(KERNELS / "expressions.cu", "cpu", checks=False).library.exists()


@pytest.mark.parametrize("statement", REJECTED)
def test_expressions_that_nvcc_rejects_do_not_compile(statement, tmp_path):
    file = tmp_path / "rejected.cu"
    file.write_text(KERNEL.format(statement=statement))
    with pytest.raises(BuildError) as caught:
        compile_kernel(file, "cpu", checks=False)
    assert "rejected.cu:5" in str(caught.value)
