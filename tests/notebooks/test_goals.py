"""Sentences of the lessons that state a speed agree with the recorded figures."""

from __future__ import annotations

import json
import re

import pytest

from grader.course import Course
from grader.course.goals import read_goals
from grader.report.notebook import h200_goals, h200_profiles, h200_table, library_times
from tests.goals import Mark, marks


def test_every_marked_sentence_agrees_with_the_record() -> None:
    course = Course()
    found = [mark for day in course.days for mark in marks(day.lesson)]
    assert len(found) > 20
    assert [problem for mark in found if (problem := mark.problem(course))] == []


def test_lessons_show_the_times_and_goals_of_the_present_record() -> None:
    functions = {function.__name__: function for function in (h200_table, h200_goals, h200_profiles, library_times)}
    shown = dict.fromkeys(functions, 0)
    call = re.compile(r"(h200_table|h200_goals|h200_profiles|library_times)\((?:HERE|here)((?:, \"\w+\")*)\)$")
    for day in Course().days:
        for cell in json.loads(day.lesson.read_text())["cells"]:
            found = call.search("".join(cell["source"])) if cell["cell_type"] == "code" else None
            if found:
                expected = str(functions[found[1]](day.lesson.parent, *re.findall(r"\w+", found[2])))
                texts = ["".join(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"]]
                assert expected in texts, f"{day.folder}, cell {cell['id']}: execute the lesson again"
                shown[found[1]] += 1
    assert shown["h200_goals"] == len({goal.day for goal in read_goals(Course().root)}) and shown["h200_table"] > 10
    assert shown["h200_profiles"] == len(list((Course().root / "lessons").glob("*/profiles_gpu.json")))
    assert shown["library_times"] == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("residual_add copy >= 0.95 large", ""),
        ("residual_add copy >= 1.0 large", "the record contradicts"),
        ("residual_add copy >= 1.0 f32 large", ""),
        ("argmax torch = 1.2 f32 large", ""),
        ("argmax torch = 1.3 f32 large", "large, f32: 1.2"),
        ("argmax torch < 1 small", ""),
        ("argmax torch < 1 large", "the record contradicts"),
        ("argmax torch >= 0.9", ""),
        ("argmax torch >= 1 f32 tiny", "no recorded figure matches"),
        ("argmaxx torch >= 1 large", "did you mean"),
        ("argmax turtle >= 1 large", "is not EXERCISE YARDSTICK"),
        ("argmax torch 1 large", "is not EXERCISE YARDSTICK"),
        ("day05_fusion/fusion_h200.json record >= 10 results/linear_swiglu small model/fused_us", ""),
        ("day05_fusion/fusion_h200.json record < 10 results/linear_swiglu small model/fused_us", "contradicts"),
        ("day05_fusion/fusion_h200.json record < 10 results/linear_swiglu/fused_us", "no recorded figure"),
        ("day05_fusion/fusion.json record < 10 results/linear_swiglu small/fused_us", "no recorded figure"),
    ],
)
def test_a_mark_is_compared_with_the_record(text: str, says: str) -> None:
    problem = Mark("day02", text).problem(Course())
    assert bool(problem) == bool(says) and says.lower() in problem.lower()
