"""The instructor's file: what students do not see. TOML, kept outside the course's folder.

seed = 20260321                                   # the same inputs for everybody, and again
exercises = ["day01_residual_add/residual_add"]   # default: those that a submission has

[[case]]                                          # in addition to the exercise's own
exercise = "day01_residual_add/residual_add"
name = "hidden: an odd length"
dims = {n = 4099}
dtypes = ["f32"]                                  # default: all of the exercise
offsets = {x = 1}                                 # elements past alignment, default none
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course import Course
from grader.errors import GraderError

if TYPE_CHECKING:
    from grader.course.task import Exercise


@dataclass(frozen=True)
class Instructions:
    """The file, read and checked."""

    seed: int | None = None
    exercises: tuple[str, ...] = ()
    cases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Hidden cases by exercise."""
    digest: str = ""


_KEYS = {"seed", "exercises", "case"}
_CASE_KEYS = {"exercise", "name", "dims", "dtypes", "offsets"}


def read_instructions(path: Path, course: Course) -> Instructions:
    """Reads the file; every mistake in it is a message."""
    path = path.resolve()
    if path.is_relative_to(course.root.resolve()):
        raise GraderError(f"{path} lies in the course's folder", "Keep it elsewhere: students have that folder.")
    try:
        content = path.read_bytes()
        data = tomllib.loads(content.decode())
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GraderError(f"{path} is not TOML: {error}") from error
    unknown = set(data) - _KEYS
    if unknown:
        raise GraderError(f"{path}: unknown: {', '.join(sorted(unknown))}", f"Known: {', '.join(sorted(_KEYS))}.")
    seed = data.get("seed")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise GraderError(f"{path}: seed = {seed!r} is not a whole number from 0 on")
    exercises = tuple(course.find(str(name)).name for name in data.get("exercises", []))
    cases: dict[str, list[dict[str, Any]]] = {}
    for number, case in enumerate(data.get("case", []), 1):
        where = f"{path}: case {number}"
        if not isinstance(case, dict) or not {"exercise", "name", "dims"} <= set(case) <= _CASE_KEYS:
            raise GraderError(f"{where} needs exercise, name and dims, and may have dtypes and offsets")
        cases.setdefault(course.find(str(case["exercise"])).name, []).append(case)
    return Instructions(seed, exercises, cases, hashlib.sha256(content).hexdigest())


def with_hidden_cases(exercise: Exercise, cases: list[dict[str, Any]]) -> Exercise:
    """The exercise with the hidden cases after its own."""
    import dataclasses

    from grader.course.task import Case

    try:
        hidden = [
            Case(
                str(case["name"]),
                dtypes=tuple(case["dtypes"]) if "dtypes" in case else None,
                offsets=dict(case.get("offsets", {})),
                **case["dims"],
            )
            for case in cases
        ]
        return dataclasses.replace(exercise, cases=[*exercise.cases, *hidden])
    except (TypeError, ValueError) as error:
        raise GraderError(f"a hidden case of {exercise.name} does not fit: {error}") from error
