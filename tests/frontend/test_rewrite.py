"""The rewriter, construct by construct."""

import pytest

from grader.frontend.rewrite import RewriteError, rewrite


def body(code: str) -> str:
    """Return the rewritten body of a host function."""
    text = rewrite("void f() {" + code + "}").text
    return text[len("void f() {") : -1]


def kernel(code: str) -> str:
    """Return the rewritten body of a kernel."""
    head = "__global__ void k(float* x) {"
    text = rewrite(head + code + "}").text
    assert text.startswith(head)
    return text[len(head) : -1]


# -- launches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "callee", ["k<float>", "k<float, 4>", "ns::k<A<B<int>>>", "::k", "k<(3 > 2)>", "k<1 << 3>", "obj.table[i]"]
)
def test_callees(callee):
    text = body(f"{callee}<<<1, 2>>>(x);")
    assert text.startswith("::sim::launch(") and '"' in text and text.count("(sim_args...)") == 1


@pytest.mark.parametrize(
    "configuration",
    [
        "grid, block",
        "g, b, n * sizeof(float), stream",
        "1, f<A<int>>",  # the template closes right before the end of the configuration
        "dim3((n + 255) / 256, h), dim3(32, 8)",
        "n >> 5, 32",
        "(n > 3 ? 1 : 2), 32",
        "Tile<A, B>::blocks, 32, sizeof(std::pair<int, A<int>>)",
        "a, b, 0, s",
        "blocks<A<B>>(), 32",
    ],
)
def test_configurations(configuration):
    for arguments in ("x", "x, n", ""):
        text = body(f"k<<<{configuration}>>>({arguments});")
        assert f"LaunchConfig({configuration})" in text and "{ k(sim_args...); }" in text
        assert text.endswith(f"}}{', ' * bool(arguments)}{arguments});")


def test_arguments_are_left_as_they_are():
    text = 'k<<<1, 2>>>(f(a, b), P<int, 2>{}, [] __device__(int i) { return i > 3; }, "<<<");'
    assert body(text).endswith('f(a, b), P<int, 2>{}, [] __device__(int i) { return i > 3; }, "<<<");')


@pytest.mark.parametrize("before", ["else", "do", "if (x)", "for (;;)", "return", "case 3:", "a = b;", "x ? 1 :"])
@pytest.mark.parametrize("callee", ["k", "::n::k<3>", "(*function)", "table[i]"])
def test_what_stands_before_a_launch_is_left_alone(before, callee):
    assert body(f"{before} {callee}<<<1, 2>>>(x);").startswith(f"{before} ::sim::launch(")


def test_a_launch_over_several_lines_keeps_its_lines():
    code = "k<float,\n  4>\n<<<\n grid, // blocks\n block\n>>>\n(x,\n n);"
    assert body(code).count("\n") == code.count("\n")


def test_a_launch_in_a_macro_keeps_backslashes_and_stringizes_parameters():
    text = rewrite("#define GO(K, T) K<T> \\\n <<<1, 2>>>(x)\nvoid f() { GO(k, int); }\n").text
    assert '#K "<" #T ">"' in text and "\\\n" in text and text.count("\n") == 3


def test_several_launches_on_one_line():
    assert body("if (a) k<<<1, 2>>>(x); else k<<<2, 2>>>(x);").count("::sim::launch") == 2


def test_a_shift_is_not_a_launch():
    code = " int a = b << c; a <<= 2; std::cout << x << y; "
    assert body(code) == code


def test_the_address_of_a_kernel_is_passed_only_if_it_is_unambiguous():
    head = "template <typename T, int N = 4> __global__ void k(T* x) {}\n__global__ void p(int* x) {}\n"
    text = rewrite(head + "void f() { k<<<1, 2>>>(x); k<int><<<1, 2>>>(x); p<<<1, 2>>>(x); }").text
    assert text.count(".of(") == 2 and "(const void*)(k<int>)" in text and "(const void*)(p)" in text
    overloads = "__global__ void p(int* x) {}\n__global__ void p(float* x) {}\nvoid f() { p<<<1, 2>>>(x); }"
    assert ".of(" not in rewrite(overloads).text
    declared = "__global__ void p(int* y);\n__global__ void p(int* x) {}\nvoid f() { p<<<1, 2>>>(x); }"
    assert ".of(" in rewrite(declared).text


def test_the_cast_of_a_cooperative_launch_is_removed():
    assert body("cudaLaunchCooperativeKernel((void*)k, 1, 2, a);") == "cudaLaunchCooperativeKernel(k, 1, 2, a);"
    text = body("cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(k<int>), 1, 2, a);")
    assert text == "cudaLaunchCooperativeKernel((k<int>), 1, 2, a);"


