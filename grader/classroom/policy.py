"""Points of a verdict: partial points by stage, lateness and extra points, from the instructor's file.

    [points."day02_reductions/softmax"]    # partial points; other exercises keep the course's points
    builds = 1
    correct = 5
    safe = 2
    efficient = 2

    [late]
    due = 2026-11-01T23:59:00+01:00        # with its time zone; optional in Gradescope
    grace_minutes = 10
    percent_per_day = 20                   # of the earned points, for each day begun
    days = 5                               # after this many days, nothing counts
    submitted = "times.csv"                # columns student, submitted (ISO 8601); an empty time is on time
                                           # or Moodle's grading worksheet, in English

    [[extra]]
    student = "ann"                        # the name that grades.csv shows
    points = 2                             # or fewer than 0
    why = "found a mistake in the lecture"

All of it is checked before grading starts. Verdicts do not change: grades are computed from them in each run.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec

from grader.classroom.cells import no_formula
from grader.classroom.csv_files import read_csv
from grader.classroom.result import StudentResult
from grader.classroom.submissions import MOODLE, group_in_moodle
from grader.course import Course
from grader.setup.errors import GraderError
from grader.verdict import PASSED, Verdict, words

Points = Annotated[float, msgspec.Meta(ge=0, le=10_000)]
DAY = timedelta(days=1)
PARTICIPANT, GROUP, LAST_MODIFIED = "Identifier", "Group", "Last modified (submission)"
"""Columns of Moodle's grading worksheet. An identifier is "Participant" with the student's number. Only a group
assignment has the second column.
"""
_MOODLE_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%A, %B %d, %Y, %I:%M %p")
"""Moodle's times in English: Sunday, 1 March 2026, 8:15 PM. The last form is that of the United States."""


class Late(msgspec.Struct, forbid_unknown_fields=True):
    """The ``[late]`` table of the instructor's file."""

    due: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    grace_minutes: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0
    percent_per_day: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0
    days: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    submitted: str = ""

    def days_late(self, submitted: datetime, due: datetime) -> int:
        """Return the number of days begun since the due time; 0 within the grace period."""
        if submitted <= due + timedelta(minutes=self.grace_minutes):
            return 0
        return math.ceil((submitted - due) / DAY)

    def taken(self, earned: float, days_late: int) -> float:
        """Return the points deducted for lateness."""
        if self.days is not None and days_late > self.days:
            return earned
        return earned * min(1.0, self.percent_per_day * days_late / 100)


class Extra(msgspec.Struct, forbid_unknown_fields=True):
    """One ``[[extra]]`` of the instructor's file."""

    student: str
    points: Annotated[float, msgspec.Meta(ge=-10_000, le=10_000)]
    why: Annotated[str, msgspec.Meta(max_length=500)] = ""


