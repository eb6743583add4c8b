"""The front end rejects code that nvcc rejects. Each case is a small file with one construct."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grader.execution.build.build import compile_kernel, plan_kernel
from grader.frontend.rewrite import RewriteError, rewrite
from grader.setup.errors import GraderError
from tests.frontend.nvcc import nvcc

CASES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "nvcc_corpus.toml").read_text())
LAUNCHER = '\nextern "C" void run(float* x, int n, cudaStream_t stream) { k<<<1, 32, 0, stream>>>(x, n); }\n'
for _case in CASES.values():
    _case["code"] += "" if "run(" in _case["code"] else LAUNCHER
REFUSED = {name: case for name, case in CASES.items() if case.get("nvcc") == "refuses"}
ACCEPTED = {name: case for name, case in CASES.items() if name not in REFUSED}
LESSON = Path(__file__).parents[2] / "lessons" / "can_i_believe_this" / "lesson.ipynb"


def together(cases: dict[str, dict[str, Any]]) -> tuple[str, dict[str, range]]:
    """Return all cases as one file, each in its own namespace, and the lines of each case."""
    code = "\n".join(case["code"] for case in cases.values())
    lines = sorted({line for line in code.splitlines() if line.startswith("#include")})
    lines.insert(0, "#include <cuda_runtime.h>")
    where: dict[str, range] = {}
    for name, case in cases.items():
        body = [
            line for line in case["code"].replace('extern "C" ', "").splitlines() if not line.startswith("#include")
        ]
        first = len(lines) + 1
        lines += [f"namespace case_{name} {{", *body, "}"]
        where[name] = range(first, len(lines) + 1)
    return "\n".join([*lines, 'extern "C" void none(float* x, cudaStream_t stream) {}', ""]), where


def test_the_corpus_is_large_enough() -> None:
    assert len(ACCEPTED) >= 40 and len(REFUSED) >= 40


def test_what_nvcc_accepts_is_accepted(tmp_path: Path) -> None:
    text, _ = together({name: case for name, case in ACCEPTED.items() if "refused_here" not in case})
    file = tmp_path / "accepted.cu"
    file.write_text(text)
    compile_kernel(file)


@pytest.mark.parametrize("name", [name for name, case in REFUSED.items() if "passes_here" not in case])
def test_what_nvcc_refuses_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "refused.cu"
    file.write_text(REFUSED[name]["code"])
    with pytest.raises(GraderError) as caught:
        plan_kernel(file)
        compile_kernel(file)
    assert REFUSED[name]["says"] in caught.value.message


@pytest.mark.parametrize(("name", "how"), [("cout << i", "use printf"), ("vector<int> v", "Use arrays")])
def test_code_that_belongs_on_the_host_has_a_hint(name: str, how: str) -> None:
    with pytest.raises(RewriteError) as caught:
        rewrite(f"__global__ void k(int i) {{ std::{name}; }}\n")
    assert how in caught.value.hint


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if {"passes_here", "refused_here"} & {*case}])
def test_known_differences_remain_and_are_listed_in_the_lesson(name: str) -> None:
    """Known differences from nvcc are marked `passes_here` or `refused_here`.

    If a difference is fixed, remove its mark and its line in the lesson can_i_believe_this.
    """
    case = CASES[name]
    if "refused_here" in case:
        with pytest.raises(RewriteError, match=case["says"]):
            rewrite(case["code"])
    else:
        rewrite(case["code"])
    listed = case.get("passes_here") or case["refused_here"]
    cells = json.loads(LESSON.read_text())["cells"]
    assert any(listed in " ".join("".join(cell["source"]).split()) for cell in cells)


def test_nvcc_accepts_what_the_corpus_says(tmp_path: Path) -> None:
    done = nvcc(together(ACCEPTED)[0], tmp_path, "-c")
    assert done.returncode == 0, done.stderr


def test_nvcc_refuses_what_the_corpus_says(tmp_path: Path) -> None:
    left, said = dict(REFUSED), ""
    # An error in one phase of nvcc hides errors of later phases, so run nvcc again without the cases that it refused.
    for what in ("-c", "-ptx", "-ptx", "-ptx"):
        if left:
            text, where = together(left)
            said = nvcc(text, tmp_path, what).stderr
            wrong = {int(line) for line in re.findall(r"all\.cu\((\d+)\): error", said)}
            left = {name: case for name, case in left.items() if not wrong & set(where[name])}
    assert not left, said
