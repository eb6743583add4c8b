"""Texts that repeat one element. Each kind once made the grader's own process slow, use much memory, or fail."""

from __future__ import annotations

from collections.abc import Callable

_KERNEL = "__global__ void f() {"

FRONT_END: dict[str, Callable[[int], str]] = {
    "braces": lambda n: "{" * n,
    "parentheses": lambda n: "void f(" + "(" * n,
    "attributes": lambda n: "[[" * n,
    "alignments": lambda n: "alignas(" * n,
    "angles in a variable": lambda n: "__device__ int " + "a<" * n + ";",
    "angles before a launch": lambda n: "void f() {" + "a>" * n + "f<<<1, 1>>>();}",
    "templates": lambda n: "template <" * n,
    "template kernels": lambda n: "template <class T> __global__ void f(T)" * n,
    "__global__": lambda n: "__global__ " * n,
    "volatile words": lambda n: "while (x) volatile y " * n,
    "kernels in parameters": lambda n: "__global__ void f(" * n,
    "launches": lambda n: "void g() {" + "f<<<1, 1>>>();" * n + "}",
    "launches in arguments": lambda n: "void g() {" + "f<<<1, 1>>>(" * n + ")" * n + ";}",
    "launches with braces of a macro": lambda n: (
        "#define M(x) {x\nvoid g() {" + "M(f)<<<1, 1>>>(M(a));\n" * n + "}" * (2 * n + 1)
    ),
    "lambdas without bodies": lambda n: "void g() {" + "auto f = [a];" * n + "k<<<1, 1>>>(f);}",
    "launches without an end": lambda n: "void g() {" + "f<<<" * n + "}",
    "launches of launches": lambda n: "void g() {" + "(" * n + "f" + "<<<1, 1>>>())" * n + "}",
    "#if": lambda n: "#if X\n" * n,
    "#if after #if": lambda n: "#if X\n;\n#else\n#endif\n" * n,
    "#define": lambda n: "#define a b c\n" * n,
    "a macro and functions": lambda n: (
        "#define ONE(x) ((x) + 1)\n"
        + "".join(f"__device__ int f{i}(int x) {{ return ONE(x) * x; }}\n" for i in range(n))
    ),
    "a macro and kernels": lambda n: (
        "#define GO <<<1, 32>>>\n"
        + "".join(f"__global__ void f{i}(int* x) {{}}\nvoid g{i}(int* x) {{ f{i} GO(x); }}\n" for i in range(n))
    ),
    "macros of macros": lambda n: (
        "#define M0(x) x x\n" + "".join(f"#define M{i + 1}(x) M{i}(x)\n" for i in range(n)) + f"int a = M{n}(1);\n"
    ),
    "uses of a macro": lambda n: "#define ONE(x) ((x) + 1)\nint a = " + "ONE(" * min(n, 250) + ("+ ONE(1)" * n) + ";\n",
    "parameters of a macro": lambda n: (
        f"#define M({','.join(f'a{i}' for i in range(n))}) " + " ".join(f"__shared__ int a{i};" for i in range(n))
    ),
    "#include": lambda n: "#include <llmk/reduce.cuh>\n" * n,
    "a long #include": lambda n: f'#include "{"a" * n}"',
    "shared arrays in brackets": lambda n: _KERNEL + "(" + "__shared__ int a;" * n,
    "one shared declaration": lambda n: _KERNEL + "__shared__ int " + "a," * n + "b;}",
    "stars": lambda n: _KERNEL + "__shared__ int " + "* const" * n + "* b;}",
    "dynamic arrays": lambda n: "".join(f"extern __shared__ int a{i}[]; void f{i}() {{ a0; }}" for i in range(n)),
    "functions of one name": lambda n: "void f();" * n + "void g() {" + "f();" * n + "}",
    "variables and functions": lambda n: "".join(f"int a{i}; void g{i}() {{ a0; }}" for i in range(n)),
    "namespaces": lambda n: "namespace a {" * n + "void f() {}" + "}" * n,
    "initializers": lambda n: "int a[] = {1}" + ", b[] = {2}" * n + ";",
    "scopes": lambda n: "__device__ int a" + "::a" * n + ";",
    "casts": lambda n: "void f() {" + "cudaLaunchKernel(static_cast<" * n + "}",
    "lambdas": lambda n: "void f() {" + "[=] __device__ " * n + "}",
    'extern "C"': lambda n: 'extern "C" {' * n,
    "parameters of a launcher": lambda n: 'extern "C" void f(' + "int a," * n + "int b);",
    "structures": lambda n: "struct A {" * min(n, 250) + "int x;" * n + "} a;" * min(n, 250),
    "operators": lambda n: "struct A {" + "void operator()() {}" * n + "};",
    "labels": lambda n: "void f() {" + "a:" * n + "}",
    "strings": lambda n: '"\\\n' * n,
    "raw strings": lambda n: 'R"(' * n,
    "comments": lambda n: "/*" * n,
    "one word": lambda n: "x" * n,
    "semicolons": lambda n: ";" * n,
    "registers": lambda n: _KERNEL + f'asm("{{.reg .f32 r<{10 ** min(n, 4000)}>;}}");}}',
    "asm statements": lambda n: _KERNEL + 'asm("{.reg .f32 r<255>;}");' * n + "}",
    "asm comments": lambda n: _KERNEL + 'asm("' + "/*/" * n + '");}',
    "asm operands": lambda n: _KERNEL + 'asm("add.f32 ' + "%0," * n + '%0;" :: "f"(' + "x+" * n + "x));}",
    "asm braces": lambda n: _KERNEL + 'asm("mov.b32 ' + "{" * n + "}" * n + ';");}',
    "asm negations": lambda n: _KERNEL + 'asm("mov.b32 ' + "!" * n + '%0;" :: "r"(1));}',
    "a long instruction": lambda n: _KERNEL + 'asm("' + "mov." * n + ' %0;" :: "r"(1));}',
    "an asm constraint that is a superscript digit": lambda n: (
        _KERNEL + 'asm("mov.b32 %0, %1;" : "=r"(a) : "\u00b2"(1));}' * (n > 0)
    ),
}
"""Texts for code that reads a kernel file before compilation. The reader may also refuse a text with an error."""