def test_noinline_becomes_an_attribute():
    assert rewrite("__device__ __noinline__ int f();").text == "__device__ SIM_NOINLINE int f();"
    code = "__attribute__((__noinline__)) int f();"
    assert rewrite(code).text == code


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("const __grid_constant__ CUtensorMap map", "const __grid_constant__ CUtensorMap &map"),
        ("const __grid_constant__ CUtensorMap", "const __grid_constant__ CUtensorMap&"),
        ("__grid_constant__ const ns::Pair<int, float> p", "__grid_constant__ const ns::Pair<int, float> &p"),
        ("const __grid_constant__ ns::Pair", "const __grid_constant__ ns::Pair&"),
        ("const __grid_constant__ unsigned int", "const __grid_constant__ unsigned int&"),
    ],
)
def test_a_grid_constant_has_one_address(parameter, expected):
    text = rewrite(f"__global__ void k(float* x, {parameter}, int n) {{}}").text
    assert text == f"__global__ void k(float* x, {expected}, int n) {{}}"


@pytest.mark.parametrize("parameter", ["__grid_constant__ CUtensorMap map", "const __grid_constant__ CUtensorMap& map"])
def test_a_grid_constant_is_const_and_no_reference(parameter):
    with pytest.raises(RewriteError, match="must be const and must not be a reference"):
        rewrite(f"__global__ void k({parameter}) {{}}")


# -- shared memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("__shared__ float a[32][33];", 'auto& a = ::sim::shared_array<float[32][33]>("a", SIM_SITE);'),
        ("__shared__ int n;", 'auto& n = ::sim::shared_array<int>("n", SIM_SITE);'),
        ("static __shared__ float a[N + 1];", 'auto& a = ::sim::shared_array<float[N+1]>("a", SIM_SITE);'),
        ("volatile __shared__ int f;", 'auto& f = ::sim::shared_array<volatile int>("f", SIM_SITE);'),
        ("__shared__ volatile int f;", 'auto& f = ::sim::shared_array<volatile int>("f", SIM_SITE);'),
        ("__shared__ __align__(16) float a[4];", 'auto& a = ::sim::shared_array<float[4]>("a", SIM_SITE);'),
        ("__shared__ __align__(128) float a[4];", 'auto& a = ::sim::shared_array<float[4]>("a", SIM_SITE, 128);'),
        ("alignas(64) __shared__ char a[4];", 'auto& a = ::sim::shared_array<char[4]>("a", SIM_SITE, 64);'),
        (
            "__shared__ typename R<T, 8>::TempStorage t;",
            'auto& t = ::sim::shared_array<typename R<T, 8>::TempStorage>("t", SIM_SITE);',
        ),
        ("__shared__ float* p;", 'auto& p = ::sim::shared_array<float*>("p", SIM_SITE);'),
        ("__shared__ unsigned long long m[A < B ? A : B];", "unsigned long long[A<B?A:B]"),
    ],
)
def test_shared_declarations(declaration, expected):
    assert expected in kernel(declaration)


def test_several_declarators():
    text = kernel("__shared__ float a[4], b, *c[2];")
    assert "<float[4]>" in text and '<float>("b"' in text and "<float*[2]>" in text


def test_a_structure_defined_in_place():
    text = kernel("__shared__ struct { float a; int b; } s;")
    assert text.startswith("typedef struct{float a;int b;} sim_type_s; auto& s = ")


def test_a_shared_array_in_a_macro():
    text = rewrite("#define TILE(name) __shared__ float name[4]\n").text
    assert text == "#define TILE(name) auto& name = ::sim::shared_array<float[4]>(#name, SIM_SITE)\n"


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("extern __shared__ float s[];", 'auto* s = ::sim::dynamic_shared<float>("s");'),
        ("extern __shared__ __align__(16) unsigned char s[];", 'auto* s = ::sim::dynamic_shared<unsigned char>("s");'),
        ("extern __shared__ float s[][33];", 'auto* s = ::sim::dynamic_shared<float[33]>("s");'),
        ("extern volatile __shared__ int s[];", 'auto* s = ::sim::dynamic_shared<volatile int>("s");'),
    ],
)
def test_dynamic_shared_memory(declaration, expected):
    assert kernel(declaration) == expected


def test_dynamic_shared_memory_of_the_file_is_declared_where_it_is_used():
    text = rewrite(
        "extern __shared__ float s[];\n__global__ void k() { s[0] = 1; }\n__global__ void l(float* s) { s[0] = 1; }\n"
    ).text
    assert text.count("dynamic_shared<float>") == 1 and '{ auto* s = ::sim::dynamic_shared<float>("s");' in text


