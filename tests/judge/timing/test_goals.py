"""Goals compared with recorded times, and the time limits that follow from the goals that are met."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.course import Course, course_root
from grader.course.goals import FILE, Goal
from grader.course.task import Bench, Exercise
from grader.judge.fast import judge_times
from grader.judge.timing.goals import Reached, compare, reached, with_time_bars
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, Timing
from grader.verdict.wording import bars
from tests.execution.runner.test_runner import exercise
from tests.goals import outdated
from tests.small_course import write_course

LARGE = Timing(
    "large",
    "f16",
    "GPU",
    median_us=100.0,
    copy_us=96.0,
    torch_ratio=1.2,
    percent_of_copy=90.0,
    percent_of_roofline=90.0,
)
SMALL = msgspec.structs.replace(LARGE, name="small", copy_us=80.0, torch_ratio=0.9)
COPY = '[[goal]]\nexercise = "day01_sums/total"\nyardstick = "copy"\nat_least = 0.912\n'
TORCH = COPY.replace("copy", "torch").replace("0.912", "1.0")


def write(root: Path, goals: str, *timings: Timing, gpu: str = "NVIDIA H200", **more: Any) -> Course:
    write_course(root, {"day01_sums": ""}, {"day01_sums/total": 'title = "T"\nkind = "implement"\npoints = 5'})
    entry = {
        "timings": [msgspec.to_builtins(timing) for timing in timings],
        "machine": {"device": gpu},
        "date": "2026-11-28",
    }
    content = {"version": 1, "exercises": {"total": entry | more}}
    (root / "lessons" / "day01_sums" / "h200.json").write_text(json.dumps(content))
    (root / FILE).write_text(goals)
    return Course(root)


def task() -> Exercise:
    return dataclasses.replace(exercise("double_it"), dtypes=("f16",), bench=[Bench("small", n=5), Bench("large", n=9)])


def test_a_goal_is_compared_with_each_recorded_row(tmp_path: Path) -> None:
    course = write(tmp_path, COPY + TORCH + TORCH + 'sizes = ["large"]\n', LARGE, SMALL)
    copy, torch, large = reached(course.root)
    assert (copy.status, copy.range, copy.misses) == ("met in 1 of 2", "0.80 to 0.96 of a copy", "small, f16 (0.80)")
    assert (torch.status, torch.range) == ("met in 1 of 2", "0.90 to 1.20x torch")
    assert (large.status, large.range, large.gpu, large.date) == ("met", "1.20x torch", "NVIDIA H200", "2026-11-28")
    assert large.command == "grader bench day01_sums/total --device cuda --record"
    assert reached(course.root, "day02_other") == [] and len(reached(course.root, "day01_sums")) == 3


@pytest.mark.parametrize(
    ("yardstick", "value"),
    [("torch", 1.2), ("copy", 0.96), ("roofline", 0.9), ("microseconds", 100.0), ("tflops", None)],
)
def test_the_figure_of_each_yardstick(tmp_path: Path, yardstick: Any, value: float | None) -> None:
    course = write(tmp_path, "", LARGE)
    found = compare(Goal("day01_sums/total", yardstick, at_least=1.0), course.root / "lessons" / "day01_sums")
    assert [row.value for row in found.rows] == ([] if value is None else [pytest.approx(value)])


def test_a_figure_that_barely_misses_does_not_look_like_the_limit(tmp_path: Path) -> None:
    course = write(tmp_path, TORCH, msgspec.structs.replace(LARGE, torch_ratio=0.998))
    assert reached(course.root)[0].misses == "large, f16 (0.998)"


def test_a_goal_for_a_figure_of_another_record(tmp_path: Path) -> None:
    record = COPY.replace('"copy"', '"record"') + 'record = "day01_sums/pairs.json"\nunit = "{}x the pair"\n'
    record += 'figure = "results/sum */unfused_us"\ndivided_by = "results/sum */fused_us"\n'
    course = write(tmp_path, record)
    assert reached(course.root)[0].status == "not recorded"
    rows = [
        {"name": "sum", "title": size, "unfused_us": us, "fused_us": 10.0} for size, us in (("a", 9.0), ("b", 20.0))
    ]
    content = {"results": rows, "gpu": "NVIDIA H200", "date": "2026-11-28", "command": "python pairs.py"}
    (tmp_path / "lessons" / "day01_sums" / "pairs.json").write_text(json.dumps(content))
    (found,) = reached(course.root)
    assert (found.range, found.misses) == ("0.90 to 2.00x the pair", "sum a (0.90)")
    assert found.command == "python pairs.py"
    (tmp_path / "lessons" / "day01_sums" / "pairs.json").write_text('{"results": {"sum a": {"unfused_us": {}}}}')
    with pytest.raises(GraderError, match=r"pairs.json has no figure .*for the goal of day01_sums/total"):
        reached(course.root)


# --- limits of the stage fast ---


def test_only_rows_that_meet_a_goal_become_limits(tmp_path: Path) -> None:
    course = write(tmp_path, COPY + TORCH, LARGE, SMALL)
    (bar,) = with_time_bars(course.find("total"), task()).time_bars
    assert (bar.size, bar.dtypes, bar.gpu) == ("large", ("f16",), "H200")
    # The stricter goal is 0.912 of a copy's rate: a copy takes 96 us, so at most 96 us / 0.912 / 0.95 = 111 us. On
    # other GPUs, the goal is a share of the roofline's time, 90 us: 0.75 * 90 us / 111 us.
    assert (bar.at_most_us, bar.share_of_roofline) == (111.0, 0.609)
    assert "at least 0.91 of a copy" in bar.look


def test_a_size_that_is_no_longer_timed_has_no_limit(tmp_path: Path) -> None:
    course = write(tmp_path, COPY, msgspec.structs.replace(LARGE, name="huge"))
    assert with_time_bars(course.find("total"), task()).time_bars == []


def test_an_exercise_without_a_goal_or_record_has_no_limit(tmp_path: Path) -> None:
    entry = write(tmp_path, "", LARGE).find("total")
    assert with_time_bars(entry, task()).time_bars == []
    (tmp_path / FILE).write_text(COPY)
    (tmp_path / "lessons" / "day01_sums" / "h200.json").unlink()
    assert with_time_bars(entry, task()).time_bars == []


def test_the_limit_on_another_gpu_is_a_share_of_its_own_roofline(tmp_path: Path) -> None:
    (bar,) = with_time_bars(write(tmp_path, COPY, LARGE).find("total"), task()).time_bars
    here = {"NVIDIA H200": (110.0, 112.0), "NVIDIA L4": (1000.0, 1050.0)}  # an L4's floor is 630 us
    for gpu, times in here.items():
        floor_us = 90.0 if gpu == "NVIDIA H200" else 610.0
        for us, status in zip(times, (PASSED, FAILED)):
            timing = msgspec.structs.replace(LARGE, median_us=us, percent_of_roofline=100 * floor_us / us)
            (result,) = judge_times([bar], [timing], gpu)
            assert result.status == status, (gpu, us, result.at_most_us)
    assert "61 % of this GPU's roofline, from the limit on H200" in bars.time_text(result)
    (unknown,) = judge_times([bar], [msgspec.structs.replace(LARGE, percent_of_roofline=None)], "NVIDIA L4")
    assert unknown.status == SKIPPED


def test_a_limit_of_arithmetic_is_for_the_recorded_gpu_only(tmp_path: Path) -> None:
    course = write(tmp_path, COPY, msgspec.structs.replace(LARGE, percent_of_copy=5.0))
    (bar,) = with_time_bars(course.find("total"), task()).time_bars
    assert bar.share_of_roofline == 0.0
    assert judge_times([bar], [LARGE], "NVIDIA B200")[0].status == SKIPPED


# --- the goals of this course ---


def test_the_goals_of_the_course_agree_with_the_records() -> None:
    assert outdated(reached(course_root())) == []


def test_reasons_that_disagree_with_the_record_are_reported() -> None:
    found = {one.status: one for one in reversed(reached(course_root()))}
    met, missed = found["met"], found["not met"]
    goal = msgspec.structs.replace(met.goal, not_recorded="No GPU has timed it yet.")
    unknown = dataclasses.replace(met, goal=goal, rows=())

    def changed(one: Reached, **more: str) -> Reached:
        return dataclasses.replace(one, goal=msgspec.structs.replace(one.goal, **more))

    assert outdated([met, missed, unknown]) == []
    for one, says in (
        (changed(met, why="Because."), "remove its why"),
        (changed(missed, why=""), "say in exercises/goals.toml why"),
        (changed(met, not_recorded="It is new."), "remove its not_recorded"),
        (changed(unknown, not_recorded=""), "has no recorded figure"),
    ):
        (error,) = outdated([one])
        assert says in error and one.goal.limit in error


def test_every_recorded_solution_is_within_its_limits() -> None:
    course = Course()
    judged = 0
    for name in dict.fromkeys(one.goal.exercise for one in reached(course.root) if one.goal.yardstick != "record"):
        entry = course.find(name)
        limited = with_time_bars(entry, entry.load())
        rows = [row for one in reached(course.root, entry.day) if one.goal.exercise == name for row in one.rows]
        times = list({(row.size, row.dtype): row.timing for row in rows if row.timing is not None}.values())
        for gpu in ("NVIDIA H200", "NVIDIA H100", "another GPU with the same roofline"):
            results = judge_times(limited.time_bars, times, gpu)
            judged += len(results)
            assert [bars.time_text(bar) for bar in results if bar.status == FAILED] == []
    assert judged > 150
