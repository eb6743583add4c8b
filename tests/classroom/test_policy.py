"""The instructor's grading policy: valid file contents and the resulting points."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.classroom.instructor import read_instructions
from grader.classroom.policy import Extra, Late, Policy, grade
from grader.classroom.result import StudentResult
from grader.classroom.stored import shown_name
from grader.cli.app import run
from grader.course import Course
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, Stage, Verdict

DUE = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORKSHEET = "Identifier,Full name,Last modified (submission)\n"
LATE = "[late]\ndue = 2026-03-01T12:00:00+00:00\n"


def result(*passed: str, student: str = "ann", unchanged: Sequence[str] = ()) -> StudentResult:
    stages = [Stage(name, PASSED if name in passed else FAILED) for name in ("builds", "correct", "safe")]
    verdict = Verdict("d/e", "", "", "cpu", 0, stages=stages, score=10.0 if len(passed) == 3 else 0.0)
    return StudentResult(student, "ann.zip", "key", unchanged=list(unchanged), verdicts=[verdict])


def total(policy: Policy, *passed: str, late: timedelta | None = None) -> float:
    handed_in = None if late is None else (DUE + late, DUE)
    return grade(policy, result(*passed), "ann", {"d/e": 10.0}, handed_in).total


def test_all_or_nothing_without_a_policy() -> None:
    assert total(Policy(), "builds", "correct", "safe") == 10 and total(Policy(), "builds", "correct") == 0


def test_partial_points() -> None:
    policy = Policy({"d/e": {"builds": 1, "correct": 6.5, "safe": 2}})
    assert [total(policy), total(policy, "builds"), total(policy, "builds", "correct")] == [0, 1, 7.5]
    assert policy.maxima({"d/e": 10.0, "d/f": 4.0}) == {"d/e": 9.5, "d/f": 4.0}


@pytest.mark.parametrize(
    ("late", "points"),
    [
        (timedelta(days=-3), 10),
        (timedelta(), 10),
        (timedelta(minutes=10), 10),  # the grace period
        (timedelta(minutes=10, seconds=1), 8),
        (timedelta(days=1), 8),
        (timedelta(days=1, seconds=1), 6),
        (timedelta(days=3), 4),
        (timedelta(days=3, seconds=1), 0),
    ],
)
def test_lateness(late: timedelta, points: float) -> None:
    policy = Policy(late=Late(due=DUE, grace_minutes=10, percent_per_day=20, days=3))
    assert total(policy, "builds", "correct", "safe", late=late) == points


def test_late_days_cost_at_most_all_points() -> None:
    policy = Policy(late=Late(due=DUE, percent_per_day=60))
    assert total(policy, "builds", "correct", "safe", late=timedelta(days=9)) == 0


def test_extra_points_come_after_lateness_and_never_below_zero() -> None:
    policy = Policy(late=Late(due=DUE, percent_per_day=50), extra=(Extra("ann", 3, "why"), Extra("bob", 9)))
    assert total(policy, "builds", "correct", "safe", late=timedelta(hours=1)) == 8
    assert total(Policy(extra=(Extra("ann", -3),))) == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("points = 3", r"got `int` - at `\$\.points`"),
        ("[points.thrice]\nbuilds = 1", r'\[points."thrice"\]: there is no exercise'),
        ("[points.twice]\nbuild = 1", "has no stage 'build'"),
        ("[points.twice]\nbuilds = '1'", r'\[points."twice"\]: Expected `float`, got `str`'),
        ("[points.twice]\nbuilds = -1", "Expected `float` >= 0"),
        ("[points.twice]\nbuilds = nan", "nan|Expected `float`"),
        ("[points.twice]\nbuilds = 0", "gives no points"),
        ("[points.twice]\nfast = 2", "has no stage 'fast'"),
        ("late = 3", r"got `int` - at `\$\.late`"),
        ("[late]\ndue = 2026-03-01", r"Expected `datetime.* - at `\$\.late\.due`\n.*needs its zone"),
        ("[late]\ndue = 2026-03-01T12:00:00", "due"),
        ("[late]\npercent_per_day = 101", "<= 100.*percent_per_day"),
        ("[late]\npercent = 10", "unknown field `percent`"),
        ("[late]\ndues = 10", r"unknown field `dues` - at `\$\.late`$"),
        (f'{LATE}submitted = "none.csv"', "none.csv cannot be read"),
        (f'{LATE}submitted = "head.csv"', "does not begin with the row student,submitted"),
        (f'{LATE}submitted = "when.csv"', "when.csv, row 3: 'yesterday' is not a date and time"),
        (f'{LATE}submitted = "zone.csv"', "zone.csv, row 2: '2026-03-01T10:00:00' has no time zone"),
        (f'{LATE}submitted = "same.csv"', "same.csv, row 3: 'ann' has a row already"),
        (f'{LATE}submitted = "latin.csv"', "latin.csv is not a CSV file in UTF-8"),
        (
            f'{LATE}submitted = "german.csv"',
            "german.csv, row 2: 'Sonntag, 1. März 2026, 13:00' is not a time as Moodle",
        ),
        ('[late]\nsubmitted = "german.csv"', "times from Moodle need `due`"),
        ("extra = 1", r"got `int` - at `\$\.extra`"),
        ("[[extra]]\npoints = 1", r"missing required field `student` - at `\$\.extra\[0\]`"),
        ('[[extra]]\nstudent = "ann"\npoints = 1e9', r"Expected `float` <= .* - at `\$\.extra\[0\]\.points`"),
    ],
)
def test_mistakes_name_the_file_and_the_key(course: Course, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "instructor.toml"
    path.write_text(text)
    (tmp_path / "head.csv").write_text("name,time\n")
    (tmp_path / "when.csv").write_text("student,submitted\nann,\nbob,yesterday\n")
    (tmp_path / "zone.csv").write_text("student,submitted\nann,2026-03-01T10:00:00\n")
    (tmp_path / "same.csv").write_text("student,submitted\nann,\nann,\n")
    (tmp_path / "german.csv").write_text(f'{WORKSHEET}Teilnehmer/in101,Ann,"Sonntag, 1. März 2026, 13:00"\n')
    (tmp_path / "latin.csv").write_bytes("student,submitted\nJörg,\n".encode("latin-1"))
    with pytest.raises(GraderError, match=says) as error:
        read_instructions(path, course)
    assert str(path) in error.value.message


@pytest.mark.parametrize(
    "text",
    ["Sunday, 1 March 2026, 12:30 PM", "Sunday, March 1, 2026, 12:30\u202fPM", "Sunday, 1 March 2026, 12:30"],
)
def test_times_of_moodles_worksheet(course: Course, tmp_path: Path, text: str) -> None:
    """Read times in the zone of ``due``, and find each student by the number in the name of the submission."""
    late = "[late]\ndue = 2026-03-01T12:00:00-05:00\npercent_per_day = 10\n"
    (tmp_path / "instructor.toml").write_text(f'{late}submitted = "worksheet.csv"')
    (tmp_path / "worksheet.csv").write_text(
        f'\ufeff{WORKSHEET}Participant 101,Ann Lee,"{text}"\nParticipant 102,Bob Ray,-\n', encoding="utf-8"
    )
    policy = read_instructions(tmp_path / "instructor.toml", course).policy
    ann, bob = "Ann Lee_101_assignsubmission_file", "Bob Ray_102_assignsubmission_file"
    policy.check_class([ann])
    with pytest.raises(GraderError, match="has no row for 'Bob Ray"):
        policy.check_class([ann, bob])
    made = grade(policy, result("builds", "correct", "safe", student=ann), "ann", {"d/e": 10.0})
    assert policy.times["Participant 101"] == datetime(2026, 3, 1, 17, 30, tzinfo=UTC)
    assert (made.days_late, made.total) == (1, 9)


def test_times_of_groups_in_moodles_worksheet(course: Course, tmp_path: Path) -> None:
    """Find a group's time by its name. The number in the name of its submission can be that of any participant."""
    late = "[late]\ndue = 2026-03-01T12:00:00+00:00\n"
    (tmp_path / "instructor.toml").write_text(f'{late}submitted = "worksheet.csv"')
    (tmp_path / "worksheet.csv").write_text(
        "Identifier,Full name,Group,Last modified (submission)\n"
        'Participant 101,Ann Lee,Team_A,"Sunday, 1 March 2026, 12:30"\n'
        'Participant 102,Bob Ray,Team B,"Sunday, 1 March 2026, 11:30"\n'
    )
    policy = read_instructions(tmp_path / "instructor.toml", course).policy
    late_of = {
        student: grade(policy, result("builds", student=student), "x", {"d/e": 10.0}).days_late
        for student in ("Team A_102_assignsubmission_file", "Team B_101_assignsubmission_file")
    }
    assert list(late_of.values()) == [1, 0]
    before_moodle_4_1, unknown = "Team B-Bob Ray_102_assignsubmission_file_", "Team C_101_assignsubmission_file"
    assert policy.row_of(before_moodle_4_1) == "Participant 102"
    with pytest.raises(GraderError, match="has no row for 'Team C_101_assignsubmission_file'"):
        policy.check_class([before_moodle_4_1, unknown])


