"""Time limits: judged on the GPU that they name, only shown on other GPUs, and refused without a valid size."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Group

from grader.course.task import Bench, Exercise, TimeBar
from grader.judge.fast import judge_times
from grader.report import theme
from grader.report.html import html_page
from grader.report.junit import junit_xml
from grader.report.terminal import stage_details
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, Timing, Verdict
from grader.verdict.wording import bars, results, stages
from tests.execution.runner.test_runner import exercise

LIMITS = [TimeBar("small", 20.0, "H200", look="the launches"), TimeBar("large", 250.0, "H200", dtypes=("f16",))]


def times(small: float, large: float) -> list[Timing]:
    return [
        Timing(name, dtype, "GPU", median_us=us)
        for name, us in (("small", small), ("large", large))
        for dtype in ("f16", "bf16")
    ]


def judged(gpu: str, small: float = 12.0, large: float = 251.0) -> list[tuple[str, str, str]]:
    return [(bar.name, bar.dtype, bar.status) for bar in judge_times(LIMITS, times(small, large), gpu)]


def test_a_limit_is_for_every_dtype_unless_it_names_some() -> None:
    assert judged("NVIDIA H200") == [
        ("small", "f16", PASSED),
        ("small", "bf16", PASSED),
        ("large", "f16", FAILED),
    ]
    assert judged("NVIDIA H200", small=20.0, large=250.0)[2] == ("large", "f16", PASSED)


@pytest.mark.parametrize("gpu", ["NVIDIA L4", "NVIDIA GH200 480GB", "NVIDIA H2000", ""])
def test_another_gpu_is_not_judged_and_the_reason_is_shown(gpu: str) -> None:
    results_here = judge_times(LIMITS, times(1e6, 1e6), gpu)
    assert {bar.status for bar in results_here} == {SKIPPED}
    said = bars.time_text(results_here[0])
    assert "at most 20 us on H200, not judged here: this is " in said and (gpu or "another GPU") in said


def verdict(gpu: str) -> Verdict:
    stage = Stage("fast", time_bars=judge_times(LIMITS, times(37.14, 100.0), gpu))
    stage.status = FAILED if any(bar.status == FAILED for bar in stage.time_bars) else PASSED
    return Verdict("day01_x/twice", "Twice", "twice.cu", "cuda", 1, stages=[stage])


def test_every_report_shows_a_missed_limit() -> None:
    missed = verdict("NVIDIA H200")
    stage = missed.stages[0]
    told = "small (f16): 37.14 us, at most 20 us is allowed on H200"
    assert stages.summary(stage) == "2 of 3 times above the limit" and told in stages.text(stage)
    assert stages.first_look(missed) == "the launches" and told in html_page(missed)
    suite = ET.fromstring(junit_xml(missed)).findall("testsuite/testcase")
    assert [case.find("failure") is not None for case in suite] == [True, True, False]
    kept = json.loads(results.as_json(missed))["stages"][0]["time_bars"]
    assert [bar["status"] for bar in kept] == [FAILED, FAILED, PASSED] and kept[0]["text"].startswith(told)
    assert Verdict.from_dict(json.loads(results.as_json(missed))).stages[0].time_bars == stage.time_bars


def test_a_limit_of_another_gpu_fails_nothing() -> None:
    elsewhere = verdict("NVIDIA L4")
    suite = ET.fromstring(junit_xml(elsewhere)).findall("testsuite/testcase")
    assert elsewhere.stages[0].status == PASSED and all(case.find("skipped") is not None for case in suite)
    assert "not judged here: this is NVIDIA L4" in html_page(elsewhere)


def test_the_terminal_shows_limits_below_the_times() -> None:
    shown = verdict("NVIDIA H200")
    shown.stages[0].timings = times(37.14, 100.0)
    rows = stage_details(shown, shown.stages[0], theme.WIDTH, verbose=True, ascii_only=True)
    text = " ".join(theme.plain_text(Group(*rows)).split())
    assert "at most 20 us is allowed on H200" in text and "at most 250 us on H200 is met" in text


@pytest.mark.parametrize(
    ("bar", "says"),
    [
        (TimeBar("huge", 1.0, "H200"), "'huge', which is not one of the task's bench sizes"),
        (TimeBar("small", 0.0, "H200"), "lacks a positive time"),
        (TimeBar("small", 1.0, " "), "the name of a GPU"),
        (TimeBar("small", 1.0, "H200", dtypes=("bf16",)), "in bf16, a dtype that is not timed"),
    ],
)
def test_a_limit_without_a_matching_size_is_refused(bar: TimeBar, says: str) -> None:
    known: Exercise = replace(exercise("double_it"), bench=[Bench("small", n=5)])
    assert replace(known, time_bars=[TimeBar("small", 1.0, "H200")]).time_bars
    with pytest.raises(GraderError, match=says):
        replace(known, time_bars=[bar])