@dataclass(frozen=True)
class Policy:
    """The checked tables ``[points]``, ``[late]`` and ``[[extra]]``."""

    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    """Points by exercise and stage, for exercises with partial points."""
    late: Late | None = None
    extra: tuple[Extra, ...] = ()
    times: dict[str, datetime | None] = field(default_factory=dict)
    """The time of each student's submission, from the file that ``late.submitted`` names; None: on time.

    In Moodle's grading worksheet, a student is named ``Participant NUMBER``, and a group ``Group NAME``.
    """
    where: str = ""
    """The path of the instructor's file, for messages."""

    @property
    def given(self) -> bool:
        """Return whether the instructor's file has any table about points."""
        return bool(self.stages or self.late or self.extra)

    def check_class(self, students: Iterable[str]) -> None:
        """Check that ``[[extra]]`` and the times match the students' names; raise before grading starts."""
        known = set(students)
        for number, extra in enumerate(self.extra, 1):
            if not any(extra.student in _names(student) for student in known):
                close = [student for student in sorted(known) if student.startswith(extra.student)]
                close = close or difflib.get_close_matches(extra.student, known) or sorted(known)
                raise GraderError(
                    f"{self.where}: extra {number}: there is no submission of student = {extra.student!r}",
                    f"Students are named as in grades.csv: {words.listed(map(repr, close), 3)}.",
                )
        if self.late is None:
            return
        if self.late.due is None or not self.late.submitted:
            raise GraderError(
                f"{self.where}: [late] has no {'due' if self.late.due is None else 'submitted'}",
                "[late] needs both `due`, a date and time with its zone, and `submitted`, a CSV file of times, because "
                "files do not contain their submission time. (Only on Gradescope are both optional.)",
            )
        without = sorted(student for student in known if self.row_of(student) not in self.times)
        if without:
            raise GraderError(
                f"{self.where}: [late] submitted = {self.late.submitted!r} has no row for "
                f"{words.listed(map(repr, without), 3)}",
                "Add a row for each student, named as in grades.csv, which a run without [late] writes. An empty time "
                "means on time.",
            )

    def row_of(self, student: str) -> str:
        """Return the name of a student in ``times``."""
        names = list(_names(student))
        if found := MOODLE.match(student):
            names.append(f"Group {found['name']}")
            groups = [name.removeprefix("Group ") for name in self.times if name.startswith("Group ")]
            # With groups, the number is a participant's only before Moodle 4.1, which wrote GROUP-NAME_NUMBER.
            if found["number"] and (not groups or found["name"].startswith(tuple(f"{group}-" for group in groups))):
                names.append(f"Participant {int(found['number'])}")
        return next((name for name in names if name in self.times), student)

    def maxima(self, points: Mapping[str, float]) -> dict[str, float]:
        """Return the maximum points of each exercise. ``points``: the course's points by exercise."""
        return {name: sum(self.stages[name].values()) if name in self.stages else full for name, full in points.items()}

    def earned(self, verdict: Verdict) -> float:
        """Return the points of one verdict."""
        stages = self.stages.get(verdict.exercise)
        if stages is None:
            return verdict.score
        return sum(stages.get(stage.name, 0.0) for stage in verdict.stages if stage.status == PASSED)


class Grade(msgspec.Struct, kw_only=True):
    """One student's grade, and how it was computed."""

    student: str
    folder: str
    """The folder of the student's results."""
    submission: str
    """The name of the submitted folder or archive."""
    points: dict[str, float]
    """Points by exercise, including partial points."""
    maximum: float
    days_late: int = 0
    late: float = 0.0
    """Points deducted for lateness."""
    extra: float = 0.0
    why: list[str] = []
    """The reasons for extra points."""
    total: float = 0.0
    failed: bool = False
    """True if the grader itself failed for some exercise: there is no grade yet."""

    @property
    def reasons(self) -> list[str]:
        """Return the changes of the earned points, as text."""
        late = f"handed in {words.count(self.days_late, 'day')} late: {0 - self.late:g} points"
        return [*([late] if self.days_late else []), *self.why]


def grade(
    policy: Policy,
    result: StudentResult,
    folder: str,
    maxima: Mapping[str, float],
    handed_in: tuple[datetime, datetime] | None = None,
) -> Grade:
    """Return a student's grade from the stored results. ``handed_in``: the times of submission and due date.

    An unchanged skeleton earns nothing, even where it passes a stage.
    """
    points = {
        verdict.exercise: 0.0 if verdict.exercise in result.unchanged else round(policy.earned(verdict), 2)
        for verdict in result.verdicts
    }
    made = Grade(
        student=result.student,
        folder=folder,
        submission=result.submission,
        points=points,
        maximum=round(sum(maxima.values()), 2),
        failed=result.failed,
    )
    earned = sum(points.values())
    if policy.late is not None:
        time = policy.times.get(policy.row_of(result.student))
        if handed_in is None and time is not None and policy.late.due is not None:
            handed_in = (time, policy.late.due)
        if handed_in is not None:
            made.days_late = policy.late.days_late(*handed_in)
            made.late = round(policy.late.taken(earned, made.days_late), 2)
    mine = [extra for extra in policy.extra if extra.student in _names(result.student)]
    made.extra = round(sum(extra.points for extra in mine), 2)
    made.why = [_reason(extra) for extra in mine]
    made.total = max(0.0, round(earned - made.late + made.extra, 2))
    return made


def _names(student: str) -> tuple[str, str]:
    """Return the names by which the instructor's file may call a student: the submission's, and that of grades.csv."""
    return student, no_formula(student)


def _reason(extra: Extra) -> str:
    """Return an extra as text that does not look like a formula to a spreadsheet."""
    size = abs(extra.points)
    amount = f"{size:g} {'point' if size == 1 else 'points'} {'more' if extra.points >= 0 else 'fewer'}"
    return f"{amount}: {extra.why}" if extra.why else amount


