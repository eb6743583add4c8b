"""The runs that a check repeats with the blocks and warps in reverse order, and the findings of both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.course.task import Case
from grader.execution.runner.client import LoadFailed
from grader.judge.cases import Run
from grader.judge.driver import CasePool
from grader.judge.recorded import Recorded
from grader.judge.schedules import in_reverse
from grader.report.terminal import as_text
from grader.simulator.line_counters import KernelCounters, LineCounters
from grader.simulator.report import Report
from grader.verdict import FAILED, PASSED, CaseResult, Finding
from tests.judge.test_check import HEAD, LAUNCHER, RIGHT, judged, statuses  # noqa: F401

# Each block stores twice its elements. One block also adds partial results, by which the grid's sum is checked.
KERNEL = """__device__ int tickets;
__device__ float partial[64], sum;

__global__ void twice_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
    if (threadIdx.x != 0) return;
    partial[blockIdx.x] = x[i];
    __threadfence();
    const bool all_done = atomicAdd(&tickets, 1) == gridDim.x - 1;
    __threadfence();
    if (all_done) tickets = 0;
    if (ADDS) {
        float total = 0;
        for (int b = 0; b < gridDim.x; ++b) total += partial[b];
        sum = total;
    }
}
"""
LOCK = """__device__ int lock;
__device__ float largest;

__global__ void twice_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
    if (threadIdx.x != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    const float seen = largest;
    if (blockIdx.x + 1 < gridDim.x || CLEAN) largest = seen + x[i];
    __threadfence();
    atomicExch(&lock, 0);
    if (blockIdx.x + 1 == gridDim.x && !CLEAN) largest = seen + x[i];
}
"""


def files(fault: bool) -> dict[str, str]:
    by_index = "blockIdx.x == gridDim.x - 1" if fault else "all_done"
    return {"ticket": KERNEL.replace("ADDS", by_index), "lock": LOCK.replace("CLEAN", str(int(not fault)))}


@pytest.mark.parametrize("name", ["ticket", "lock"])
def test_a_race_in_reverse_order_is_a_finding(judged, name: str) -> None:  # noqa: F811
    recorded: list[Recorded] = []
    verdict = judged(whole=HEAD + files(fault=True)[name] + LAUNCHER, on_recording=recorded.append)
    safe = verdict.stage("safe")
    assert statuses(verdict).startswith("builds=passed correct=passed safe=failed"), as_text(verdict)
    assert {finding.kind for finding in safe.findings} == {"between_blocks"}
    assert len({finding.identity for finding in safe.findings}) == len(safe.findings)
    occur = "finding occurs" if len(safe.findings) == 1 else "findings occur"
    assert safe.note == f"{len(safe.findings)} {occur} only if blocks and warps run in reverse order."
    (recording,) = recorded
    assert recording.findings, "the player shows the run in which the finding occurred"

    verdict = judged(whole=HEAD + files(fault=False)[name] + LAUNCHER)
    assert verdict.passed and not verdict.stage("safe").note, as_text(verdict)


def test_a_race_of_the_counted_case_in_reverse_order_is_a_finding(judged) -> None:  # noqa: F811
    for fault in (True, False):
        adds = f"(n == COUNTED ? {'blockIdx.x == gridDim.x - 1' if fault else 'all_done'} : all_done)"
        verdict = judged(whole=HEAD + KERNEL.replace("ADDS", adds).replace("COUNTED", "1024") + LAUNCHER)
        assert verdict.stage("safe").status == (FAILED if fault else PASSED), as_text(verdict)
        assert {finding.case for finding in verdict.stage("safe").findings} == ({"counted"} if fault else set())


def test_a_wrong_result_in_reverse_order_fails(judged) -> None:  # noqa: F811
    """The first block that takes a ticket writes a wrong number, unless it is block 0. No access is a race."""
    kernel = """__device__ int tickets;
