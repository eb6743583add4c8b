"""The instructor's file, hidden from students: TOML, outside the course's folder.

seed = 20260321                                   # the same inputs for everybody, in every run
exercises = ["day01_residual_add/residual_add"]   # default: those that a submission has

[[case]]                                          # in addition to the exercise's own
exercise = "day01_residual_add/residual_add"
name = "hidden: an odd length"
dims = {n = 4099}
dtypes = ["f32"]                                  # default: all of the exercise
offsets = {x = 1}                                 # elements past alignment, default none

It also contains points, lateness and extra points: ``policy.py``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from grader.classroom.policy import Extra, Late, Points, Policy, read_policy
from grader.course import Course
from grader.course.manifest import read_toml
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from grader.course.task import Case, Exercise


@dataclass(frozen=True)
class Instructions:
    """The parsed and checked file."""

    seed: int | None = None
    exercises: tuple[str, ...] = ()
    cases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Hidden cases by exercise."""
    digest: str = ""
    """A hash of all settings that determine verdicts. Points are not among them."""
    policy: Policy = field(default_factory=Policy)


class _HiddenCase(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One ``[[case]]`` of the file."""

    exercise: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    dims: dict[str, bool | int | float]
    operations: str | None = None
    """The operations of a Python exercise."""
    dtypes: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    offsets: dict[str, Annotated[int, msgspec.Meta(ge=0, le=1 << 20)]] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    exercises: list[str] = []
    case: list[_HiddenCase] = []
    points: dict[str, dict[str, Points]] = {}
    late: Late | None = None
    extra: list[Extra] = []


def read_instructions(path: Path, course: Course, device: str = "cpu") -> Instructions:
    """Read the instructor's file; report every mistake in it. ``device``: cpu or cuda, where the class is graded."""
    path = path.resolve()
    if path.is_relative_to(course.root.resolve()):
        raise GraderError(
            f"{path} is inside the course's folder",
            "Move the instructor's file elsewhere: students have the course's folder.",
        )
    data = read_toml(path)
    try:
        file = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        zone = "A date and time needs its zone: 2026-11-01T23:59:00+01:00." if "`datetime" in str(error) else ""
        raise GraderError(f"{path}: {_in_points(data) or error}", zone) from error
    exercises = tuple(course.find(name).name for name in file.exercises)
    if drafts := {entry.name for entry in course.drafts} & set(exercises):
        raise GraderError(f"{path}: {min(drafts)} is a draft", "Take `draft = true` out of course.toml first.")
    cases: dict[str, list[dict[str, Any]]] = {}
    for hidden_case in file.case:
        cases.setdefault(course.find(hidden_case.exercise).name, []).append(msgspec.to_builtins(hidden_case))
    for name, hidden in cases.items():  # raise before grading starts
        exercise = course.find(name).load()
        try:
            exercise = with_hidden_cases(exercise, hidden)
        except GraderError as error:
            raise GraderError(f"{path}: {error.message}", error.hint) from error
        for case in exercise.cases[-len(hidden) :]:
            for dtype in case.dtypes or exercise.dtypes:
                _try(exercise, case, dtype, f"{path}: the case {case.name!r} of {name}")
    digest = hashlib.sha256(json.dumps([file.seed, exercises, cases]).encode()).hexdigest()
    policy = read_policy(file.points, file.late, file.extra, path, course, device)
    return Instructions(file.seed, exercises, cases, digest, policy)


def _in_points(data: dict[str, Any]) -> str:
    """Return the error in a table of points with its name, which msgspec's message for the whole file omits."""
    tables = data.get("points", {})
    for name, table in tables.items() if isinstance(tables, dict) else ():
        try:
            msgspec.convert(table, dict[str, Points])
        except msgspec.ValidationError as error:
            return f'[points."{name}"]: {error}'
    return ""


def _try(exercise: Exercise, case: Case, dtype: str, where: str) -> None:
    """Check that the inputs of a case can be drawn: draw them once."""
    if dtype not in exercise.dtypes:
        raise GraderError(f"{where}: {dtype} is not one of its dtypes: {', '.join(exercise.dtypes)}")
    try:
        exercise.call(case, dtype, 1)
    except GraderError:
        raise
    except Exception as error:
        raise GraderError(f"{where} cannot be drawn: {type(error).__name__}: {error}") from error


def with_hidden_cases(exercise: Exercise, cases: list[dict[str, Any]]) -> Exercise:
    """Return the exercise's task with the hidden cases appended to its own cases."""
    import dataclasses

    from grader.course.python_task import OPERATIONS
    from grader.course.task import Case

    try:
        hidden = [
            Case(
                str(case["name"]),
                dtypes=tuple(case["dtypes"]) if "dtypes" in case else None,
                offsets=dict(case.get("offsets", {})),
                **{key: case[key] for key in (OPERATIONS,) if key in case},
                **case["dims"],
            )
            for case in cases
        ]
        return dataclasses.replace(exercise, cases=[*exercise.cases, *hidden])
    except (TypeError, ValueError) as error:
        raise GraderError(f"a hidden case of {exercise.name} is invalid: {error}") from error
