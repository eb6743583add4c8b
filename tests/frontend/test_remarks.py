"""Remarks about mistakes that compile: each has near-identical code without a remark."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.course.authoring.mistakes import other_designs
from grader.frontend import remarks as frontend
from grader.frontend.remarks import remarks
from grader.frontend.tokens import Source

ROOT = Path(__file__).parents[2]
KERNEL = """#include <cuda_fp16.h>
{before}
__global__ void kernel(const float* x, float* out, int n) {{
    {code}
}}
"""


def lines(code: str, before: str = "") -> list[str]:
    """Return the code to which each remark points, the rest of its line."""
    text = KERNEL.format(before=before, code=code)
    found = remarks(Source(text), "a.cu")
    assert all((item.severity, item.file) == ("warning", "a.cu") and item.advice for item in found)
    return [item.source_line[item.column - 1 :] for item in found]


@pytest.mark.parametrize(
    ("code", "points_to"),
    [
        ("float sum;\nfor (int i = 0; i < n; ++i) sum += x[i];\nout[0] = sum;", "sum += x[i];"),
        ("float a, sum;\n#pragma unroll\nfor (int i = 0; i < n; ++i) { sum -= x[i]; }\na = sum;", "sum -= x[i]; }"),
        ("float m;\nfor (int i = 0; i < n; ++i) m = fmaxf(m, x[i]);", "m = fmaxf(m, x[i]);"),
        ("float m;\nfor (int i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;", "m = x[i] > m ? x[i] : m;"),
        ("unsigned int count;\nfor (int i = 0; i < n; ++i)\nif (x[i] > 0) ++count;", "count;"),
        ("int count;\nif (x[0] > 0) count++;\nout[0] = count;", "count++;"),
        ("float acc[4][2];\nfor (int r = 0; r < 4; ++r)\nacc[r][0] += x[r];", "acc[r][0] += x[r];"),
        ("__half product;\nproduct *= __float2half(x[0]);", "product *= __float2half(x[0]);"),
        ("float sum;\nfor (int i = 0; i < n; ++i)\nsum += x[i];\nconst float& s = sum;\nout[0] = s;", "sum += x[i];"),
        (
            "float acc[4][2];\nacc[n][0] += x[0];\nout[0] = warp_sum(acc[n][0]) + [](float s) { return s; }(x[0]);",
            "acc[n][0] += x[0];",
        ),
        ("for (int i = 0; i < n; ++i) {\nfloat sum;\nsum += x[i];\nout[i] = sum; }\nfloat sum = 0;", "sum += x[i];"),
    ],
)
def test_an_update_of_a_variable_without_a_value(code: str, points_to: str) -> None:
    assert lines(code) == [points_to]


@pytest.mark.parametrize(
    "code",
    [
        "float sum = 0;\nfor (int i = 0; i < n; ++i) sum += x[i];",
        "float sum{};\nsum += x[0];",
        "float sum;\nsum = 0;\nsum += x[0];",
        "float sum;\nfor (int i = 0; i < n; ++i) { if (i) sum += x[i]; else sum = x[i]; }",
        "float sum;\nload(sum);\nsum += x[0];",
        "float sum;\nfor (int i = 0; i < n; ++i) { sum += x[i]; load(&sum); }",
        "int slot;\nif (threadIdx.x == 0) slot = atomicAdd(&counter, 1);\nslot = __shfl_sync(~0u, slot, 0);",
        "int node;\nwhile ((node = next[n]) > 0) n = node;",
        "int t;\nif (n) t = a, a = b, b = t;",
        "float x0;\nx0 = p.x0;\nx0 += 1;",
        "float acc[4];\nclear(acc);\nacc[0] += x[0];",
        "int sums[4];\nfor (int i = 0; i < 4; ++i) { if (i) sums[i] = sums[i - 1] + 1; else sums[0] = 1; }",
        'float d;\nfor (int i = 0; i < n; ++i) { d += 1; asm("mov.f32 %0, 0f00000000;" : "=f"(d)); }',
        "struct Sums { float sum; __device__ void add(float v) { sum += v; } } sums = {0};",
        "#ifdef ZERO\nfloat sum = 0;\n#else\nfloat sum;\n#endif\nsum += x[0];",
        "__shared__ float sum;\nsum += x[0];",
        "static float sum;\nsum += x[0];",
        "float sum;\nZERO(sum);\nsum += x[0];",
        "float y;\nBEGIN\ny += x[0];",
        "float sum;\n{ float sum = 1; out[0] = sum; }",
        "int index;\nout[n] = x[index];",
        "float m;\nfor (int i = 0; i < n; ++i) m = i == 0 ? x[0] : fmaxf(m, x[i]);",
        "float m;\nfor (int i = 0; i < n; ++i) m = i > 0 && m > x[i] ? m : x[i];",
        "float sum;\nfor (int i = 0; i < n; ++i) sum = (i ? sum : 0) + x[i];",
        "float sum;\nsum = static_cast<decltype(sum)>(0);\nsum += x[0];",
        "float sum;\nfor (int i = 0; i < n; ++i) { if (i) sum += x[i]; else { float& s = sum; s = x[i]; } }",
        "float sum;\nfor (int i = 0; i < n; ++i) { if (i) sum += x[i]; else { auto& s{sum}; s = x[i]; } }",
        "float sum;\nfor (int i = 0; i < n; ++i) { if (i) sum += x[i]; else [&s = sum] { s = 0; }(); }",
        "float sum;\nfor (int i = 0; i < n; ++i) { if (i) sum += x[i]; else [](float& s) { s = 0; }(sum); }",
        "float acc[4][4];\nfor (int r = 0; r < 4; ++r) { if (r > 0) acc[r - 1][0] += x[r]; clear(acc[r]); }",
    ],
)
def test_a_variable_that_may_have_a_value(code: str) -> None:
    assert lines(code, "#define ZERO(v) v = 0\n#define BEGIN y = 0;") == []


def test_a_member_is_not_a_local_variable() -> None:
    members = "struct Sums { float sum; __device__ void add(float v) { sum += v; } };\n__device__ float total;"
    assert lines("total += x[0];", members) == []


@pytest.mark.parametrize(
    ("code", "points_to"),
    [
        ("out[0] = x[n, 1];", "[n, 1];"),
        ("tile[n][n / 2, 1 + (n)] = 0;", "[n / 2, 1 + (n)] = 0;"),
        ("out[0] = (x + 1)[f(n, 1), 2];", "[f(n, 1), 2];"),
    ],
)
def test_a_comma_in_a_subscript(code: str, points_to: str) -> None:
    assert lines(code) == [points_to]


@pytest.mark.parametrize(
    "code",
    [
        "out[0] = x[n];",
        "out[0] = x[min(n, 1)];",
        "out[0] = x[at<3, 4>(n)];",
        "out[0] = x[Index{n, 1}.flat()];",
        "auto f = [n, out] { out[n] = 0; };",
        "run([&, n](int i) { out[i] = n; });",
        "return [n, out](int i) { out[i] = n; };",
        "auto [a, b] = pair;",
        "auto const& [a, b] = pair;\nauto const [c, d] = pair;",
        "[[maybe_unused, deprecated]] int i = 0;",
        'printf("x[i, j]");  // x[i, j]',
    ],
)
def test_commas_that_are_no_subscripts(code: str) -> None:
    assert lines(code) == []


@pytest.mark.parametrize(
    ("code", "points_to"),
    [
        ("float* p = nullptr;\n{ float a[4] = {1};\np = a; }\nout[0] = p[n];", "p[n];"),
        ("float* p;\nif (n) {\nfloat4 a[4], b;\np = &a[1];\n}\nout[0] =\n*p;", "p;"),
        ("const float* p = x;\nfor (int i = 0; i < n; ++i) { float a[4];\np = a + i; }\nload(\np);", "p);"),
        ("float a[4];\nreturn a;", "a;"),
        ("float a[4];\nreturn &a[1];", "a[1];"),
        ("auto f = [&] { float a[4];\nreturn a; };", "a; };"),
        ("float* p = out;\n{ float a[4]; p = out;\np = a; }\nout[0] = p[n];", "p[n];"),
    ],
)
def test_a_pointer_to_an_array_whose_block_has_ended(code: str, points_to: str) -> None:
    assert lines(code) == [points_to]


@pytest.mark.parametrize(
    "code",
    [
        "float a[4];\nfloat* p = a;\nout[0] = p[n];",
        "float* p = nullptr;\n{ float a[4];\np = a; out[0] = p[0]; }",
        "float* p;\n{ float a[4];\np = a; out[0] = *p; }\np = out;\nout[1] = *p;",
        "float p;\n{ float a[4];\np = a[1]; }\nout[0] = p;",
        "{ float a[4];\nfloat* p; p = a; }\nfloat* p = out;\nout[0] = *p;",
        "float* p;\n{ static float a[4];\np = a; }\nout[0] = *p;",
        "float* p;\n{ __shared__ float a[4];\np = a; }\nout[0] = *p;",
        "float* p;\n{ float a[4];\n#if KEPT\nout[0] = 1;\n#else\np = a;\n#endif\n}\nout[0] = *p;",
        "float* p;\n{ float a[4];\ns.p = a; }\nout[0] = *p;",
        "float a[4];\nreturn a[1];",
        "float a[4];\nreturn p - a;",
        "char a[4] = {};\nreturn a;",
        "float* p = out;\n{ float a[4]; p = a; load(p); p = out; }\nout[0] = p[n];",
        "float* p = out;\nif (n) { float a[4]; p = a; load(p); return; }\nout[0] = p[n];",
        "float* p = out;\n{ float a[4]; p = a; load(p); }\nset(&p);\nout[0] = p[n];",
        'float* p = out;\n{ float a[4]; p = a; load(p); }\nasm("mov.u64 %0, 0;" : "=l"(p));\nout[0] = p[n];',
        "Values v;\n{ float a[4]; v = a; }\nout[0] = v[n];",
        "float a[4];\nauto row = [&](int i) { return a + i; };\nout[0] = *row(n);",
        "float a[4];\nauto row = [&] { return &a[n]; };\nout[0] = *row();",
    ],
)
def test_pointers_that_do_not_outlive_their_array(code: str) -> None:
    assert lines(code) == []


@pytest.mark.parametrize("folder", ["lessons", "exercises", "solutions"])
def test_kernels_of_the_course_have_no_remarks(folder: str) -> None:
    kernels = [path for suffix in ("cu", "cuh") for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))]
    assert kernels
    for kernel in kernels:
        assert remarks(Source(kernel.read_text()), kernel.name) == []


def test_other_designs_have_no_remarks() -> None:
    for entry in Course(ROOT).exercises:
        for name, text in other_designs(entry).items() if entry.language == "cuda" else ():
            assert remarks(Source(text), name) == []


@pytest.mark.parametrize(
    "text", ['void f(float* p) {\n{ float a[4]; p = a; }\n*p\n#include "end.inc"\n', "{{}{}]{float a[a"]
)
def test_a_function_that_an_included_file_ends(text: str) -> None:
    assert remarks(Source(text), "a.cu") == []


def test_remarks_of_macros_and_their_number() -> None:
    assert lines("", "#define AT(i, j) x[i, j]") == ["[i, j]"]
    assert len(lines("\n".join(["out[0] = x[n, 1];"] * 1000))) == 20
    assert lines("out[0] = x[n, 1" + "1" * 1000 + "];") == []


def test_the_advice_names_the_declaration() -> None:
    text = KERNEL.format(before="", code="float acc[4][2];\nacc[n][0] += x[n, 1];")
    comma, uninitialized = sorted(remarks(Source(text), "a.cu"), key=lambda item: -item.column)
    assert uninitialized.message == "'acc' is used uninitialized"
    assert uninitialized.advice == "Line 4 declares acc without a value. Give it one, for a sum: float acc[4][2] = {};"
    assert comma.message == "only the last index has an effect: x[n, 1] is x[1]"
    assert "[(n) * columns + 1]" in comma.advice and "[n][1]" in comma.advice


def test_the_advice_about_a_dangling_pointer() -> None:
    text = KERNEL.format(before="", code="float* p;\n{ float a[4]; p = a; }\nout[0] = *p;")
    (pointer,) = remarks(Source(text), "a.cu")
    assert pointer.message == "using dangling pointer 'p' to 'a'"
    assert pointer.advice == "a exists until the end of its block at line 5. Declare it before that block."
    (returned,) = remarks(Source(KERNEL.format(before="", code="float a[4];\nreturn a;")), "a.cu")
    assert returned.message == "address of local 'a' returned" and "in the calling function" in returned.advice


def test_many_assignments_of_a_pointer_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    declared = frontend._is_declared
    monkeypatch.setattr(
        frontend, "_is_declared", lambda tokens, mentions: read.extend(mentions) or declared(tokens, mentions)
    )
    assert len(lines("float* p;\n{ float a[4]; " + "p = a; " * 1000 + "}\nout[0] = *p;")) == 1
    assert len(read) < 5000


def test_nested_variables_of_one_name_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    keeps = frontend._keeps
    monkeypatch.setattr(frontend, "_keeps", lambda tokens, i, array: read.append(i) or keeps(tokens, i, array))
    lines("{ int s; s += 1; " * 100 + "s += 1; " * 1000 + "}" * 100)
    assert len(read) < 2000
