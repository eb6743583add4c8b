"""Local arrays of device code get red zones (guard bytes), unless every use is a subscript of all dimensions."""

from __future__ import annotations

import contextlib
import re

import pytest

from grader.frontend.rewrite import RewriteError, rewrite


def guarded(body: str, head: str = "__device__ void f(int i)") -> list[str]:
    text = rewrite(f"{head} {{ {body} }}").text
    return re.findall(r"LocalArray<sim_local_(\w+)>", text)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("int a[4]; int* p = a;", ["a"]),
        ("int a[4]; g(&a[1]);", ["a"]),
        ("float a[2][3] = {}; g(a[1]);", ["a"]),
        ("float a[8]; *(float4*)&a[4] = v;", ["a"]),
        ("int *p, a[4], b[2] = {1, 2}, n = 3; g(a, b);", ["a", "b"]),
        ("for (;;) { unsigned long a[N + 1]; g(a); }", ["a"]),
        ("alignas(16) std::pair<int, float> a[4]; g(a);", ["a"]),
        ("int a[4]; a[i] = a[3] & a[1]; x = sizeof(a) / sizeof a[0];", []),
        ("const int a[] = {1, 2}; static const int b[2] = {}; const int c[2] = {}; g(a, b, c);", []),
        ("switch (i) { case 0: int a[4]; g(a); case 1: break; }", []),
        ("int a[4]; g(a); goto end; end:;", []),
        ("int a[4]; g(a); decltype(a) b;", []),
        ("int a[4]; g(a); x[std::size(a)] = 1;", []),
        ("__shared__ int a[4]; g(a); return a[0];", []),
        ("x[i] = 1; else_ * a[i]; return s.a[i];", []),
    ],
)
def test_arrays_used_through_a_pointer_get_red_zones(body: str, names: list[str]) -> None:
    assert guarded(body) == names


def test_host_arrays_and_constant_expressions_get_none() -> None:
    assert guarded("int a[4]; g(a);", "void f(int i)") == []
    assert guarded("int a[4]; g(a);", "__device__ constexpr int f(int i)") == []


@pytest.mark.parametrize(
    ("body", "checked"),
    [
        ("float4 v; float* p = reinterpret_cast<float*>(&v);", True),
        ("float4 v; *(float2*)&v.z = w;", True),
        ("Fragment f; float* p = f.values;", True),
        ("float4 v; FLOATS(v)[4] = 1;", True),
        ("float4* row = &tile[i]; x[i] = row->x + (i & 3) + (x[i] & mask);", False),
        ("float a[4]; a[i] = v.x * w.x; float* end = x + n;", False),
    ],
)
def test_kernels_that_take_the_address_of_a_variable_are_marked(body: str, checked: bool) -> None:
    """Other kernels need no checks of the size of objects (host_defines.h)."""
    macros = "#define FLOATS(v) reinterpret_cast<float*>(&(v))\n#define TWO 2\n"
    kernel = f"{macros}__global__ void f(float* x) {{ {body} }}"
    assert ("SIM_GLOBAL void f(" if checked else "__global__ void f(") in rewrite(kernel).text


def test_lines_stay_where_they_were() -> None:
    text = "__device__ void f() {\n    int a[2][2] = {{1, 2},\n                   {3, 4}}, b[2];\n    g(a, b);\n}\n"
    new = rewrite(text).text
    assert new.count("\n") == text.count("\n")
    assert new.splitlines()[3] == "    g(a, b);"


def test_a_file_truncated_anywhere() -> None:
    text = (
        "__device__ void f(int i) { alignas(16) A<int> *a[4] = {1, 2}, b[2]; switch (i) { case 0: int c[4]; g(c, "
        "&a[1]); } }"
    )
    for end in range(len(text)):
        with contextlib.suppress(RewriteError):
            rewrite(text[:end])
