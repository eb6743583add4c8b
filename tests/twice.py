"""The exercise ``twice`` (out = 2 x) and a kernel that solves it, for tests of the grader."""

from __future__ import annotations

from typing import Any

from grader.course.task import Case, Exercise, Input, Output, normal

KERNEL = """__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
"""


def twice(**changes: Any) -> Exercise:
    """Return the exercise, with other values for some fields of its description."""
    described: dict[str, Any] = {
        "title": "Twice",
        "summary": "out = 2 x",
        "launchers": "void twice(const float* x, float* out, int n, cudaStream_t stream)",
        "inputs": {"x": Input("n", normal(mean=1.0))},
        "outputs": {"out": Output("n")},
        "reference": lambda x: 2 * x,
        "cases": [Case("some", n=100)],
        "name": "day00_tests/twice",
    }
    return Exercise(**{**described, **changes})