def test_points_for_fast_are_earned_on_a_gpu_alone(tmp_path: Path) -> None:
    path, course = tmp_path / "instructor.toml", Course(Path(__file__).parents[2])
    path.write_text("[points.softmax]\ncorrect = 5\nfast = 2\n")
    with pytest.raises(GraderError, match="fast = 2 could not be earned on the simulated GPU") as error:
        read_instructions(path, course)
    assert "--device cuda" in error.value.hint
    policy = read_instructions(path, course, "cuda").policy
    assert policy.maxima({"day02_reductions/softmax": 10.0}) == {"day02_reductions/softmax": 7}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(extra=(Extra("eve", 1),)), "extra 1: there is no submission of student = 'eve'"),
        (Policy(late=Late(submitted="x.csv")), "has no due"),
        (Policy(late=Late(due=DUE)), "has no submitted"),
        (Policy(late=Late(due=DUE, submitted="x.csv"), times={"ann": None}), "has no row for 'bob'"),
    ],
)
def test_a_policy_that_does_not_match_the_class(policy: Policy, says: str) -> None:
    with pytest.raises(GraderError, match=says) as error:
        policy.check_class(["ann", "bob"])
    assert error.value.hint


def test_the_full_name_is_suggested_for_a_name_without_moodles_suffix() -> None:
    names = [*"abcdef", "Eve Poe_12_assignsubmission_file_"]
    with pytest.raises(GraderError) as error:
        Policy(extra=(Extra("Eve Poe", 1),)).check_class(names)
    assert error.value.hint == "Students are named as in grades.csv: 'Eve Poe_12_assignsubmission_file_'."


