"""Compiler messages as shown to learners."""

import re
from pathlib import Path

import pytest

from grader import load_kernel
from grader.execution.build.diagnostics import explain, read_messages
from grader.frontend.messages import CompilerMessage
from grader.frontend.rewrite import rewrite
from grader.frontend.toolchain.compilers import Compiler, available_cxx
from grader.frontend.toolchain.process import Command, run_command
from grader.setup.errors import BuildError

GXX = Compiler(("g++",), "gcc", "12.2.0", "")
PATH = Path("somewhere/relu.cu")
SOURCE = """#include <cuda_runtime.h>
__global__ void relu(float* x, int n) {
\tint i = threadIdx.x;
    if (i < n) x[i] = fmax(x[i], zero);
}
extern "C" void go(float* x, int n, cudaStream_t stream) {
    relu<<<1, 256>>>(x, n, 3);
}
"""


def explained(output: str, source: str = SOURCE) -> str:
    return str(explain(output, PATH, source, None, GXX))


def test_gcc_at_the_line_with_a_caret():
    text = explained(
        "relu.cu: In function 'void relu(float*, int)':\n"
        "relu.cu:4:34: error: ‘zero’ was not declared in this scope\n"
        "    4 |     generated text\n      |     ^~~~\n"
    )
    assert text == (
        "relu.cu:4:34: error: 'zero' was not declared in this scope\n"
        "  4 |     if (i < n) x[i] = fmax(x[i], zero);\n"
        "    |                                  ^~~~"
    )


def test_tabs_stay_so_that_the_caret_lines_up():
    text = explained("relu.cu:3:10: error: what is this\n")
    assert text.splitlines()[1:] == ["  3 | \tint i = threadIdx.x;", "    | \t        ^~~~~~~~~"]


def test_errors_come_before_warnings_and_notes_stay_with_their_message():
    found = read_messages(
        "relu.cu:3:9: warning: unused variable 'i' [-Wunused-variable]\n"
        "relu.cu:7:5: error: no matching function for call to 'relu(float*&)'\n"
        "relu.cu:2:17: note: candidate: 'void relu(float*, int)'\n"
        "sim/launch.h:12:3: note: internal\n"
        "relu.cu:4:5: error: second\n",
        PATH,
        SOURCE,
        None,
    )
    assert [d.severity for d in found] == ["error", "error", "warning"]
    assert [n.line for n in found[0].notes] == [2]
    assert found[2].message == "unused variable 'i'"


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        (
            "sim/launch.h: In instantiation of 'void launch(K) [with K = int]':\n"
            "relu.cu:7:5:   required from here\n"
            "sim/launch.h:40:9: error: no match for call to '(int) ()'\n",
            "relu.cu:7:5: error: no match for call",
        ),
        (
            "sim/launch.h:10:20: error: 'sim_thread' was not declared\n"
            "   10 | #define threadIdx (sim_thread())\n"
            "relu.cu:3:10: note: in expansion of macro 'threadIdx'\n",
            "relu.cu:3:10: error:",
        ),
        (
            "sim/launch.h:40:9: error: no matching function\n"
            "    kernel(arguments...);\n    ^~~~~~\n"
            "relu.cu:7:5: note: in instantiation of function template specialization 'launch<int>' requested here\n",
            "relu.cu:7:5: error: no matching function",
        ),
    ],
    ids=["instantiation", "macro", "clang++"],
)
def test_an_error_in_a_header_is_moved_to_the_line_that_led_there(output: str, begins: str) -> None:
    text = explained(output)
    assert text.startswith(begins) and "launch.h" not in text


def test_nvcc_has_a_caret_but_no_column():
    text = explained(
        'relu.cu(4): error: identifier "zero" is undefined\n'
        "      if (i < n) x[i] = fmax(x[i], zero);\n"
        "                                   ^\n"
        '\n1 error detected in the compilation of "kernel.cu".\n'
    )
    assert text.startswith('relu.cu:4:34: error: identifier "zero" is undefined')
    text = explained('relu.cu(4): error: identifier "zero" is undefined\n   expanded text zero\n   ^\n')
    assert text.startswith("relu.cu:4:34:")


def test_columns_count_bytes_in_compilers_and_characters_here():
    source = "int é = nope;\n"
    assert explained("relu.cu:1:10: error: 'nope' was not declared\n", source).startswith("relu.cu:1:9:")


