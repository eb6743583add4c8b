"""The result of each stage for given results of runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from grader.course.task import Bar, Case, Exercise, Output, normal
from grader.execution.submission_sandbox.plausible_report import implausible, too_little
from grader.judge.cases import Run
from grader.judge.correct import judge_correct
from grader.judge.efficient import judge_efficient, names_in, needs
from grader.judge.safe import judge_safe
from grader.verdict import FAILED, PASSED, SKIPPED, CaseResult, Finding, KernelResources, OutputResult
from grader.verdict.findings.host import CountedBytes, HostBytes
from tests.twice import twice

GOOD = {"launches": 1.0, "global_written_bytes": 400.0, "global_read_bytes": 400.0, "global_bytes": 800.0}


def task(**more: Any) -> Exercise:
    """Return the task out = 2 x."""
    return twice(**{"bars": [Bar("global_bytes / minimum", at_most=1.1)], **more})


def report(**totals: float | None) -> Any:
    """Return the counters of a good kernel with some values replaced. None removes a counter."""
    every = {name: value for name, value in {**GOOD, **totals}.items() if value is not None}
    return SimpleNamespace(totals=every, findings=[], source_lines=[SimpleNamespace(line=i) for i in range(6000)])


def run(
    status: str = PASSED, simulated: Any = None, elements: int = 100, text: str = "{}", dtype: str = "f32", **more: Any
) -> Run:
    """Return a case with this result."""
    result = CaseResult(name="some", dtype=dtype, status=status, seed=1)  # type: ignore[arg-type]
    result.outputs = [OutputResult("out", dtype, [elements], True, elements, 0.1)]
    result.dims = {"n": 100}
    made = Run(Case("some", n=100), dtype, 1, result, text, simulated or report(), minimum_bytes=800.0, **more)
    return made


def test_every_case_must_pass() -> None:
    assert judge_correct([run(), run()]).status == PASSED
    for bad in (FAILED, SKIPPED, "error"):
        stage = judge_correct([run(), run(bad)])
        assert (stage.name, stage.status, len(stage.cases)) == ("correct", FAILED, 2)


def test_one_finding_makes_a_kernel_unsafe() -> None:
    stage = judge_safe([run(), run(text="")])
    assert (stage.name, stage.status, stage.runs) == ("safe", PASSED, 1)
    found = [run(), run()]
    for each in found:
        each.result.findings = [Finding(check="memcheck", kind="read", line=3)]
    stage = judge_safe(found)
    assert stage.status == FAILED and len(stage.findings) == 1 and stage.runs == 2


def test_contradictory_reports() -> None:
    passed = run().result
    assert implausible(passed, report()) is None
    for totals, kind in (
        ({"launches": 0}, "no_launch"),
        ({"launches": None}, "no_launch"),
        ({"global_written_bytes": 0}, "nothing_written"),
        ({"host_bytes": 12.0}, "host_copies"),
    ):
        found = implausible(passed, report(**totals))
        assert found is not None and (found.check, found.kind) == ("report", kind)
    outside = report(global_written_bytes=0)
    outside.findings = [Finding(check="memcheck", kind="out_of_bounds", line=3)]
    assert implausible(passed, outside) is None, "it wrote, but elsewhere"
    outside.findings = [Finding(check="memcheck", kind="misaligned", line=3)]
    assert implausible(passed, outside) is not None
    found = implausible(passed, report(host_bytes=12.0))
    assert found is not None and found.payload == HostBytes(bytes=12)
    missing = implausible(passed, None)
    assert missing is not None and missing.kind == "report_missing"
    assert implausible(run(FAILED).result, None) is None, "what failed has failed"
    assert implausible(run(elements=0).result, None) is None, "a kernel need not write an empty output"


@pytest.mark.parametrize(
    ("totals", "kind"),
    [
        ({}, None),
        ({"global_bytes": 320.0}, None),
        ({"global_bytes": 319.0}, "too_few_bytes"),
        ({"global_bytes": None}, "too_few_bytes"),
        ({"global_read_bytes": 0.0}, "nothing_read"),
        ({"host_bytes": 1.0}, "host_copies"),
    ],
)
def test_too_little_work(totals: dict[str, float | None], kind: str | None) -> None:
    found = too_little(task(), report(**totals), 800.0)
    assert (found and found.kind) == kind
    stage = judge_efficient(task(), [run(simulated=report(**totals))])
    assert (stage.status == PASSED) is (kind is None)
    if found is not None:
        assert stage.findings[0].kind == kind and (stage.findings[0].case, stage.findings[0].dtype) == ("some", "f32")
        assert found.check == "report"
    if kind == "too_few_bytes":
        counted = CountedBytes(bytes=int(totals["global_bytes"] or 0), needed=800)
        assert found is not None and found.payload == counted
    if kind == "host_copies":
        assert found is not None and found.payload == HostBytes(bytes=1)


def test_little_work_is_accepted_if_the_case_needs_little() -> None:
    few = report(global_bytes=1.0)
    assert too_little(task(bars=[Bar("launches", at_most=1)]), few, 800.0) is None, (
        "without a bar on bytes, too few bytes must not be reported"
    )
    starts = task(outputs={"out": Output("n", inout=True, start=normal())})
    assert too_little(starts, few, 800.0) is None, "a kernel need not write an output that already has values"
    none = task(inputs={}, reference=lambda n: n, launchers="void twice(float* out, int n, cudaStream_t stream)")
    assert too_little(none, report(global_read_bytes=0.0), 800.0) is None, "there is nothing to read"
    missing = too_little(task(), None, 800.0)
    assert missing is not None and (missing.check, missing.kind) == ("report", "report_missing")


def test_all_bars_of_all_runs_must_be_met() -> None:
    stage = judge_efficient(task(), [run()])
    assert (stage.name, stage.status, [bar.value for bar in stage.bars]) == ("efficient", PASSED, [1.0])
    assert stage.totals == GOOD and len(stage.lines) == 5000 and stage.bars[0].dtype == ""
    slow = run(simulated=report(global_bytes=900.0), dtype="f16")
    stage = judge_efficient(task(), [run(), slow])
    assert stage.status == FAILED and [(bar.dtype, bar.passed) for bar in stage.bars] == [("f32", True), ("f16", False)]
    assert stage.totals["global_bytes"] == 800.0, "the stage shows the totals of the first dtype"
    wrong = judge_efficient(task(), [run(FAILED)])
    assert wrong.status == FAILED and len(wrong.cases) == 1 and not wrong.bars


def test_counters_that_a_bar_can_use() -> None:
    bars = [Bar("n + item", at_most=104), Bar("flops_needed", at_least=7), Bar("minimum", at_least=800)]
    assert judge_efficient(task(bars=bars), [run(operations=7.0)]).status == PASSED
    assert judge_efficient(task(bars=bars), [run()]).status == FAILED
    assert judge_efficient(task(bars=[Bar("flops_needed", at_most=0)]), [run()]).status == PASSED, "no formula"
    assert names_in(Bar("max(a, 2) * min(b, abs(c))", at_most=1)) == {"a", "b", "c"}
    assert needs(task(), ["minimum", "flops"]) and not needs(task(), ["flops"])


def test_bars_on_registers_need_nvcc() -> None:
    both = task(bars=[Bar("registers", at_most=32), Bar("launches", at_most=1)])
    kernels = [KernelResources(f"k{n}", "sm_90", n) for n in (20, 40)]
    assert judge_efficient(both, [run()], kernels[:1]).status == PASSED
    assert judge_efficient(both, [run()], kernels).status == FAILED, "the most of any kernel"
    stage = judge_efficient(both, [run()])
    assert stage.status == PASSED and len(stage.bars) == 1 and "the bar on registers" in stage.note
    assert not judge_efficient(both, [run()], kernels).note


def test_bars_on_operations_wait_for_the_run_that_counts_them() -> None:
    counted = task(bars=[Bar("flops", at_most=5), Bar("launches", at_most=1)])
    assert [bar.expression for bar in judge_efficient(counted, [run()]).bars] == ["launches"]
    assert judge_efficient(counted, [run(simulated=report(flops=6.0))]).status == FAILED
    assert judge_efficient(counted, [run(simulated=report(flops=5.0))]).status == PASSED
