"""Limits of kernel files: each error names the line and the limit."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from pathlib import Path

import pytest

from grader.execution.build.build import plan_kernel, read_kernel_file
from grader.frontend import limits, macros
from grader.frontend.rewrite import RewriteError, rewrite
from grader.frontend.tokens import Token, Tokens
from grader.setup.errors import BuildError
from grader.simulator.library import INCLUDE_DIRS

_KERNEL = "__global__ void f(int a) {\n"

TOO_MUCH = {
    "brackets are nested deeper than 256 levels": (_KERNEL + "a = " + "(" * 256, 2),
    "#if is nested deeper than 256 levels": ("#if X\n" * 257, 257),
    "the file has 200001 tokens; a kernel file may have 200000": (";\n" * 200_001, 200_001),
    "the file has more than 64 #include lines": ("#include <llmk/reduce.cuh>\n" * 65, 65),
    "reading the file takes too long here": ("int a[] = {1}" + ",\nb[] = {2}" * 3000 + ";", 2),
    "the file becomes too large in translation": (_KERNEL + 'asm("{.reg .f32 r<255>;}");\n' * 9000 + "}", 2),
    "the asm statement declares more than 255 registers": (_KERNEL + '\nasm("{.reg .f32 r<1000000000>;}");}', 3),
    "this asm statement is too long": (
        _KERNEL + 'asm("add.f32 ' + "%0," * 1000 + '%0;" :: "f"(' + "a+" * 1000 + "a));}",
        2,
    ),
    "the expression before '<<<' contains another launch": (_KERNEL + "\n(f<<<1, 1>>>())<<<1, 1>>>();}", 3),
}
SPLICED = {
    "a word": "int mem\\\ncpy;",
    "a word, with blanks": "int mem\\ \t\ncpy;",
    "a directive": "#def\\\nine A memcpy",
    "a macro's name": "#define A\\\nB memcpy",
    "a macro's body": "#define A mem\\\ncpy",
}
NOT_SPLICED = {
    "a macro over two lines": "#define A x \\\n  y\n#define B(a) a;\\\n  a",
    "a comment": "// one\\\ntwo",
    "a string": 'const char* s = "one\\\ntwo";',
}
ENOUGH = {
    "brackets": _KERNEL + "a = " + "(" * 255 + "a" + ")" * 255 + ";}",
    "branches": "#if X\n" * 256 + "#endif\n" * 256,
    "registers": _KERNEL + 'asm("{.reg .f32 r<255>;}");}',
    "launches in arguments": _KERNEL + "}\nint g();\nvoid h() { f<<<1, g()>>>(g()), f<<<1, 1>>>(2); }",
}


@pytest.mark.parametrize("says", TOO_MUCH)
def test_too_much_is_refused_at_its_line(says: str) -> None:
    text, first = TOO_MUCH[says]
    with pytest.raises(RewriteError, match=says.replace("(", r"\(")) as problem:
        plan_kernel("kernel.cu", text=text)
    assert problem.value.line >= first and len(str(problem.value)) < 2000


@pytest.mark.parametrize(
    "body", ["x::" * 2500 + "x;", "{" * 200 + "x;" * 2500 + "}" * 200], ids=["qualified", "nested"]
)
def test_the_search_for_device_variables_is_limited(body: str) -> None:
    with pytest.raises(RewriteError, match="reading the file takes too long here"):
        rewrite(f"__device__ int x;\nvoid f() {{ {body} }}\n", INCLUDE_DIRS)


@pytest.mark.parametrize("name", SPLICED)
def test_a_token_split_over_two_lines_is_refused(name: str) -> None:
    with pytest.raises(RewriteError, match="a backslash splits a word over two lines"):
        plan_kernel("kernel.cu", text=SPLICED[name])


@pytest.mark.parametrize("name", NOT_SPLICED)
def test_other_lines_may_be_continued(name: str) -> None:
    plan_kernel("kernel.cu", text=NOT_SPLICED[name])


@pytest.mark.parametrize("name", ENOUGH)
def test_files_just_below_the_limits_are_accepted(name: str) -> None:
    plan_kernel("kernel.cu", text=ENOUGH[name])


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_bytes(b" " * limits.MOST_BYTES)
    assert len(read_kernel_file(file)) == limits.MOST_BYTES
    file.write_bytes(b" " * (limits.MOST_BYTES + 1))
    with pytest.raises(BuildError, match=r"kernel\.cu is larger than 1 MB"):
        read_kernel_file(file)


def test_line_ends_of_other_systems_are_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_bytes(b"\xef\xbb\xbfint a;\r\nint b;\rint c;\n")
    assert read_kernel_file(file) == "int a;\nint b;\nint c;\n"


def test_a_message_about_a_long_parameter_is_cut() -> None:
    with pytest.raises(BuildError, match="parameter") as problem:
        plan_kernel("kernel.cu", text='extern "C" void f(' + "flo " * 20_000 + "x);")
    assert len(str(problem.value)) < 5000


def test_a_message_does_not_repeat_a_whole_file() -> None:
    with pytest.raises(RewriteError) as caught:
        rewrite("#include <cuda_" + "uda_" * 50_000 + ".h>\n", INCLUDE_DIRS)
    assert 1000 < len(str(caught.value)) < 10_000


def test_a_file_truncated_anywhere_is_read_or_refused() -> None:
    text = """#define QUIET __forceinline__
