"""Tests that the infinite loop is identified among the loops around the line where a thread was stopped."""

from __future__ import annotations

import pytest

from grader.simulator.loops import endless_loop

NESTED = """__global__ void f(float* x, int n) {
    {outer} {
        for (int j = 0; j < 4; ++j) {
            x[j] += 1;
        }
    }
}
"""


@pytest.mark.parametrize(
    "outer",
    [
        "while (n > 0)",
        "for (;;)",
        "for (int i = 0; i < n;)",
        "for (int i = 0; i < n; --i)",
        "for (int i = 0; i < n; i += 0)",
        "for (unsigned i = n; i >= 0; --i)",
        "for (int i = n; i > 0; ++i)",
        "for (int s = n; s >= 0; s >>= 1)",
    ],
)
def test_an_outer_loop_is_named_and_not_the_inner_one_that_ends(outer: str) -> None:
    assert endless_loop(NESTED.replace("{outer}", outer), 4) == 2


@pytest.mark.parametrize(
    "inner",
    [
        "for (int j = 0; j < 4; j *= 1)",
        "while (x[0] < 1)",
        "for (int k = 8; k > 0; k /= 1)",
        "for (int j = 0; n < 4; ++j)",
    ],
)
def test_an_inner_loop_that_does_not_end_is_named(inner: str) -> None:
    text = NESTED.replace("{outer}", "for (int i = 0; i < n; ++i)").replace("for (int j = 0; j < 4; ++j)", inner)
    assert endless_loop(text, 4) == 3


@pytest.mark.parametrize(
    "outer",
    [
        "for (int i = 0; i < n; ++i)",
        "for (int i = threadIdx.x; i < n; i += blockDim.x)",
        "for (int s = n / 2; s > 0; s >>= 1)",
        "for (int i = n - 1; i >= 0; i--)",
        "for (int i = 0, m = 1; i != n; m *= 2, i++)",
    ],
)
def test_counting_loops_are_not_blamed(outer: str) -> None:
    assert endless_loop(NESTED.replace("{outer}", outer), 4) == 0


def test_a_counter_that_the_body_resets() -> None:
    text = "void f(int n) {\nfor (int i = 0; i < n; ++i) {\n  g();\n  i = 0;\n}\n}\n"
    assert endless_loop(text, 3) == 2


def test_loops_without_braces_and_do_loops() -> None:
    text = "void f(int* x) {\n  do {\n    g(x);\n  } while (*x);\n  while (atomicCAS(x, 0, 1));\n  h();\n}\n"
    assert [endless_loop(text, line) for line in range(1, 7)] == [0, 2, 2, 2, 5, 0]
    counted = "void f(int n) {\n  int i = 0;\n  while (i < n) {\n    i += 1;\n  }\n}\n"
    assert endless_loop(counted, 4) == 0


@pytest.mark.parametrize("text", ["", "for", "for (", "while (1", "do", "do {} while", "for (;;", "}} while ("])
def test_text_that_is_not_code_has_at_most_one_loop(text: str) -> None:
    assert endless_loop(text, 1) in (0, 1)


CALLS = """__device__ float sum(const float* x) {
    float s = 0;
    for (int j = 0; j < 4; ++j) s += x[j];
    return s;
}
template <int kWidth>
__device__ float mean(const float* x) {
    return sum(x) / kWidth;
}
__global__ void f(float* x, int n) {
    int i = 0;
    for (int k = 0; k < n; ++k) x[k] = 0;
    while (i < n) {
        x[5] = mean<4>(x);
    }
}
"""


def test_the_endless_loop_may_be_around_a_call() -> None:
    """Find the loop around the call of a function, directly or through another, unless several come into question."""
    assert endless_loop(CALLS, 3) == endless_loop(CALLS, 8) == 13
    other = CALLS + "__global__ void g(float* x) {\n    for (;;) {\n        {call};\n    }\n}\n"
    assert endless_loop(other.replace("{call}", "mean_of(x)"), 3) == 13
    several = other.replace("{call}", "x[0] = sum(x)")
    assert endless_loop(several, 3) == 0 and endless_loop(several, 8) == 13
    assert endless_loop(several, 3, in_kernel=19) == 18  # it was inlined there
    recursive = (
        "__device__ int f(int n) {\n    return n ? g(n) : 0;\n}\n__device__ int g(int n) {\n    return f(n);\n}\n"
    )
    assert endless_loop(recursive, 2) == 0