def test_columns_of_rewritten_lines_are_the_learners():
    rewritten = rewrite(SOURCE.replace("<cuda_runtime.h>", "<cmath>"))
    column = rewritten.text.split("\n")[6].index("(sim_args") + 1
    text = str(explain(f"relu.cu:7:{column}: error: no matching function\n", PATH, SOURCE, rewritten, GXX))
    assert text.startswith("relu.cu:7:5: error") and "relu<<<1, 256>>>(x, n, 3);" in text


@pytest.mark.parametrize(
    "output",
    [
        "/usr/bin/ld: kernel.o: in function `go':\n/tmp/x/kernel.cpp:7: undefined reference to `helper(float)'\n",
        "/usr/bin/ld: kernel.o: in function `go':\nrelu.cu:7: undefined reference to `helper(float)'\n",
    ],
)
def test_the_linker(output):
    assert explained(output).startswith("relu.cu:7: error: used but not defined: 'helper(float)'")


def test_the_same_message_is_shown_once_and_long_lists_are_cut():
    text = explained("relu.cu:4:5: error: same\n" * 3)
    assert text.count("same") == 1
    text = explained("".join(f"relu.cu:{i}:1: error: number {i}\n" for i in range(1, 30)))
    assert "number 8" in text and "number 9" not in text and text.endswith("... and 21 more errors")


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("g++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
        ("error -- unsupported GNU version! gcc versions later than 12 are not supported!", "older g++"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120a'", "newer CUDA toolkit"),
        ("fatal: No space left on device", "disk is full"),
        ("relu.cu:3:1: internal compiler error: Segmentation fault\n0x7f2 crash_signal\n", "a bug in the compiler"),
        ("PLEASE submit a bug report to github\nStack dump:\n0. Program arguments: clang++", "a bug in the compiler"),
    ],
)
def test_failures_without_a_line(output, hint):
    problem = explain(output, PATH, SOURCE, None, GXX)
    assert hint in problem.hint and "relu.cu" in problem.message


def test_paths_of_this_machine_are_not_shown():
    problem = explain("/home/someone/cache/v1/thing: it broke", PATH, SOURCE, None, GXX)
    assert "someone" not in problem.message and "thing: it broke" in problem.message


@pytest.mark.parametrize("url", ["https://deb.li/a/bubblewrap", "file:///usr/share/doc/bubblewrap/README.Debian.gz"])
def test_an_address_in_an_unknown_message_is_kept(url: str) -> None:
    said = explain(f"tool in /home/someone/v1/tool: see <{url}> or /usr/share/doc/x", PATH, SOURCE, None, GXX).message
    assert said.endswith(f"tool in tool: see <{url}> or x")


def test_an_internal_error_of_the_compiler_is_not_shown_raw():
    output = "relu.cu: In function 'f':\nrelu.cu:3:1: internal compiler error: Segmentation fault\n0x7f2 crash_signal\n"
    problem = explain(output, PATH, SOURCE, None, GXX)
    assert problem.message == f"{GXX} stopped with an internal error while it compiled relu.cu at line 3."


def test_a_compiler_without_output():
    assert "it printed nothing" in explain("", PATH, SOURCE, None, GXX).message


def test_an_error_is_shown_once_for_all_types_and_all_uses_of_a_name() -> None:
    text = explained(
        "relu.cu:4:16: error: invalid operands of types 'float*' and 'float*' to binary 'operator+'\n"
        "relu.cu:4:16: error: invalid operands of types '__half*' and '__half*' to binary 'operator+'\n"
        "relu.cu:4:34: error: 'zero' was not declared in this scope\n"
        "relu.cu:4:40: error: 'zero' was not declared in this scope; did you mean 'zeros'?\n"
        "relu.cu:7:5: error: 'zero' was not declared in this scope\n"
    )
    assert [line.split(": ")[0] for line in text.splitlines() if "error" in line] == [
        "relu.cu:4:16",
        "relu.cu:4:34",
        "relu.cu:7:5",
    ]