template <int N> QUIET __global__ void __launch_bounds__(32) __cluster_dims__(2) f(const float (*x)[N], int n = 0) {
    extern __shared__ float s[];
    asm volatile("{.reg .f32 a; mov.f32 a, %1; add.f32 %0, a, %1;}" : "=f"(s[n]) : "f"(x[0][1]) : "memory");
}
__global__ void g(int* p) { *p = 1; }
extern "C" void h(float* x, cudaStream_t stream) { g<<<dim3(1, 2), 32, 0, stream>>>(reinterpret_cast<int*>(x)); }
"""
    for end in range(len(text) + 1):
        with contextlib.suppress(RewriteError):
            rewrite(text[:end], INCLUDE_DIRS)


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of tokens each time brackets are matched."""
    matched: list[int] = []
    find_partners = Tokens.partners.func

    def counted(tokens: Tokens) -> list[int]:
        matched.append(len(tokens))
        return find_partners(tokens)

    counting = functools.cached_property(counted)
    counting.__set_name__(Tokens, "partners")
    monkeypatch.setattr(Tokens, "partners", counting)
    return matched


def test_work_grows_with_the_size_of_a_file_that_has_a_macro(matched: list[int]) -> None:
    """Reading many functions takes linear time: brackets are not matched again for each function."""

    def work(functions: int) -> int:
        matched.clear()
        bodies = "".join(f"__device__ int f{i}(int x) {{ return ONE(x) * (x + {i}); }}\n" for i in range(functions))
        rewrite(f"#define ONE(x) ((x) + 1)\n{bodies}", INCLUDE_DIRS)
        return sum(matched)

    assert work(400) < 5 * work(100)


@pytest.mark.parametrize(
    "text",
    [
        "#define F(x) " + "x " * 3000 + "\n__device__ void g() { F(F(1;)) }",
        "#define F(x) (x)\n#define ALL " + "F(1) " * 3000 + "\n__device__ void g() { ALL; }",
        "#define F(x) (x)\n#define ALL " + "F( " * 3000 + ")" * 3000 + "\n__device__ void g() { ALL; }",
        "#define TEXT " + '"x" ' * 2000 + "\n__device__ void g() { " + "asm(TEXT); " * 1000 + "}",
    ],
    ids=["arguments", "calls in a body", "nested calls in a body", "asm statements"],
)
def test_expanding_macros_takes_limited_work(text: str, matched: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def tokens(of: Iterable[Token]) -> Tokens:
        result = Tokens(of)
        made.append(len(result))
        return result

    monkeypatch.setattr(macros, "Tokens", tokens)
    with contextlib.suppress(RewriteError):
        rewrite(text, INCLUDE_DIRS)
    assert sum(matched) + sum(made) < 4 * macros._MOST