# -- variables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "registered"),
    [
        ("__constant__ float c[4] = {1, 2, 3, 4};", ["c", "constant"]),
        ("__device__ int counter;", ["counter", "device"]),
        ("static __device__ unsigned a, b[4];", ["a", "b", "device"]),
        ("__device__ __constant__ float c;", ["c", "constant"]),
        ("namespace n { __device__ float x = f(1, 2); }", ["x", "device"]),
        ("__device__ std::pair<int, float> p;", ["p", "device"]),
        ("__constant__ struct { int a; } s;", ["s", "constant"]),
        ("__device__ float x{3};", ["x", "device"]),
        ("__device__ int Counter::value = 3;", ["Counter::value", "device"]),
    ],
)
def test_variables_are_registered(declaration, registered):
    text = rewrite(declaration).text
    *names, kind = registered
    in_order = "SIM_IN_ORDER " if len(names) == 1 else "SIM_SEVERAL_IN_ORDER "
    assert text.replace(in_order, "", 1).startswith(declaration.rstrip("}").rstrip())
    for name in names:
        label = name.replace("::", "_")
        registration = f'RegisterGlobal sim_global_{label}("{name}", (void*)&{name}, sizeof({name}), ::sim::GlobalKind'
        assert f"{registration}::{kind})" in text
    assert text.count("RegisterGlobal") == len(names)
    assert text.count("SIM_ZONE") == 1


@pytest.mark.parametrize(
    "code",
    [
        "inline __device__ float f(float x) { return x; }",
        "__device__ __attribute__((noinline)) float f(float x) { return x; }",
        "#define HELPER __device__ inline\nHELPER float f(float x) { return x; }",
        "#define FAST inline\nFAST __device__ float f(float x) { return x; }",
        "template <int N> __device__ __forceinline__ float f(float (&x)[N]);",
        "__device__ float f(float x);",
        "struct S { __device__ float operator()(float x) const { return x; } __device__ S() : a(1) {} float a; };",
        "extern __device__ int counter;",
        "auto f = [] __device__ (int i) { return i; };",
        "__global__ void k() { int x = 3; }",
    ],
)
def test_functions_are_left_alone(code):
    assert rewrite(code).text == code


@pytest.mark.parametrize(
    "code",
    [
        "__device__ float f(float x) { return x; }",
        "template <int N> static __device__ float f(float (&x)[N]) { return x[0]; }",
        "namespace n { __host__ __device__ constexpr int f() { return 3; } }",
        "__device__ __noinline__ float f(float x) { return x; }",
    ],
)
def test_device_functions_are_inline(code):
    expected = code.replace("__device__", "SIM_HELPER __device__").replace("__noinline__", "SIM_NOINLINE")
    assert rewrite(code).text == expected


def test_branches_of_the_preprocessor_open_a_brace_twice():
    text = "#ifdef A\nvoid f(int a) {\n#else\nvoid f(long a) {\n#endif\n}\n__device__ int x;\n"
    assert "RegisterGlobal sim_global_x" in rewrite(text).text


def test_shared_arrays_in_branches_of_the_preprocessor():
    text = "__global__ void k() {\n#ifdef A\n    __shared__ float a[3];\n#else\n    __shared__ float a[4];\n#endif\n}\n"
    done = rewrite(text).text
    assert '    auto& a = ::sim::shared_array<float[3]>("a", SIM_SITE);\n#else\n' in done
    assert '    auto& a = ::sim::shared_array<float[4]>("a", SIM_SITE);\n#endif\n' in done


def test_a_launch_with_branches_of_the_preprocessor_in_it():
    text = "void f() { k<<<1,\n#ifdef A\n 32\n#else\n 64\n#endif\n>>>(x,\n#if B\n y\n#else\n z\n#endif\n); }"
    done = rewrite(text).text
    assert "LaunchConfig(1,\n#ifdef A\n 32\n#else\n 64\n#endif\n)" in done
    assert [line for line in done.split("\n") if line.startswith("#")] == [
        line for line in text.split("\n") if line.startswith("#")
    ]