@pytest.mark.parametrize("type_name", ["int", "Tile"])
def test_two_errors_of_a_line_that_name_the_same_type_are_both_shown(type_name: str) -> None:
    text = explained(
        f"relu.cu:4:16: error: cannot convert 'float*' to '{type_name}' in initialization\n"
        f"relu.cu:4:34: error: cannot convert 'double*' to '{type_name}' in initialization\n"
    )
    assert "4:16: error: cannot convert 'float*'" in text and "4:34: error: cannot convert 'double*'" in text


def test_advice_is_beside_its_error_and_is_given_once() -> None:
    output = "relu.cu:3:1: error: broken\nrelu.cu:4:5: error: 'print' was not declared\n"
    problem = explain(output + output.replace(":4:", ":7:"), PATH, SOURCE, None, GXX)
    assert [bool(message.advice) for message in problem.diagnostics] == [False, True, False]
    assert problem.hint == problem.diagnostics[1].advice


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        ("if i < n: x[i] = 0", "expected '(' before 'i'", "if (i < n) { ... }"),
        ("for i in range(n):", "expected '(' after 'for'", "for (int i = 0; i < n; ++i) { ... }"),
        ("# guard", "invalid preprocessing directive #guard", "A C++ comment begins with //"),
        ("i = threadIdx.x;", "use of undeclared identifier 'i'", "Declare i with its type"),
        ("y = torch::exp(x);", "'torch' has not been declared", "A kernel cannot use torch"),
        ("out = a + b;", "invalid operands of types 'float*' and 'float*' to binary 'operator+'", "out[i] = a[i]"),
        ("out = a + b;", "invalid operands to binary expression ('float *' and 'float *')", "out[i] = a[i]"),
        ("y = x ** 2;", "invalid type argument of unary '*' (have 'int')", "write x * x, or powf(x, y)"),
        ("y = x ** 2;", "indirection requires pointer operand ('int' invalid)", "write x * x, or powf(x, y)"),
        ("bool a = True;", "use of undeclared identifier 'True'; did you mean 'true'?", "In C++, write true."),
        ("float m = -inf;", "'inf' was not declared in this scope; did you mean 'ynf'?", "Infinity is INFINITY"),
        ("x[i][j] = 0;", "invalid types 'float[int]' for array subscript", "at [row * cols + col]"),
        ("x[i][j] = 0;", "subscripted value is not an array, pointer, or vector", "at [row * cols + col]"),
        ("n = x.size();", "request for member 'size' in 'x', which is of non-class type", "has no size or shape"),
        ("n = x.size();", "member reference base type 'const float *' is not a structure", "has no size or shape"),
        ("wmma::fill();", "'wmma' has not been declared", "Add #include <mma.h>, and write nvcuda::wmma."),
        ("k<n><<<1, 2>>>();", "insufficient contextual information to determine type", "must be a constant"),
        ("k<n><<<1, 2>>>();", "address of overloaded function 'k' does not match", "must be a constant"),
        ("atomicMax(x, y);", "no matching function for call to 'atomicMax(float*, float)'", "CUDA has no atomicMax"),
        ("float part[n];", "variable length array is used [-Werror=vla]", "with the largest size that you need"),
    ],
)
def test_python_in_a_kernel_gets_advice(line: str, message: str, advice: str) -> None:
    problem = explain(f"relu.cu:1:1: error: {message}\n", PATH, f"{line}\n", None, GXX)
    assert advice in problem.hint and "-Werror" not in problem.message


def test_only_the_beginning_of_a_long_line_is_parsed_for_advice() -> None:
    """Bound the time: some patterns take quadratic time on a line of a million characters."""
    line = "x; " * 1000 + "k<n><<<1, 2>>>();"
    message = "insufficient contextual information to determine type"
    assert not explain(f"relu.cu:1:1: error: {message}\n", PATH, f"{line}\n", None, GXX).hint


@pytest.mark.parametrize("line", ["#pragmas once", "if (i == n) return;", "y = *n;"])
def test_other_lines_get_no_advice_about_python(line: str) -> None:
    message = "'i' was not declared" if "i" in line else "invalid type argument of unary '*' (have 'int')"
    if line[0] == "#":
        message = "invalid preprocessing directive #pragmas; did you mean #pragma?"
    assert not explain(f"relu.cu:1:1: error: {message}\n", PATH, f"{line}\n", None, GXX).hint


