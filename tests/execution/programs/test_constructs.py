"""Language constructs of public programs: the simulator accepts them as nvcc does, or its error names the construct."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grader.execution.programs.build import Options, compile_unit
from grader.execution.programs.files import language_of, unit
from grader.frontend.toolchain.compilers import find_cxx
from tests.execution.programs.running import refusal
from tests.frontend.nvcc import nvcc

CASES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "constructs.toml").read_text())
TAKEN = {name: case for name, case in CASES.items() if "says" not in case}
STANDARDS = ("c++17", "c++20")


def std_of(case: dict[str, Any]) -> str:
    return str(case.get("std", "c++17"))


def together(cases: dict[str, dict[str, Any]]) -> str:
    """Return all cases as one file, each in its own namespace."""
    lines = sorted({line for case in cases.values() for line in case["code"].splitlines() if _header(line)})
    for name, case in cases.items():
        body = [line for line in case["code"].splitlines() if not _header(line)]
        lines += [f"namespace case_{name} {{", *body, "}"]
    return "\n".join([*lines, ""])


def _header(line: str) -> bool:
    return re.match(r"#include (<cuda|<mma|<cooperative_groups|<std|<type_traits|<vector|\")", line) is not None


def test_there_are_enough() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("std", STANDARDS)
def test_supported_constructs_are_accepted(std: str, tmp_path: Path) -> None:
    compiler = find_cxx()
    if std == "c++20" and compiler.family == "clang" and int(compiler.version.partition(".")[0]) < 16:
        pytest.skip("clang++ before 16 needs each typename in C++20, too")
    file = tmp_path / "all.cu"
    file.write_text(together({name: case for name, case in TAKEN.items() if std_of(case) == std}))
    assert compile_unit(unit(file), Options(std)).exists()


def test_include_guards_of_headers_are_defined(tmp_path: Path) -> None:
    asked = "#if !defined(CUBLAS_API_H_) || !defined(CURAND_H_)\n#error not included\n#endif\n"
    for name in ("one.cu", "one.cpp"):
        (tmp_path / name).write_text("\ufeff#include <cublas_v2.h>\n#include <curand.h>\n" + asked)
        language = language_of(tmp_path / name)
        assert compile_unit(unit(tmp_path / name, (), (), language), Options()).exists()


def test_a_macro_may_name_a_header(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text('#include "names.h"\n#include SECOND\n')
    (tmp_path / "names.h").write_text("#define SECOND <cuda_fp16.h>\n")
    (tmp_path / "one.cu").write_text("#include FIRST\n__global__ void k(half* x) { *x = __float2half(1.0f); }\n")
    assert compile_unit(unit(tmp_path / "one.cu", (), ('-DFIRST="own.h"',)), Options()).exists()


@pytest.mark.parametrize("name", [name for name in CASES if name not in TAKEN])
def test_unsupported_constructs_are_named(name: str, tmp_path: Path) -> None:
    message = refusal(CASES[name]["code"], tmp_path, std_of(CASES[name])).message
    assert CASES[name]["says"] in message and re.match(r"one\.cu:\d+:", message)


@pytest.mark.parametrize("std", STANDARDS)
def test_an_omitted_typename_gets_a_hint(std: str, tmp_path: Path) -> None:
    problem = refusal(CASES["typename_omitted_at_a_local_variable"]["code"], tmp_path, std=std)
    assert problem.hint.startswith("Write typename before it.")


@pytest.mark.parametrize("std", STANDARDS)
def test_nvcc_accepts_what_the_cases_say(std: str, tmp_path: Path) -> None:
    cases = {name: case for name, case in CASES.items() if "nvcc" not in case and std_of(case) == std}
    done = nvcc(together(cases), tmp_path, std=std)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "nvcc" in case])
def test_nvcc_refuses_what_the_cases_say(name: str, tmp_path: Path) -> None:
    assert nvcc(CASES[name]["code"], tmp_path, std=std_of(CASES[name])).returncode != 0