__global__ void twice_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        const int ticket = atomicAdd(&tickets, 1);
        if (ticket == gridDim.x - 1) atomicExch(&tickets, 0);
        if (i < n) out[i] = WRONG && ticket == 0 && blockIdx.x != 0 ? -7.0f : 2.0f * x[i];
    } else if (i < n) {
        out[i] = 2.0f * x[i];
    }
}
"""
    verdict = judged(whole=HEAD + kernel.replace("WRONG", "true") + LAUNCHER)
    assert statuses(verdict).startswith("builds=passed correct=failed"), as_text(verdict)
    correct = verdict.stage("correct")
    failed = [case for case in correct.cases if not case.passed]
    assert failed and all(case.problem == "wrong" for case in failed)
    assert re.fullmatch(r"\d+ cases? fails? only if blocks and warps run in reverse order\.", correct.note)
    assert correct.note in as_text(verdict)
    verdict = judged(whole=HEAD + kernel.replace("WRONG", "false") + LAUNCHER)
    assert verdict.passed and not verdict.stage("correct").note, as_text(verdict)


def test_a_finding_of_both_orders_appears_once(judged, monkeypatch) -> None:  # noqa: F811
    """Let the case 'some' race in both orders. The other cases have no finding in forward order, so they run again."""
    kernel = files(fault=True)["lock"].replace(
        "if (blockIdx.x + 1 == gridDim.x", "if ((n == 100 || blockIdx.x + 1 == gridDim.x)"
    )
    whole = HEAD + kernel + LAUNCHER.replace("n > 0", "n > 64")
    both, again = (judged(whole=whole).stage("safe").findings for _ in range(2))
    assert both == again, "a verdict does not change"
    monkeypatch.setattr("grader.judge.driver.in_reverse", lambda runs: [])
    forward = judged(whole=whole).stage("safe").findings
    counts = {finding.identity: finding.count for finding in both}
    assert len(counts) == len(both) and len(forward) == 2
    assert all(counts[finding.identity] >= finding.count for finding in forward)
    assert sum(counts.values()) > sum(finding.count for finding in forward)


def run(name: str, *, threads: int, blocks: int, communicates: bool = True, kernel: str = "k", found: int = 0) -> Run:
    counters = KernelCounters(kernel, 1, blocks, threads, communicates=communicates)
    counters.lines = [LineCounters("k.cu", 3, accesses=threads)]
    result = CaseResult(name=name, dtype="f32", status=PASSED)
    result.findings = [Finding(check="racecheck", kind="between_blocks")] * found
    return Run(Case(name, n=3), "f32", 7, result, simulated=Report(kernels=[counters]))


def chosen(*runs: Run) -> list[str]:
    repeated = in_reverse(runs)
    assert all(one.schedule == "reverse" and one.seed == 7 and one.simulated is None for one in repeated)
    return [one.case.name for one in repeated]


def test_the_smallest_runs_with_several_blocks_are_repeated() -> None:
    large = run("large", threads=10000, blocks=10)
    one_block = run("one block", threads=32, blocks=1)
    some = [run(f"some {n}", threads=64 * n, blocks=2) for n in (5, 2, 3, 4)]
    assert chosen(large, one_block, *some) == ["some 2", "some 3", "some 4"]
    assert chosen(one_block, large) == ["large"]
    assert chosen(run("one", threads=90, blocks=3), run("two", threads=100, blocks=3)) == ["one"], "a quarter at most"


def test_runs_whose_counters_are_graded_are_repeated() -> None:
    counted = replace(run("counted", threads=10000, blocks=10), counted=True)
    assert chosen(*(run(f"some {n}", threads=64, blocks=2) for n in range(4)), counted)[-1] == "counted"
    silent = replace(run("silent", threads=64, blocks=2, communicates=False), counted=True)
    one_block = replace(run("one block", threads=128, blocks=1), counted=True)
    assert chosen(run("some", threads=64, blocks=2), silent, one_block) == ["some"]


def test_kernels_whose_threads_do_not_communicate_are_not_repeated() -> None:
    silent = run("silent", threads=64, blocks=2, communicates=False)
    assert chosen(silent, run("one thread", threads=1, blocks=1)) == []
    assert chosen(silent, run("found", threads=64, blocks=2, found=1)) == [], "it already has a finding"
    no_report = run("no report", threads=64, blocks=2)
    no_report.simulated = None
    assert chosen(no_report) == []


def test_each_kernel_is_repeated() -> None:
    every = [run(f"{kernel} {n}", threads=64 * n, blocks=2, kernel=kernel) for kernel in "ab" for n in (3, 2)]
    assert chosen(*every) == ["a 2", "b 2"]


@pytest.mark.parametrize("kernel", [RIGHT, f"__shared__ int s; if (i == 0) atomicExch(&s, 1); {RIGHT}"])
def test_only_communicating_kernels_take_a_second_child(judged, monkeypatch, kernel: str) -> None:  # noqa: F811
    pools: list[dict[str, str]] = []
    start = CasePool.run

    def counted(self: CasePool, runs: Any) -> None:
        pools.append(dict(self.new_child().settings))
        start(self, runs)

    monkeypatch.setattr(CasePool, "run", counted)
    judged(kernel)
    orders = [settings.get("schedule") for settings in pools]
    assert orders == ([None, "reverse"] if "atomic" in kernel else [None])


def test_a_kernel_that_cannot_be_loaded_again_fails(judged, monkeypatch, tmp_path: Path) -> None:  # noqa: F811
    start = CasePool.run

    def fails(self: CasePool, runs: Any) -> None:
        if runs[0].schedule == "reverse":
            raise LoadFailed("the kernel cannot be loaded", "")
        start(self, runs)

    monkeypatch.setattr(CasePool, "run", fails)
    verdict = judged(whole=HEAD + files(fault=False)["ticket"] + LAUNCHER)
    assert verdict.stage("correct").status == FAILED
