"""goals.toml: what it may contain, and the errors for what it must not contain."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path

import pytest

from grader.course import Course
from grader.course.goals import FILE, Goal, read_goals
from grader.setup import shipped
from grader.setup.errors import GraderError
from tests.small_course import write_course

GOAL = '[[goal]]\nexercise = "day01_sums/total"\nyardstick = "torch"\nat_least = 1.0\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_course(tmp_path, {"day01_sums": ""}, {"day01_sums/total": 'title = "T"\nkind = "implement"\npoints = 5'})
    return tmp_path


def check_sizes(goal: Goal, sizes: list[tuple[str, str]]) -> None:
    """Raise GraderError if a goal names a size or dtype that the exercise is not timed in.

    ``sizes``: the exercise's bench sizes as pairs (size, dtype).
    """
    for pattern in goal.sizes or ("*",):
        for dtype in goal.dtypes or ("",):
            if not any(fnmatch.fnmatchcase(size, pattern) and dtype in ("", known) for size, known in sizes):
                names = ", ".join(repr(name) for name in dict.fromkeys(size for size, _ in sizes))
                raise GraderError(
                    f"{FILE}: a goal of {goal.exercise} is for the size {pattern!r}{f' in {dtype}' if dtype else ''}, "
                    "which is not timed",
                    f"The bench sizes of the exercise are: {names or 'none'}.",
                )


def read(root: Path, text: str) -> tuple[Goal, ...]:
    (root / FILE).write_text(text)
    return read_goals(root)


def test_a_goal_has_a_limit_and_sizes(root: Path) -> None:
    assert read_goals(root) == ()  # a course without the file has no goals
    (goal,) = read(root, GOAL + 'sizes = ["large", "1 row, *"]\ndtypes = ["f16"]\n')
    assert (goal.day, goal.name, goal.limit) == ("day01_sums", "total", "at least 1.00x torch")
    assert goal.title == "total (large; 1 row, *; f16)"
    assert goal.applies_to("1 row, C 4096", "f16") and not goal.applies_to("1 row, C 4096", "f32")
    assert not goal.applies_to("small", "f16")
    assert goal.met_by(1.0) and not goal.met_by(0.999)
    (least,) = read(root, GOAL.replace("torch", "microseconds").replace("at_least = 1.0", "at_most = 20"))
    assert least.limit == "at most 20 us" and least.met_by(20.0) and not least.met_by(20.1)


def test_goals_of_a_removed_day_are_left_out(root: Path) -> None:
    (goal,) = read(root, GOAL.replace("day01_sums", "day02_more") + GOAL)
    assert goal.exercise == "day01_sums/total"


def test_the_course_has_the_days_of_all_goals() -> None:
    course = Course(shipped.COURSE)
    listed = tomllib.loads((course.root / FILE).read_text(encoding="utf-8"))["goal"]
    assert len(read_goals(course.root)) == len(listed) > 50


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOAL.replace("total", "totals"), "no such exercise; did you mean day01_sums/total?"),
        (GOAL.replace("/total", ""), "no such exercise"),
        (GOAL.replace("at_least", "minimum"), "unknown field `minimum`"),
        (GOAL.replace('"torch"', '"turtle"'), "Invalid enum value 'turtle'"),
        (GOAL.replace("1.0", "0.0"), "`float` > 0"),
        (GOAL + "at_most = 2.0\n", "either at_least or at_most"),
        (GOAL.replace("at_least = 1.0\n", ""), "either at_least or at_most"),
        (GOAL + 'record = "x.json"\nfigure = "a"\nunit = "{}x"\n', "no other yardstick may have them"),
        (GOAL.replace("torch", "record"), "needs record, figure and unit"),
        (
            GOAL.replace("torch", "record") + 'record = "x.json"\nfigure = "a"\nunit = "x"\n',
            "needs {} in place of the number",
        ),
        (GOAL + 'why = "It is slow."\nnot_recorded = "It is new."\n', "give only one of why"),
        ("[[goal]", "is not TOML"),
    ],
)
def test_an_invalid_goal_is_refused(root: Path, text: str, says: str) -> None:
    with pytest.raises(GraderError) as error:
        read(root, text)
    assert says in str(error.value) and "goals.toml" in str(error.value)


def test_a_day_may_have_a_goal_for_a_figure_of_another_record(root: Path) -> None:
    text = GOAL.replace("/total", "").replace("torch", "record")
    (goal,) = read(root, text + 'record = "day01_sums/x.json"\nfigure = "a"\nunit = "{}x torch.compile"\n')
    assert (goal.day, goal.name, goal.limit) == ("day01_sums", "day01_sums", "at least 1.00x torch.compile")


def test_a_misspelled_size_is_refused(root: Path) -> None:
    sizes = [("small", "f32"), ("large", "f32"), ("large", "f16")]
    (goal,) = read(root, GOAL)
    check_sizes(goal, sizes)
    for lines in ('sizes = ["large"]', 'sizes = ["l*", "small"]', 'sizes = ["large"]\ndtypes = ["f16", "f32"]'):
        check_sizes(read(root, f"{GOAL}{lines}\n")[0], sizes)
    for lines in ('sizes = ["huge"]', 'sizes = ["large", "tiny"]', 'sizes = ["small"]\ndtypes = ["f16"]'):
        with pytest.raises(GraderError, match="which is not timed\nThe bench sizes of the exercise are: 'small', 'la"):
            check_sizes(read(root, f"{GOAL}{lines}\n")[0], sizes)


def test_every_goal_that_the_text_of_a_task_names_is_listed() -> None:
    course = Course()
    listed = {goal.exercise for goal in read_goals(course.root)}
    named = {entry.name for entry in course.exercises if " goal on " in entry.load().summary}
    assert len(named) > 10 and named <= listed


def test_every_goal_of_the_course_is_for_sizes_that_are_timed() -> None:
    course = Course()
    for goal in read_goals(course.root):
        if goal.yardstick != "record":
            task = course.find(goal.exercise).load()
            check_sizes(goal, [(size.name, dtype) for size in task.bench for dtype in size.dtypes or task.dtypes])
