"""Day 1 shows a usual PyTorch extension.

Its arguments of ``load_inline`` are valid, and its source compiles with torch's headers. The test uses a C++ compiler
and replaces the launch by a function call, because nvcc takes half a minute for these headers.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from grader.frontend.toolchain.compilers import find_cxx, find_nvcc
from tests.notebooks.lessons import ROOT, cells

FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)
LAUNCH = re.compile(r"<<<(.*?)>>>\(", re.DOTALL)


def arguments_of_load_inline() -> dict[str, Any]:
    """Return the arguments that the lesson passes to load_inline."""
    from torch.utils.cpp_extension import load_inline

    texts = (
        "".join(cell["source"]) for cell in cells(ROOT / "lessons" / "day01_residual_add" / "lesson.ipynb", "markdown")
    )
    (code,) = [code for text in texts for code in FENCED.findall(text) if "load_inline" in code]
    given: list[inspect.BoundArguments] = []
    script = code.replace("from torch.utils.cpp_extension import load_inline\n", "").split("out = module")[0]
    exec(
        script,
        {"load_inline": lambda *args, **named: given.append(inspect.signature(load_inline).bind(*args, **named))},
    )
    return dict(given[0].arguments)


def test_the_extension_that_day_1_shows_compiles(tmp_path: Path) -> None:
    import torch

    nvcc = find_nvcc(required=False)
    if nvcc is None:
        pytest.skip("no nvcc here: the extension needs the headers of a CUDA toolkit")
    arguments = arguments_of_load_inline()
    source, launches = LAUNCH.subn(r"(", arguments["cuda_sources"])
    assert launches == 1 and arguments["functions"] == ["add"]
    # load_inline includes torch/types.h, which defines these names of namespace torch. It also includes all operators,
    # for which the compiler takes 10 s. device_launch_parameters.h declares threadIdx.
    file = tmp_path / "extension.cpp"
    headers = ("ATen/core/TensorBody.h", "ATen/ops/empty_like.h", "cuda_runtime.h", "device_launch_parameters.h")
    above = "".join(f"#include <{header}>\n" for header in headers)
    above += "namespace torch { using namespace at; constexpr auto kFloat32 = at::kFloat; }\n"
    file.write_text(above + arguments["cpp_sources"] + source)
    torch_headers = Path(torch.__file__).parent / "include"
    generated = tmp_path / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h"  # a CPU build of torch lacks this header
    generated.parent.mkdir(parents=True)
    generated.write_text("#pragma once\n")
    dry = subprocess.run([*nvcc.command, "--dryrun", "-c", str(file)], capture_output=True, text=True, check=True)
    toolkit = re.findall(r'"-I([^"]+)"', dry.stderr)[0]
    folders = [torch_headers, torch_headers / "torch" / "csrc" / "api" / "include", toolkit, tmp_path]
    folders.append(Path(sysconfig.get_path("include")))
    command = [
        *find_cxx().command,
        "-std=c++20",
        "-fsyntax-only",
        "-w",
        *(f"-I{folder}" for folder in folders),
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