# -- unsupported constructs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("\ntexture<float, 1> t;", 2, "texture"),
        ("void f() {\n\n cudaBindTexture(0, t, p, d, n); }", 3, "texture"),
        ('void f() {\n asm("wgmma.mma_async 1;"); }', 2, "wgmma.mma_async"),
        ("#include <cmath>\n#include <thrust/sort.h>\n", 2, "Thrust"),
        ("#include <torch/extension.h>\n", 1, "PyTorch"),
        ('#include "mine.cuh"\n', 1, "cannot include your own files"),
        ('#include "llmk/mine.cuh"\n', 1, "no such header"),
        ("#include </etc/hostname>\n", 1, "must not include a file by an absolute path"),
        ('#include "../solutions/relu.cu"\n', 1, "must not include a file by an absolute path"),
        ("void f() {\n k<<<1>>>(); }", 2, "1 value"),
        ("void f() {\n k<<<1, 2, 3, 4, 5>>>(); }", 2, "5 values"),
        ("void f() {\n k<<<>>>(); }", 2, "no grid"),
        ("void f() {\n k<<<1, 2>>(); }", 2, "without a matching '>>>"),
        ("void f() {\n <<<1, 2>>>(); }", 2, "no kernel's name before"),
        ("__global__ void k() {\n __shared__ int n = 3; }", 2, "initializer"),
        ("__shared__ int n;", 1, "outside a kernel"),
        ("__global__ void k() {\n static int n[4] = {1}; }", 2, "a static variable in device code"),
        ("template <class T> __device__ void f() {\n if (a) { static T n; } }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static __device__ int n; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static int n(0); }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static int n{0}; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n int static n(0); }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static const int* p = nullptr; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static const int *p(nullptr), n = 2; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static const int n = 2, *p = nullptr; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static const char* names[2] = {}; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static Box<const int> b; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n static const int (*p)[4] = nullptr; }", 2, "a static variable in device code"),
        ("__global__ void k() {\n auto f = [] { static int n(0); }; }", 2, "a static variable in device code"),
        (
            "__global__ void k() {\n struct S { static int f() { static int n(0); return n; } }; }",
            2,
            "a static variable in device code",
        ),
        ("__global__ void k() {\n __shared__ float a\n#if A\n [3]\n#else\n [4]\n#endif\n; }", 3, "#if inside"),
    ],
)
def test_errors_name_the_construct_and_the_line(code, line, says):
    with pytest.raises(RewriteError, match=says) as caught:
        rewrite(code)
    assert caught.value.line == line and caught.value.source_line


@pytest.mark.parametrize(
    "statement",
    [
        "static const float table[2] = {1, 2};",
        "static constexpr int n = 4;",
        "static __shared__ float s[4];",
        "struct S { static __device__ int f() { return 1; } };",
        "static_assert(n == 4);",
        "const static float table[2] = {1, 2};",
        "static float const scale(2);",
        "if (a) static const int n = 2;",
        "__align__(16) const static float aligned[4] = {};",
        "static const int* const p = nullptr;",
        "static const char* const names[] = {};",
        "static const Box<int*> b{};",
        "static void (*const f)(int) = g;",
        "static const int (*const p)[4] = nullptr, n = f(*p);",
        "static constexpr const int* p = nullptr;",
    ],
)
def test_other_static_declarations_in_device_code_are_accepted(statement):
    rewrite(f"__global__ void k() {{ {statement} }}")
    rewrite("void f() { static int calls = 0; ++calls; }")
    rewrite("__global__ void k() { static int n; }", alone=False)


def test_code_that_the_preprocessor_removes_is_no_error():
    code = "#if 0\n#include <thrust/sort.h>\ntexture<float> t;\n#endif\n"
    assert rewrite(code).text == code


def test_a_comment_may_hold_anything():
    code = '// k<<<1>>>(x) texture<float> asm("x")\n/* __shared__ int a = 3; */ const char* s = "<<<";\n'
    assert rewrite(code).text == code


def test_memcpy_and_memset_become_checked_functions():
    body = (
        "memcpy(a, b, n); ::memmove(a, b, n); std::memset(a, 0, n); __builtin_memcpy(a, b, n); sandbox::memcpy(a, "
        "b, n);"
    )
    assert rewrite(f"void f() {{ {body} }}").text == (
        "void f() { ::sim::copy_bytes(a, b, n); ::sim::move_bytes(a, b, n); ::sim::set_bytes(a, 0, n); "
        "::sim::copy_bytes(a, b, n); sandbox::memcpy(a, b, n); }"
    )
    assert rewrite("#define COPY memcpy\n").text == "#define COPY ::sim::copy_bytes\n"
    for same in ("void memcpy(void* a);", "x.memcpy(a);", "using std::memcpy;", "cudaMemcpy(a, b, n, kind);"):
        assert rewrite(same).text == same


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("void f() {\n __atomic_load_n(p, 0); }", 2, "__atomic_load_n is a compiler builtin"),
        ("void f() {\n __sync_fetch_and_add(p, 1); }", 2, "__sync_fetch_and_add is a compiler builtin"),
        ("#define A\n#define B __attribute__((always_inline))\n", 2, "always_inline is a compiler builtin"),
        ("\n__global__ __forceinline__ void f() {}", 2, "the kernel f is __forceinline__"),
        ("#define A __forceinline__\n#define B A\nB __global__ void f() {}", 3, "the kernel f is __forceinline__"),
        ("void f() <%\n __sync_fetch_and_add(p<:1:>, 1); %>", 2, "__sync_fetch_and_add is a compiler builtin"),
    ],
)
def test_constructs_that_bypass_the_checks_are_refused(code, line, says):
    with pytest.raises(RewriteError, match=says) as caught:
        rewrite(code)
    assert caught.value.line == line


