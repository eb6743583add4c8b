"""nvcc's result is part of the verdict if nvcc is installed. Otherwise the report says that it is missing."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from grader.course import find
from grader.course.task import Bar
from grader.execution.runner import tiers
from grader.frontend.messages import RewriteError
from grader.frontend.toolchain.compilers import find_nvcc
from grader.frontend.toolchain.gpus import gpu_for
from grader.frontend.toolchain.process import RunCommand
from grader.judge import build_threads, check, nvcc
from grader.judge.build_job import Job
from grader.judge.efficient import judge_efficient
from grader.report.junit import junit_xml
from grader.report.terminal import as_text
from grader.verdict import FAILED, PASSED, SKIPPED, KernelResources, Verdict
from tests.seeds import SEED

HOST_OPERATOR = """
struct Pair { int a; };
Pair operator+(Pair x, Pair y) { return {x.a + y.a}; }
__device__ int both(Pair x, Pair y) { return (x + y).a; }
"""
# Only ptxas, nvcc's last phase, rejects this kernel: no SM has 256 KB of shared memory.
TOO_MUCH_SHARED = """
__global__ void large(float* x) {
    __shared__ float tile[65536];
    tile[threadIdx.x] = x[0];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x ^ 1];
}
"""

needs_nvcc = pytest.mark.skipif(find_nvcc(required=False) is None, reason="nvcc is not installed")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nvcc.SETTING, raising=False)


def verdict_with(addition: str, folder: Path, **options: object) -> Verdict:
    """Return the verdict of a solution with text appended."""
    entry = find("day01_residual_add/strided_add")
    file = folder / "strided_add.cu"
    file.write_text(entry.solution.read_text() + addition)
    return check(entry, file, seed=SEED, **options)  # type: ignore[arg-type]


def seen(verdict: Verdict) -> str:
    return " ".join(as_text(verdict, width=200).split())


@needs_nvcc
@pytest.mark.parametrize("tier", ["bwrap", "landlock", "none"])
def test_a_file_that_only_nvcc_refuses_fails(
    tmp_path: Path, asked: None, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if problem := tiers.why_not(tier):
        pytest.skip(f"{tier} does not hold here: {problem}")
    monkeypatch.setenv("GRADER_JAIL", tier)
    verdict = verdict_with(HOST_OPERATOR, tmp_path)
    assert not verdict.passed, seen(verdict)
    assert [stage.status for stage in verdict.stages] == [FAILED, *[SKIPPED] * 4]
    text = seen(verdict)
    assert "does not compile it for sm_90a" in text and "not run, as builds failed" in text
    assert "strided_add.cu" in text and "operator +" in text
    line = verdict.stages[0].diagnostics[0].line
    assert "both(Pair x, Pair y)" in (tmp_path / "strided_add.cu").read_text().splitlines()[line - 1]


@needs_nvcc
def test_a_file_that_ptxas_refuses_fails(tmp_path: Path, asked: None) -> None:
    text = seen(verdict_with(TOO_MUCH_SHARED, tmp_path))
    assert "stops at Builds" in text and "uses too much shared data" in text


@needs_nvcc
def test_a_file_that_nvcc_compiles_passes_and_shows_resource_usage(tmp_path: Path, asked: None) -> None:
    verdict = verdict_with("", tmp_path)
    builds = verdict.stages[0]
    assert verdict.passed and builds.resources and all(item.registers for item in builds.resources)
    assert f"with {find_nvcc()} for sm_90a" in seen(verdict)
    assert "occupancy" in as_text(verdict, verbose=True)


# Holds 100 values in registers across a barrier.
REGISTERS = """
__global__ void BOUNDS many_registers(float* x) {
    __shared__ float tile[1024];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    float a[100], sum = 0;
#pragma unroll
    for (int k = 0; k < 100; ++k) a[k] = tile[(threadIdx.x + k) % 1024];
    __syncthreads();
#pragma unroll
    for (int k = 99; k >= 0; --k) sum = sum * a[k] + a[(k * 7 + 1) % 100];
    if (sum == 1.25f) x[threadIdx.x] = sum;
}
"""


@needs_nvcc
@pytest.mark.parametrize(
    ("threads", "bounds", "refused"),
    [(1024, "", True), (512, "", False), (1024, "__launch_bounds__(1024)", False)],
)
def test_a_launch_with_too_many_registers_is_refused(
    tmp_path: Path, asked: None, threads: int, bounds: str, refused: bool
) -> None:
    entry = find("day01_residual_add/strided_add")
    text = REGISTERS.replace("BOUNDS", bounds) + entry.solution.read_text()
    launch = re.search(r"^.*<<<.*$", text, re.MULTILINE)
    assert launch
    file = tmp_path / "strided_add.cu"
    added = f"many_registers<<<1, {threads}, 0, stream>>>(nullptr);\n{launch[0]}"
    file.write_text(text.replace(launch[0], added))
    verdict = check(entry, file, seed=SEED)
    builds = verdict.stages[0]
    assert builds.status == (FAILED if refused else PASSED), seen(verdict)
    assert (f"not have enough registers for a block of {threads} threads" in seen(verdict)) == refused
    assert refused or verdict.stage("correct").status == PASSED


@needs_nvcc
@pytest.mark.parametrize(("gpu", "shown"), [("RTX 4090", "RTX 4090"), ("T4", "H100")])
def test_the_occupancy_is_that_of_the_gpu_asked_for(gpu: str, shown: str, tmp_path: Path, asked: None) -> None:
    resources = verdict_with("", tmp_path, gpu=gpu).stages[0].resources
    assert resources and {item.gpu for item in resources} == {shown}


@pytest.mark.parametrize(
    ("declaration", "known"),
    [
        ("const auto kernel = wide ? one<8> : one<1>;", {"one<8>", "one<1>"}),
        ("void (*kernel)(float*, int) = wide ? two : one<1>;", {"one<8>", "one<1>", "two"}),
        ("auto kernel = one<8>; if (wide) kernel = two;", {"one<8>", "one<1>", "two"}),
        ("if (kernel == two) return;", set()),
        ("const auto other = two;", set()),
    ],
)
def test_a_launch_through_a_function_pointer_has_an_occupancy(declaration: str, known: set[str]) -> None:
    usage = [KernelResources(name, "sm_90a", registers=32) for name in ("one<8>", "one<1>", "two")]
    source = f"void launch(bool wide) {{ {declaration} kernel<<<1, 256>>>(x, n); }}"
    resources = nvcc.Answer(gpu_for("sm_90a"), usage=usage, source=source).resources({"kernel": (256, 0)})
    assert {item.kernel for item in resources if item.occupancy is not None} == known
    assert all(item.threads == 256 for item in resources if item.kernel in known)


@needs_nvcc
def test_nvcc_runs_if_builds_is_the_only_stage(tmp_path: Path, asked: None) -> None:
    assert not verdict_with(HOST_OPERATOR, tmp_path, stages=["builds"]).passed
    assert verdict_with("", tmp_path, stages=["builds"]).passed


def test_nvcc_runs_in_parallel_with_the_simulators_compiler(
    tmp_path: Path, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    compile_directly = build_threads.compile_directly

    def ask(file: Path, architecture: str, run: RunCommand) -> nvcc.Answer:
        begun.set()
        return nvcc.Answer(gpu_for(architecture), why_not="it is a stand-in")

    def compile_later(*arguments: Any, **options: Any) -> None:
        assert begun.wait(60)
        compile_directly(*arguments, **options)

    monkeypatch.setattr(nvcc, "ask", ask)
    monkeypatch.setattr(build_threads, "compile_directly", compile_later)
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    assert "it is a stand-in" in seen(verdict_with("", tmp_path))


def test_nvcc_does_not_run_if_the_front_end_refuses_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "ask", lambda *_: pytest.fail("it was asked"))
    (tmp_path / "k.cu").write_text('__global__ void k() { asm("no.such.instruction;"); }\n')
    building = build_threads.Threads(Job(tmp_path / "k.cu", "cpu", "sm_90", ask_nvcc=True))
    assert building.nvcc is not None
    with pytest.raises(RewriteError):
        building.nvcc.result()


def test_without_nvcc_the_report_says_so(tmp_path: Path, asked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "find_nvcc", lambda required: None)
    verdict = verdict_with(HOST_OPERATOR, tmp_path)
    assert verdict.passed and not verdict.stages[0].resources
    assert "not checked with nvcc: nvcc was not found" in seen(verdict)
    assert "not checked with nvcc: nvcc was not found" in junit_xml(verdict)


def test_switched_off_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nvcc.SETTING, "off")
    verdict = verdict_with(HOST_OPERATOR, tmp_path)
    assert verdict.passed and "not checked with nvcc: GRADER_CHECK_NVCC is off" in seen(verdict)


@pytest.mark.parametrize(
    "trouble",
    [
        "error: nvcc was stopped: it compiled for 60 s",
        "/x/host_config.h(1): error: #error -- unsupported GNU version! gcc versions later than 15 are not supported!",
        'k.cu(2): catastrophic error: cannot open source file "cub/cub.cuh"',
        "nvcc error   : 'cicc' died due to signal 11",
    ],
)
def test_a_broken_nvcc_installation_fails_no_submission(
    trouble: str, tmp_path: Path, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install a fake nvcc that prints this message and fails."""
    fake = tmp_path / "nvcc"
    message = trouble.replace("'", "'\\''")
    fake.write_text(f"#!/bin/sh\ncase $1 in --version) echo release 13.0;; *) echo '{message}' >&2; exit 1;; esac\n")
    fake.chmod(0o755)
    monkeypatch.setenv("GRADER_NVCC", str(fake))
    monkeypatch.setenv("GRADER_JAIL", "none")
    verdict = verdict_with("", tmp_path)
    assert verdict.passed and "not checked with nvcc: " in seen(verdict)


@needs_nvcc
def test_an_array_that_leaves_the_registers_misses_the_bar(tmp_path: Path, asked: None) -> None:
    entry = find("day04_linear/linear_register_tiled")
    file = tmp_path / entry.solution.name
    file.write_text(re.sub(r"#pragma unroll$", "#pragma unroll 1", entry.solution.read_text(), flags=re.MULTILINE))
    verdict = check(entry, file, seed=SEED)
    efficient = verdict.stage("efficient")
    assert efficient and efficient.status == FAILED, seen(verdict)
    missed = [bar.expression for bar in efficient.bars if not bar.passed]
    assert missed == ["stack_bytes"] and "#pragma unroll the loops over it" in seen(verdict)
    assert check(entry, entry.solution, seed=SEED).passed


def test_bars_on_registers_are_skipped_if_nvcc_did_not_run() -> None:
    task = find("day01_residual_add/strided_add").load()
    task.bars = [Bar("stack_bytes", at_most=0)]
    without = judge_efficient(task, [])
    assert without.status == PASSED and "Not graded, because the file was not checked with nvcc" in without.note
    assert not judge_efficient(task, [], [KernelResources("k", "sm_90", 32)]).note
