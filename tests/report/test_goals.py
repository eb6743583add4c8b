"""The goals beside the recorded figures: in 80 columns of a terminal, and as a page of the book."""

from __future__ import annotations

import dataclasses

import pytest

from grader.course import Course
from grader.judge.timing.goals import reached
from grader.report import theme
from grader.report.book import front
from grader.report.book.exercises import page
from grader.report.goals import goals_page, render_goals, summary


def shown(course: Course, *names: str) -> str:
    found = [one for one in reached(course.root) if one.goal.name in names or not names]
    return theme.plain_text(render_goals(course, found))


def test_every_goal_fits_into_80_columns() -> None:
    text = shown(Course())
    assert max(map(len, text.splitlines())) <= 80
    for one in reached(Course().root):
        assert one.goal.title in text and one.goal.limit in " ".join(text.split())


def test_an_exercise_is_named_once_for_all_goals_of_a_command() -> None:
    lines = shown(Course(), "scores_softmax").splitlines()
    assert lines.count("  scores_softmax") == 1
    goals = [line for line in lines if line.lstrip().startswith("at ")]
    assert len(goals) == 2 and all(line.startswith("    at ") for line in goals), (
        "a long line is indented as a short one"
    )


def test_a_goal_has_its_figure_its_command_and_the_reason_why_it_is_missed() -> None:
    text = " ".join(shown(Course(), "layer_norm").split())
    found = [one for one in reached(Course().root) if one.goal.name == "layer_norm"]
    for one in found:
        assert one.goal.limit in text and one.range in text and one.status in text and one.date in text
        assert one.command in text and one.goal.reason in text
    assert text.count("grader bench") == 1  # goals with the same sizes share a line


@pytest.mark.parametrize("numbers", [(0, 0, 0), (2, 1, 1)])
def test_the_summary_counts_goals(numbers: tuple[int, int, int]) -> None:
    found = reached(Course().root)
    by_kind = [
        [one for one in found if one.status == "met"],
        [one for one in found if one.missed],
        [dataclasses.replace(one, rows=()) for one in found],
    ]
    few = [one for kind, number in zip(by_kind, numbers) for one in kind[:number]]
    met, missed, unknown = numbers
    expected = f"Goals: {met} met, {missed} missed for at least one size or dtype, {unknown} not recorded."
    assert summary(few) == expected


def test_the_page_of_an_exercise_has_the_limits_of_its_goals() -> None:
    course = Course()
    text = page(course, course.find("softmax"))
    assert text.count("time of *large* on H200") == 3


def test_the_page_of_the_book_has_a_row_for_each_goal() -> None:
    course = Course()
    found = reached(course.root)
    text = goals_page(course, found)
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(found) and all(row.count("|") == 6 for row in rows)
    for one in found:
        row = next(row for row in rows if row.startswith(f"| `{one.goal.title}` | {one.goal.limit} | {one.range} |"))
        assert one.goal.limit in row and one.range in row and one.status in row and one.date in row
        assert one.misses in text and one.goal.reason in text and one.goal.not_recorded in text and one.command in text
    assert "(goals.md)" in front.page(course, ["goals.md"])