def read_policy(
    points: Mapping[str, Mapping[str, float]],
    late: Late | None,
    extra: Sequence[Extra],
    path: Path,
    course: Course,
    device: str,
) -> Policy:
    """Return the policy from the tables of an instructor's file at ``path``; each error names the key and what to do.

    ``device``: cpu or cuda, where the class is graded.
    """
    stages = dict(_stage_points(given, worth, path, course, device) for given, worth in points.items())
    times = _times(late, path.parent / late.submitted, f"{path}: [late] submitted") if late and late.submitted else {}
    return Policy(stages, late, tuple(extra), times, str(path))


def _stage_points(
    given: str, worth: Mapping[str, float], path: Path, course: Course, device: str
) -> tuple[str, dict[str, float]]:
    where = f'{path}: [points."{given}"]'
    try:
        entry = course.find(given)
    except GraderError as error:
        raise GraderError(f"{where}: {error.message}", error.hint) from error
    for stage in worth:
        if stage not in entry.stages:
            raise GraderError(
                f"{where}: {entry.name} has no stage {stage!r}", f"The stages are {', '.join(entry.stages)}."
            )
        if stage == "fast" and device != "cuda":
            raise GraderError(
                f"{where}: fast = {worth[stage]:g} could not be earned on the simulated GPU",
                "Give the points of the stage fast to other stages, or grade with --device cuda.",
            )
    if not sum(worth.values()):
        raise GraderError(
            f"{where} gives no points", "Give points to a stage, for example: correct = 6, safe = 2, efficient = 2."
        )
    return entry.name, dict(worth)


def _times(late: Late, path: Path, where: str) -> dict[str, datetime | None]:
    hint = "Write a CSV file with the columns student and submitted: ann,2026-11-01T20:15:00+01:00"
    try:
        rows = read_csv(path, hint)
    except GraderError as error:
        raise GraderError(f"{where}: {error.message}", error.hint) from error
    if rows and {PARTICIPANT, LAST_MODIFIED} <= set(rows[0]):
        return _times_of_worksheet(late, rows, f"{where}: {path}")
    if not rows or [cell.strip() for cell in rows[0][:2]] != ["student", "submitted"]:
        raise GraderError(f"{where}: {path} does not begin with the row student,submitted", hint)
    times: dict[str, datetime | None] = {}
    for number, row in enumerate(rows[1:], 2):
        if row:
            times.update([_time(row, f"{where}: {path}, row {number}", hint, times)])
    return times


def _times_of_worksheet(late: Late, rows: Sequence[Sequence[str]], where: str) -> dict[str, datetime | None]:
    """Return the times of Moodle's grading worksheet, which have no zone: they are read in the zone of ``late.due``."""
    if late.due is None:
        raise GraderError(
            f"{where}: times from Moodle need `due`", "Write `due` in the time zone of your Moodle profile."
        )
    times: dict[str, datetime | None] = {}
    participant, column = rows[0].index(PARTICIPANT), rows[0].index(LAST_MODIFIED)
    group = rows[0].index(GROUP) if GROUP in rows[0] else None
    for number, row in enumerate(rows[1:], 2):
        identifier = re.search(r"\d+", row[participant]) if len(row) > max(participant, column, group or 0) else None
        text = " ".join(row[column].split()) if identifier else ""
        if identifier and text not in ("", "-"):  # "-": nothing was submitted
            found = [time for form in _MOODLE_TIMES if (time := _parsed(text, form)) is not None]
            if not found:
                raise GraderError(
                    f"{where}, row {number}: {text!r} is not a time as Moodle writes it in English",
                    "Choose English as the language in Moodle, and download the grading worksheet again.",
                )
            time = times[f"Participant {int(identifier[0])}"] = found[0].replace(tzinfo=late.due.tzinfo)
            if group is not None:
                times[f"Group {group_in_moodle(row[group])}"] = time
    return times


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def _time(row: Sequence[str], where: str, hint: str, before: Mapping[str, Any]) -> tuple[str, datetime | None]:
    student, text = (*row, "")[:2]
    if student in before:
        raise GraderError(f"{where}: {student!r} has a row already", "Keep one row for each student.")
    if not text.strip():
        return student, None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise GraderError(f"{where}: {text!r} is not a date and time", hint) from error
    if time.tzinfo is None:
        raise GraderError(f"{where}: {text!r} has no time zone", hint)
    return student, time