HINTS = [
    ("'__half' does not name a type", "Add #include <cuda_fp16.h>"),
    ("unknown type name '__nv_bfloat16'", "Add #include <cuda_bf16.h>"),
    ('identifier "__float2half" is undefined', "Add #include <cuda_fp16.h>"),
    ("'__shfl_xor' was not declared in this scope; did you mean '__floor'?", "write __shfl_xor_sync(0xffffffff, ...)"),
    ("ambiguous overload for 'operator-' (operand types are 'const __half' and 'float')", "static_cast<float>(x)"),
    ("use of overloaded operator '-' is ambiguous (with operand types '__nv_bfloat16' and 'float')", "<float>(x)"),
    ("call of overloaded 'max(__half&, __half&)' is ambiguous", "static_cast<float>(x)"),
    ("call of overloaded 'exp(__nv_bfloat16)' is ambiguous", "static_cast<float>(x)"),
    ("no match for 'operator+' (operand types are 'const float4' and 'const float4')", "make_float4(a.x + b.x"),
    ("no match for 'operator*=' (operand types are 'uint2' and 'int')", "make_uint2(a.x + b.x"),
    ("invalid operands to binary expression ('float' and 'double2')", "make_double2(a.x + b.x"),
]


@pytest.mark.parametrize(("message", "hint"), HINTS)
def test_usual_mistakes_have_a_hint(message: str, hint: str) -> None:
    assert hint in explain(f"relu.cu:4:5: error: {message}\n", PATH, SOURCE, None, GXX).hint


@pytest.mark.parametrize(
    "message",
    [
        "'zero' was not declared in this scope",
        "ambiguous overload for 'operator-' (operand types are 'A')",
        "call of overloaded 'max(int&, float&)' is ambiguous",
        "no match for 'operator+' (operand types are 'float4x4' and 'Sum')",
    ],
)
def test_other_mistakes_have_none(message: str) -> None:
    assert explain(f"relu.cu:4:5: error: {message}\n", PATH, SOURCE, None, GXX).hint == ""


def test_a_dynamic_shared_array_of_two_types() -> None:
    source = "template <typename T>\n__global__ void f(T* x) {\n    extern __shared__ T row[];\n}\n"
    message = 'declaration is incompatible with previous "row" (declared at line 3)'
    output = f"relu.cu(3): error: {message}\n      extern __shared__ T row[];\n                          ^\n"
    output += '          detected during:\n            instantiation of "void f(T *) [with T=float]" at line 9\n'
    problem = explain(output, PATH, source, None, GXX)
    assert problem.diagnostics[0].message == message and "reinterpret_cast<T*>(bytes)" in problem.hint
    other = output.replace("extern __shared__ T", "T")
    assert not explain(other, PATH, source.replace("extern __shared__ T", "T"), None, GXX).hint


def test_a_fence_of_markdown_is_recognized() -> None:
    problem = explain("relu.cu:1:1: error: stray '`' in program\n", PATH, f"```cpp\n{SOURCE}```\n", None, GXX)
    assert "stray '`' in program" in problem.message and "Markdown" in problem.hint


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (SOURCE.replace("zero);\n}", "zero);\n"), 2),
        (SOURCE.replace("zero);\n}", "zero);\n").replace("int n, cuda", "int n,\n                   cuda"), 2),
        (SOURCE[: SOURCE.index(", 3);")], 6),
        (SOURCE.replace("fmax(x[i], zero)", "fmax(x[i], zero"), 4),
    ],
    ids=["no closing brace", "a parameter list of two lines", "saved half-way", "no closing parenthesis"],
)
def test_a_bracket_that_is_never_closed_replaces_its_consequences(source: str, line: int) -> None:
    problem = explain("relu.cu:6:8: error: expected unqualified-id before string constant\n", PATH, source, None, GXX)
    (only,) = problem.diagnostics
    assert (only.line, only.file) == (line, "relu.cu")
    assert "is never closed" in only.message and problem.hint.startswith("Add the missing")


def test_brackets_in_the_branches_of_an_if_are_not_compared() -> None:
    branches = "#if SIM\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n"
    assert explained("relu.cu:4:34: error: 'zero' was not declared\n", SOURCE + branches).startswith("relu.cu:4:34")