# -- polling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "code", "polled"),
    [
        ("__device__ volatile int flag;", "while (flag == 0) {}", ["flag == 0"]),
        ("__device__ volatile int ready[64];", "do {} while (ready[n - 1] == 0);", ["ready[n - 1] == 0"]),
        ("__device__ int peek(int n, const volatile int* p);", "while (peek(n, x) == 0) {}", ["peek(n, x) == 0"]),
        ("", "while (*static_cast<volatile int*>(x) == 0) {}", ["*static_cast<volatile int*>(x) == 0"]),
        ("__device__ volatile int flag;", "while (n) --n; if (flag) ++n; while (int m = flag) n += m;", []),
        ("", 'asm volatile("membar.gl;"); while (n) --n;', []),
    ],
)
def test_conditions_that_read_volatile_variables_poll(declaration: str, code: str, polled: list[str]) -> None:
    text = rewrite(f"{declaration} __global__ void k(int* x, int n) {{ {code} }}").text
    assert text.count("Polling") == len(polled)
    for condition in polled:
        assert f"while (::sim::Polling(), {condition})" in text


@pytest.mark.parametrize(
    ("code", "rewritten"),
    [
        ("do { v = *f; } while (v == 0);", "do { v = (P, *f); } while (v == 0);"),
        ("do v = *f; while (!v);", "do v = (P, *f); while (!v);"),
        ("do { if (n) { v = f[1]; } } while (!v);", "do { if (n) { v = (P, f[1]); } } while (!v);"),
        ("do { do { v = *f; } while (!v); } while (v);", "do { do { v = (P, *f); } while (!v); } while (v);"),
        ("v = *f; while (v == 0) v = *f;", "v = (P, *f); while (v == 0) v = (P, *f);"),
        ("while (v) v = *f; while (!v) v = *f;", "while (v) v = (P, *f); while (!v) v = (P, *f);"),
        ("int w = *f; while (!w) { w = *f; }", "int w = (P, *f); while (!w) { w = (P, *f); }"),
        ("v = f[1]; while (!v) v = *f; v = *f;", "v = f[1]; while (!v) v = (P, *f); v = *f;"),
        ("do { v = *f; } while (--n);", None),
        ("do { x[v] = *f; } while (v);", None),
        ("do { v = *f, ++n; } while (v);", None),
        ("do { v = {*f}; } while (!v);", None),
        ("do { for (; n; v = *f) --n; } while (!v);", None),
        ("do { v = [&] { return *f; }(); } while (!v);", None),
        ("do { int v = *f; n -= v; } while (v);", None),
        ("do { v = x[1]; } while (v);", None),
        ("v = *f; if (v) do { --v; } while (v);", None),
        ("{ v = *f; } while (v) --v;", None),
        ("while (v) --v; v = *f;", None),
    ],
)
def test_reads_whose_values_a_loop_tests_poll(code: str, rewritten: str | None) -> None:
    before = "__global__ void k(volatile int* f, int* x, int n, int v) { "
    text = rewrite(f"{before}{code} }}").text
    assert (rewritten or code).replace("P,", "::sim::Polling(),") in text
    assert text.count("Polling") == (rewritten or "").count("P,")


# -- positions ---------------------------------------------------------------------------------------------------------


def test_columns_are_mapped_back():
    line = "    kernel<<<grid, block>>>(first, second);"
    rewritten = rewrite("void f() {\n" + line + "\n}\n")
    generated = rewritten.text.split("\n")[1]
    assert rewritten.original_column(2, generated.index("second") + 1) == line.index("second") + 1
    assert rewritten.original_column(2, generated.index("sim_args") + 1) == line.index("kernel") + 1
    assert rewritten.original_column(3, 1) == 1