def test_students_may_be_named_as_grades_csv_shows_them() -> None:
    """In grades.csv, a name that a spreadsheet would read as a formula has an apostrophe before it."""
    late, extra = Late(due=DUE, percent_per_day=50, submitted="x.csv"), (Extra("'=ann", 3),)
    policy = Policy(late=late, extra=extra, times={"'=ann": DUE + timedelta(days=1)})
    policy.check_class(["=ann"])
    made = grade(policy, result("builds", "correct", "safe", student="=ann"), "ann", {"d/e": 10.0})
    assert (made.late, made.extra, made.total) == (5, 3, 8)
    with pytest.raises(GraderError, match='no submission of student = "\'=ann"'):
        policy.check_class(["ann"])


def test_a_policy_that_does_not_match_grades_no_student(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    (tmp_path / "instructor.toml").write_text('[[extra]]\nstudent = "eve"\npoints = 1\n')
    arguments = ["grade", str(hand_in("ann")), "--instructor", str(tmp_path / "instructor.toml")]
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "there is no submission of student = 'eve'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_instructors_points_are_printed(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    (tmp_path / "times.csv").write_text("student,submitted\nann,2026-03-01T13:00:00+00:00\n")
    late = f'{LATE}percent_per_day = 20\nsubmitted = "times.csv"\n'
    (tmp_path / "instructor.toml").write_text(f"[points.twice]\nbuilds = 1\ncorrect = 4\n{late}")
    arguments = ["grade", str(hand_in("ann")), "--instructor", str(tmp_path / "instructor.toml")]
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert "ann: 4 points" in capsys.readouterr().out.splitlines()
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert "ann:" not in capsys.readouterr().out
    assert run([*arguments, "--out", str(tmp_path / "out"), "--regrade-student", "ann"]) == 0
    assert "ann: 4 points" in capsys.readouterr().out.splitlines()


def test_a_submitted_skeleton_is_recognized(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    skeleton = (course.root / "exercises/day01_start/twice.cu").read_text()
    (tmp_path / "instructor.toml").write_text("[points.twice]\nbuilds = 1\ncorrect = 4\n")
    hand_in("ann", 'extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {}\n')
    (course.root / "exercises/day01_start/twice.cu").write_text(
        'extern "C" void twice(const float* x, float* out, int n,\r\n    cudaStream_t stream) {}\r\n'
    )
    folder = hand_in("bob", skeleton + "int begun;\n")
    hand_in("eve")
    present = (course.root / "exercises/day01_start/twice.cu").read_text()
    (folder / "eve/twice.cu").write_bytes(present.encode("utf-16"))
    arguments = [
        "grade",
        str(folder),
        "--instructor",
        str(tmp_path / "instructor.toml"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert run(arguments) == 0
    assert "ann: 0 points" in capsys.readouterr().out.splitlines()
    assert "is the unchanged skeleton" in (tmp_path / "out/ann/feedback.txt").read_text()
    assert "is the unchanged skeleton" in (tmp_path / "out/eve/feedback.txt").read_text()
    assert "skeleton" not in (tmp_path / "out/bob/feedback.txt").read_text()


def test_an_unchanged_skeleton_earns_nothing() -> None:
    policy = Policy(stages={"d/e": {"builds": 4.0, "correct": 6.0}})
    assert grade(policy, result("builds"), "ann", {"d/e": 10.0}).points == {"d/e": 4}
    assert grade(policy, result("builds", unchanged=["d/e"]), "ann", {"d/e": 10.0}).points == {"d/e": 0}


def test_extra_points_are_text_and_no_formula() -> None:
    policy = Policy(extra=(Extra("ann", 2, "a mistake found"), Extra("ann", -1)))
    assert grade(policy, result(), "ann", {"d/e": 10.0}).why == [
        "2 points more: a mistake found",
        "1 point fewer",
    ]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("Zoë Lee_101_assignsubmission_file_", "Zoë Lee"),
        ("doeeve_LATE_12_345_work", "doeeve"),
        ("doeeve_12_345_work-1", "doeeve"),
        ("ann_lee", "ann_lee"),
        ("s_2026_01", "s_2026_01"),
    ],
)
def test_names_of_learning_systems_are_shown_as_the_students_name(folder: str, name: str) -> None:
    assert shown_name(folder) == name


def test_the_example_of_the_instructors_page_is_right(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    example = (root / "grader/classroom/TEACHING.md").read_text().partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "instructor.toml").write_text(example)
    (tmp_path / "times.csv").write_text("student,submitted\nann,\n")
    read = read_instructions(tmp_path / "instructor.toml", Course(root))
    read.policy.check_class(["ann"])
    assert read.policy.maxima({"day02_reductions/softmax": 10.0}) == {"day02_reductions/softmax": 10}
    assert list(read.cases) == ["day02_reductions/softmax"]
