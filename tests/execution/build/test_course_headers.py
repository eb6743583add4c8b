"""Course headers: every build finds them, messages and cache keys cover them, and other files cannot replace them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from grader.execution.build.build import compile_kernel, plan_kernel
from grader.execution.build.diagnostics import CompileError
from grader.execution.build.resource_usage import resource_usage
from grader.execution.in_process.kernel import load_kernel
from grader.frontend import course_headers
from grader.frontend.tokens import Source
from grader.frontend.toolchain.compilers import available_cxx, find_nvcc
from grader.verdict.wording.findings import message

SUM = """#include "llmk/reduce.cuh"
#include "llmk/reduce.cuh"

__global__ void sum_kernel(const float* x, float* out) {
    float sum = llmk::block_sum(x[threadIdx.x]);
    if (threadIdx.x == 0) out[0] = sum;
}

extern "C" void sum(const float* x, float* out, cudaStream_t stream) { sum_kernel<<<1, 64, 0, stream>>>(x, out); }
"""
FAULTS = """#include "llmk/reduce.cuh"
#include "llmk/vector.cuh"

__global__ void sum_kernel(const float* x, float* out) {
    const auto values = llmk::load_vector<4>(x + 4 * threadIdx.x);
    float sum = llmk::block_sum(values.get(0));
    sum += llmk::block_sum(values.get(1));
    if (threadIdx.x == 0) out[0] = sum;
}

extern "C" void sum(const float* x, float* out, cudaStream_t stream) { sum_kernel<<<1, 64, 0, stream>>>(x, out); }
"""
HEADERS = sorted(course_headers.FOLDER.glob("*.cuh"))

every_header = pytest.mark.parametrize("header", HEADERS, ids=[header.stem for header in HEADERS])


@pytest.fixture
def kernel_file(tmp_path: Path):
    def write(text: str, name: str = "sum.cu") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def own_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the headers that a test may modify."""
    folder = tmp_path / "course" / course_headers.FOLDER.name
    shutil.copytree(course_headers.FOLDER, folder)
    monkeypatch.setattr(course_headers, "FOLDER", folder)
    return folder


@pytest.mark.parametrize("checks", [True, False])
def test_a_kernel_includes_a_header(kernel_file, checks):
    out = torch.zeros(1)
    load_kernel(kernel_file(SUM), checks=checks).sum(torch.arange(64.0), out)
    assert out.item() == 64 * 63 / 2


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
def test_a_fault_in_a_header_is_shown_at_the_call(kernel_file, compiler):
    kernel = load_kernel(kernel_file(FAULTS), raise_on_finding=False, compiler=compiler.command[0])
    kernel.sum(torch.arange(252.0), torch.zeros(1))
    findings = {finding.check: finding for finding in kernel.report.findings}
    outside = findings["memcheck"]
    assert outside.line == 5 and "load_vector" in outside.source_line
    assert "at sum.cu:5 (in llmk/vector.cuh:" in message(outside)
    race = findings["racecheck"]
    assert {race.line, race.other.line} == {6, 7} and "llmk::block_sum" in race.source_line
    header = (course_headers.FOLDER / "reduce.cuh").read_text().splitlines()
    named = [int(line) for line in re.findall(r"\(in llmk/reduce\.cuh:(\d+)\)", message(race))]
    assert len(named) == 2 and all("partial[" in header[line - 1] for line in named)
    assert {line.line for line in kernel.report.lines if line.barriers} == {6, 7}


def test_messages_name_the_line_of_the_call(kernel_file):
    file = kernel_file(SUM.replace("(x[threadIdx.x])", "(x)"))
    with pytest.raises(CompileError) as caught:
        compile_kernel(file)
    assert caught.value.diagnostics[0].line == 5 and "llmk::block_sum(x)" in caught.value.diagnostics[0].source_line


def test_a_change_of_a_header_is_another_build(kernel_file, own_headers):
    with_header, without = kernel_file(SUM), kernel_file(SUM.split("\n", 2)[2], "without.cu")
    before = plan_kernel(with_header).key, plan_kernel(without).key
    assert plan_kernel(with_header).key == before[0]
    (own_headers / "mma.cuh").write_text("#error not this one\n")
    assert (plan_kernel(with_header).key, plan_kernel(without).key) == before
    text = (own_headers / "reduce.cuh").read_text()
    (own_headers / "reduce.cuh").write_text(text.replace("mine += ", "mine -= ", 1))
    assert plan_kernel(with_header).key != before[0] and plan_kernel(without).key == before[1]


def test_a_change_of_a_header_in_a_header_is_another_build(kernel_file, own_headers):
    file = kernel_file(SUM.replace("llmk/reduce", "llmk/decode"))
    before = plan_kernel(file).key
    text = (own_headers / "reduce.cuh").read_text()
    (own_headers / "reduce.cuh").write_text(text + "// more\n")
    assert plan_kernel(file).key != before


def test_a_file_next_to_a_kernel_cannot_replace_a_header(kernel_file):
    file = kernel_file(SUM)
    key = plan_kernel(file).key
    for folder in (file.parent, file.parent / "lessons"):
        (folder / "llmk").mkdir(parents=True)
        (folder / "llmk" / "reduce.cuh").write_text("#error mine\n")
    assert plan_kernel(file).key == key
    assert compile_kernel(file).library.is_file()


def test_lines_after_an_include_keep_their_numbers():
    text = 'int a;\n  #include "llmk/tile.cuh" /* a comment\n goes on */ int b;\nint c;\n'
    digraph = text.replace("#", "%:")
    assert course_headers.with_headers(digraph, Source(digraph), "a.cu") == course_headers.with_headers(
        text, Source(text), "a.cu"
    )
    lines = course_headers.with_headers(text, Source(text), 'a"b.cu').split("\n")
    assert lines[0] == "int a;" and lines[-3:-1] == [" goes on */ int b;", "int c;"]
    assert lines[-5] == '#line 2 "a\\"b.cu"' and lines[-4] == "   /* a comment"
    unknown = text.replace("tile", "none")
    assert course_headers.with_headers(unknown, Source(unknown), "a.cu") == unknown


@every_header
def test_a_header_is_plain_cuda(header, tmp_path):
    text = header.read_text()
    for include in re.findall(r"#include (.*)", text):
        assert include[1:-1] in course_headers.names() if include.startswith('"') else include.startswith("<")
    assert re.search(r"\b[Dd]ay \d+", text), "the header does not name the day that derives it"
    (tmp_path / "alone.cu").write_text(f'#include "llmk/{header.name}"\n')
    assert plan_kernel(tmp_path / "alone.cu").text.count("#ifndef LLMK_") >= 1
    compile_kernel(tmp_path / "alone.cu")
    nvcc = find_nvcc(required=False)
    if nvcc is None:
        pytest.skip("nvcc is not installed: checked only with the simulator's compiler")
    command = [*nvcc.command, "-std=c++17", "-arch=sm_80", "-I", course_headers.FOLDER.parent, "-cubin", "alone.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_nvcc_reports_resource_usage_of_a_kernel_with_a_header(kernel_file):
    if find_nvcc(required=False) is None:
        pytest.skip("nvcc is not installed")
    (usage,) = resource_usage(kernel_file(SUM))
    assert usage.kernel == "sum_kernel" and usage.static_shared_bytes == 128
