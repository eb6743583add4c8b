"""Tests that conditions (``#if``) in a program's files are evaluated as by the compiler's own preprocessor."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from grader.execution.programs.build import Options, compile_unit, flags_of
from grader.execution.programs.files import unit
from grader.execution.programs.preprocess import preprocess
from grader.frontend.toolchain.cache import open_cache
from grader.frontend.toolchain.compilers import find_cxx

HEADERS = ("limits.h", "float.h", "stdint.h", "unistd.h")


def compiler_says(source: Path, *options: str) -> str:
    """Return a file as g++ or clang++ preprocesses it."""
    argv = [*find_cxx().command, "-std=c++17", "-E", "-w", *options, str(source)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def active(source: Path, folder: Path) -> str:
    """Return the active code of a program's file."""
    compiler = find_cxx()
    folder.mkdir()
    return preprocess(unit(source), compiler, flags_of(compiler, Options()), folder, open_cache()).text


def object_like(header: str, folder: Path) -> list[str]:
    """Return the names of the macros without parameters after a header was included."""
    source = folder / "all.cpp"
    source.write_text(f"#include <{header}>\n")
    lines = compiler_says(source, "-dM").splitlines()
    names = (line.split()[1] for line in lines if line.startswith("#define "))
    return sorted(name for name in names if name.isidentifier())


@pytest.mark.parametrize("header", HEADERS)
def test_every_macro_of_a_system_header_has_its_value(header: str, tmp_path: Path) -> None:
    names = object_like(header, tmp_path)
    assert len(names) > 300
    lines = [f"#include <{header}>"]
    for name in names:
        lines += [f"#ifdef {name}", f"defined({name})", "#endif"]
    source = tmp_path / "defined.cu"
    source.write_text("\n".join([*lines, ""]))
    assert active(source, tmp_path / "a").count("\ndefined(") == len(names)

    lines = [f"#include <{header}>"]
    for name in can_be_tested(header, names, tmp_path):
        lines += [
            f"#if {name} > 1000",
            f"large({name} )",
            f"#elif {name} < 0",
            "negative()",
            "#else",
            "small()",
            "#endif",
        ]
    source = tmp_path / "tested.cu"
    source.write_text("\n".join([*lines, ""]))
    words = ("large", "negative", "small")
    expected = [line.split("(")[0] for line in compiler_says(source, "-xc++").splitlines() if line.startswith(words)]
    assert len(expected) > 300
    assert [
        line.split("(")[0] for line in active(source, tmp_path / "b").splitlines() if line.startswith(words)
    ] == expected


def can_be_tested(header: str, names: list[str], folder: Path) -> list[str]:
    """Return the macros that the compiler accepts in a condition: those that are integers or undeclared names."""
    source = folder / "conditions.cpp"
    source.write_text("\n".join([f"#include <{header}>", *(f"#if {name} > 0\n#endif" for name in names), ""]))
    unlimited = "-fmax-errors=0" if find_cxx().family == "gcc" else "-ferror-limit=0"
    argv = [*find_cxx().command, "-std=c++17", "-E", "-w", unlimited, str(source), "-o", "/dev/null"]
    output = subprocess.run(argv, capture_output=True, text=True).stderr
    refused = {(int(line) - 2) // 2 for line in re.findall(r"conditions\.cpp:(\d+):\d+: error", output)}
    return [name for i, name in enumerate(names) if i not in refused]


def test_conditions_use_macros_of_system_headers(tmp_path: Path) -> None:
    source = tmp_path / "conditions.cu"
    source.write_text(
        """#include <limits.h>
#include <cfloat>
#include <unistd.h>
#include <stdint.h>
#include <cassert>
#if INT_MAX > 100 && FLT_DIG == 6 && _POSIX_VERSION >= 200112L && INT64_C(5) > UINT8_MAX - 251 && defined(assert)
int right;
#ifndef assert
#define assert(x)
#endif
#endif
#if SSIZE_MAX < INT_MAX || LLONG_MIN > 0 || CHAR_BIT != 8
int wrong;
#endif
void f(int x) { assert(x); }
"""
    )
    text = active(source, tmp_path / "a")
    assert "int right;" in text and "int wrong;" not in text
    assert "void f(int x) { assert(x); }" in text and "#define assert" not in text
    assert compile_unit(unit(source), Options()).exists()


def test_climits_is_included_in_each_file(tmp_path: Path) -> None:
    source = tmp_path / "missing.cu"
    source.write_text("#if 0\n#include <no_such_header.h>\n#endif\n#if INT_MAX > 100\nint climits;\n#endif\n")
    assert "int climits;" in active(source, tmp_path / "a")  # as nvcc does