def test_errors_in_generated_entry_points_are_left_out_after_another_error() -> None:
    generated = "launchers:1:8: error: expected unqualified-id before string constant\n"
    found = read_messages(f"{generated}relu.cu:4:34: error: 'zero' was not declared\n", PATH, SOURCE, None)
    assert [(d.file, d.line) for d in found] == [("relu.cu", 4)]
    assert read_messages(generated, PATH, SOURCE, None)


def test_a_message_without_a_place():
    assert str(CompilerMessage("error", "broken")) == "error: broken"


MISTAKES = [
    ("int f() { return nope; }\n", 1, 18, "nope"),
    ("int f() {\n    return 1\n}\n", 2, 0, "';'"),
    ("template <typename T> T f(T a, T b);\nint g() {\n    return f(1, 2.0);\n}\n", 3, 0, "f"),
    ("struct A { int b; };\nint f(A a) { return a.c; }\n", 2, 23, "c"),
    ("#include <no_such_header.h>\n", 1, 0, "no_such_header.h"),
]


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
@pytest.mark.parametrize(("code", "line", "column", "says"), MISTAKES)
def test_real_compilers(compiler, code, line, column, says, tmp_path):
    (tmp_path / "kernel.cpp").write_text(f'#line 1 "relu.cu"\n{code}')
    done = run_command(Command((*compiler.command, "-std=c++17", "-c", "kernel.cpp"), tmp_path))
    assert done.returncode != 0
    problem = explain(done.output, PATH, code, None, compiler)
    first = problem.diagnostics[0]
    assert (first.severity, first.file, first.line) == ("error", "relu.cu", line)
    assert says in first.message and (not column or first.column == column)
    assert str(tmp_path) not in problem.message


WRONG_CALLS = [
    ("template <int N> void add(const float* x, float* out);", "add(x, out)", "N cannot be deduced from the arguments"),
    (
        "template <typename T> void add(const T* x, T* out);",
        "add(out, x)",
        "T cannot be float for one argument and const",
    ),
    ("template <typename T> void add(const T* x, T* out);", "add(x)", "takes 2 arguments, but the call has 1."),
    ("void add(const float* x, float* out);", "add(out, x)", "ument"),
]


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
@pytest.mark.parametrize(("definition", "call", "says"), WRONG_CALLS)
def test_a_call_with_wrong_arguments_names_the_definition(
    compiler: Compiler, definition: str, call: str, says: str, tmp_path: Path
) -> None:
    code = f"{definition}\nvoid go(const float* x, float* out) {{ {call}; }}\n"
    (tmp_path / "kernel.cpp").write_text(f'#line 1 "relu.cu"\n{code}')
    done = run_command(Command((*compiler.command, "-std=c++17", "-c", "kernel.cpp"), tmp_path))
    hint = explain(done.output, PATH, code, None, compiler).hint
    assert "with the definition at line 1" in hint and says in hint
    if compiler.family == "gcc":
        assert re.search(r"void add\(const (T|float)\*, (T|float)\*\)", hint)


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
def test_a_missing_quotation_mark_is_not_reported_as_a_missing_bracket(compiler: Compiler, tmp_path: Path) -> None:
    code = 'int printf(const char*, ...);\nvoid go(int n) {\n    printf("%d\\n, n);\n}\n'
    (tmp_path / "kernel.cpp").write_text(f'#line 1 "relu.cu"\n{code}')
    done = run_command(Command((*compiler.command, "-std=c++17", "-c", "kernel.cpp"), tmp_path))
    (only,) = (d for d in explain(done.output, PATH, code, None, compiler).diagnostics if d.severity == "error")
    assert "missing terminating" in only.message and only.line == 3 and "quotation mark" in only.advice


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
def test_the_size_of_a_shared_array_must_be_a_constant(compiler: Compiler, tmp_path: Path) -> None:
    source = SOURCE.replace("    if (i < n)", "    __shared__ float part[n];\n    if (i < n)").replace(
        ", zero", ", part[0]"
    )
    (tmp_path / "relu.cu").write_text(source.replace("(x, n, 3)", "(x, n)"))
    with pytest.raises(BuildError, match="variable length array") as raised:
        load_kernel(tmp_path / "relu.cu", compiler=compiler.path)
    assert "extern __shared__ float part[];" in str(raised.value) and "shared_array" not in str(raised.value)
