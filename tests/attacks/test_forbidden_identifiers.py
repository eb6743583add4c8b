"""Identifiers and attributes that a submission must not use because they bypass instrumentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.execution.build.build import plan_kernel
from grader.execution.submission_sandbox import forbidden_identifiers
from grader.execution.submission_sandbox.instrumentation_bypass import unchecked_word
from grader.frontend.tokens import Source
from grader.frontend.toolchain.process import Command, Finished, run_command

NAMES = """_Z3addii __cxa_throw _Unwind_Resume __wrap_memcpy __real_memcpy __tsan_read4 __ubsan_handle_x __asan_load __sanitizer_cov
__x86_indirect SIM_SM"""  # noqa: E501
BUILTINS = """longjmp setjmp eh_return eh_return_data_regno unwind_init return apply apply_args frob_return_addr init_dwarf_reg
dwarf_cfa mempcpy mempcpy_chk strcat strncat stpcpy strcpy_chk stpncpy printf sprintf snprintf vsnprintf vprintf fprintf fputs
fwrite sincos sincosl modf modff frexp frexpl remquof lgammal_r call_with_static_chain nonlocal_goto"""  # noqa: E501
ATTRIBUTES = """naked optimize optnone target target_clones section ifunc alias weakref symver no_reorder interrupt nocf_check
indirect_branch function_return no_sanitize_x patchable_function_entry ms_abi sysv_abi regparm preserve_all ms_hook_prologue model
vector_size ext_vector_type disable_tail_calls no_callee_saved_registers force_align_arg_pointer no_builtin annotate"""  # noqa: E501
PRAGMAS = ["GCC optimize", "GCC target", "clang attribute", "GCC push_options", "GCC pop_options", "GCC reset_options"]
PRAGMAS += ["GCC poison", "clang section", "GCC visibility", "redefine_extname", "weak"]


def refused(text: str) -> str:
    return forbidden_identifiers.refused_word(Source(text))


@pytest.mark.parametrize("name", [*NAMES.split(), *(f"__builtin_{name}" for name in BUILTINS.split())])
def test_forbidden_functions_are_refused(name: str) -> None:
    assert refused(f"int x = {name}(1);") == refused(f"int x;\n#define CALL {name}(1)\n") == name
    assert refused(f'int x{name}, y; // {name}\nconst char* z = "{name}";') == ""


@pytest.mark.parametrize("name", ATTRIBUTES.split())
def test_forbidden_attributes_are_refused(name: str) -> None:
    for one in (name, f"__{name}__"):
        for text in ("__attribute__((unused, {}(1))) void f();", "__attribute(({}))", "[[gnu::{}]] void f();"):
            assert refused(text.format(one)) == one
            assert refused(f"int x;\n#define MADE {text.format(one)}\n") == one
    assert refused(f"__attribute__((aligned(8))) int {name}[2][3]; [[nodiscard]] int g(int {name});") == "", (
        "an ordinary name"
    )


@pytest.mark.parametrize("pragma", PRAGMAS)
def test_forbidden_pragmas_are_refused(pragma: str) -> None:
    assert refused(f"#pragma {pragma} (x)\nint y;") == f"#pragma {pragma}"
    assert pragma in refused(f'_Pragma("{pragma} (x)") int y;')
    assert refused(f'#error {pragma}\nconst char* y = "{pragma}";') == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("auto x = sim::of();", "sim::"),
        ("auto x = ::sim;", "sim::"),
        ("namespace sim {}", "sim::"),
        ("float sim = 1; sim += sim;", ""),
        ("int sim", ""),
        ("__attribute__((unused, section", "section"),  # unterminated
        ("[[gnu::aligned(sizeof(int [[x]])), gnu::section(1)]] int y;", "section"),  # nested attributes
        ("int x = y[z[section]];", ""),
        ('_Pragma("unroll") for (;;) {}', ""),
        ('_Pragma("weak f"', '"weak f"'),
        ("_Pragma (", ""),
        ("#pragma unroll 4\n#pragma once\n#pragma GCC diagnostic push\nint x;", ""),
        ("__launch_bounds__(256) __global__ void f(float4* __restrict__ x) { __builtin_assume(__popc(3)); }", ""),
    ],
)
def test_forbidden_identifiers_are_found(text: str, word: str) -> None:
    assert refused(text) == word


def empty(command: Command) -> Finished:
    raise AssertionError("the compiler must not be called")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('__attribute__((no_sanitize("thread"))) void f();', "no_sanitize"),
        ("#define QUIET disable_sanitizer_instrumentation\n", "disable_sanitizer_instrumentation"),
        ("#define QUIET sanitize\n", "sanitize"),
        ("#pragma clang no_sanitize\n", "no_sanitize"),
        ("__attribute__((disable_sanitizer)) void f();", "disable_sanitizer"),
        ("void f() { _mm_pause(); }", "_mm_pause"),
        ("void f() { _mm512_add_ps(); }", "_mm512_add_ps"),
        *((f"void f() {{ __builtin_{p}_x(); }}", f"__builtin_{p}_x") for p in ("ia32", "aarch64", "arm", "neon")),
        *((f"#include <{h}.h>\n", f"<{h}.h>") for h in ("immintrin", "arm_neon", "arm_sve")),
        ("void f() { SIM_SM; }", "SIM_SM"),
        ("void f() { g(a_mm_b, mm_x); }", ""),
        ('void f() { printf("sanitize"); }  // no_sanitize', ""),
    ],
)
def test_attacks_that_bypass_checks_use_forbidden_identifiers(text: str, word: str) -> None:
    plan = plan_kernel(Path("kernel.cu"), text="__global__ void k() {}\n")
    object.__setattr__(plan, "source", Source(text))
    assert unchecked_word(plan, empty) == word


GLUE = "#define GLUE(a, b) a##b\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (GLUE + '__attribute__((GLUE(no_san, itize)("thread"))) void f() {}', "no_sanitize"),
        ('%:define GLUE(a, b) a%:%:b\n__attribute__((GLUE(no_san, itize)("thread"))) void f() {}', "no_sanitize"),
        (GLUE + "void f() { GLUE(__ato, mic_thread_fence)(5); }", "__atomic_thread_fence"),
        (GLUE + "void f() { GLUE(__builtin_long, jmp)(0, 1); }", "__builtin_longjmp"),
        ("#define MADE(how) __attribute__((how))\nMADE(optimize(3)) void f() {}", "optimize"),
        (GLUE + "GLUE(__force, inline__) __global__ void f() {}", "__forceinline__"),
        (GLUE + "void f(float* x) { GLUE(mem, set)(x, 0, 4); }", "memset"),
        (GLUE + "__global__ void f(float* x) { float y; GLUE(mem, cpy)(&y, x, 4); }", "memcpy"),
        (GLUE + "__global__ void f(float* x) { float GLUE(y, 1) = 1; memcpy(x, &y1, 4); }", ""),
        ("#define MADE(how) __attribute__((how))\nstruct MADE(aligned(8)) A {};", ""),
        (GLUE + "__global__ void f(int* x) { int GLUE(y, 1) = threadIdx.x + gridDim.x; x[y1] = 1; }", ""),
        (GLUE + "int x = threadIdx.x; int GLUE(s, im)::y = 1;", "sim::"),
        ("#define GLUE(a, b) a#\\\n#b\nvoid f() { GLUE(__ato, mic_thread_fence)(5); }", "__atomic_thread_fence"),
        ("#include <cstdint>\nvoid f() { __CONCAT(__ato, mic_thread_fence)(5); }", "__atomic_thread_fence"),
        (GLUE + "void f() { GLUE(__buil, tin_ia32_pause)(); }", "__builtin_ia32_pause"),
        (GLUE + "void f(float* x) { GLUE(_m, m_load_ps)(x); }", "_mm_load_ps"),
    ],
)
def test_identifiers_built_by_the_preprocessor_are_found(text: str, word: str) -> None:
    assert unchecked_word(plan_kernel(Path("kernel.cu"), text=text), run_command) == word


def test_without_preprocessed_text_no_identifier_is_found() -> None:
    """Check that a kernel is not refused if its preprocessing fails.

    Then its compilation fails as well, and there is no library to run.
    """
    plan = plan_kernel(Path("kernel.cu"), text=GLUE)
    assert unchecked_word(plan, lambda command: Finished(1, "")) == ""
