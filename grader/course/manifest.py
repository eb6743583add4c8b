"""``exercises/course.toml``: the days and exercises of the course, in order, with their listed properties.

The classes of this file define its contents. An invalid file raises an error that names the line, the day, the exercise
and the correction.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from grader.setup.errors import GraderError

FILE = "exercises/course.toml"
FORMAT = 1
"""The version of the file's format. It is increased when an older grader would misread the new format."""

KINDS = ("implement", "debug", "optimize")
ALWAYS = ("builds", "correct", "safe")
"""The stages of every exercise. In addition, a task with bars has *efficient*, one with sizes to time has *fast*."""

Difficulty = Literal["easy", "medium", "hard"]
Text = Annotated[str, Meta(min_length=1)]
"""A text that must not be empty."""
Architecture = Annotated[str, Meta(pattern=r"^sm_\d+a?$")]
Stage = Literal["builds", "correct", "safe", "efficient", "fast"]
Stages = tuple[Stage, ...]
Language = Literal["cuda", "python"]
Kind = Literal["implement", "debug", "optimize"]
SUFFIXES: dict[Language, str] = {"cuda": ".cu", "python": ".py"}
"""The suffix of an exercise's files by its language."""
OF_PYTHON: Stages = ("builds", "correct")
"""The stages of every Python exercise."""


class ListedExercise(Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[day.exercise]]`` table: an exercise's listed properties."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$")]
    """The name of the exercise's files and of its variable in tasks.py."""
    title: Text
    kind: Kind
    points: Annotated[int, Meta(ge=1)]
    architecture: Architecture | None = None
    """The oldest GPU architecture that can run the exercise; None: the course's default."""
    stages: Stages | None = None
    """The stages; None: the course's default, or those of every Python exercise."""
    language: Language = "cuda"
    """The language of the exercise's files."""
    difficulty: Difficulty | None = None
    """The difficulty for a learner who has done the days before."""
    minutes: Annotated[int, Meta(ge=1)] | None = None
    """The minutes that a newcomer takes."""
    needs: tuple[Text, ...] | None = None
    """The days and exercises that it builds on: ``day02_reductions``, ``day02_reductions/softmax``."""
    draft: bool = False
    """True for an unfinished exercise. It is listed and can be checked, but has no points in a class."""


class ListedDay(Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[day]]`` table: a day with its exercises."""

    folder: Annotated[str, Meta(pattern=r"^day\d\d_[a-z0-9_]+$")]
    title: Text
    summary: str = ""
    """The day's subject, in a line."""
    exercises: tuple[ListedExercise, ...] = field(default=(), name="exercise")

    @property
    def number(self) -> int:
        """The number of the day: 6 for ``day06_flash_attention``."""
        return int(self.folder[3:5])


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The parsed course.toml."""

    format: int
    title: Text
    architecture: Architecture
    stages: Stages
    days: tuple[ListedDay, ...] = field(default=(), name="day")
    formerly: dict[str, str] = {}
    """Present names of days and exercises by their former names. A former exercise is written with its present day:
    ``day06_x/old = "day06_x/new"``.
    """

    @cached_property
    def former_exercises(self) -> dict[str, str]:
        """Return each former full name of an exercise with its present full name."""
        present = [f"{day.folder}/{exercise.name}" for day in self.days for exercise in day.exercises]
        names = {old: new for old, new in self.formerly.items() if "/" in old}
        names |= {name: name for name in present}
        former_days = [(old, new) for old, new in self.formerly.items() if "/" not in old]
        for old_day, new_day in former_days:
            for name, new in list(names.items()):
                day, _, exercise = name.partition("/")
                if day == new_day:
                    names[f"{old_day}/{exercise}"] = new
        return {old: new for old, new in names.items() if old not in present}


WANTED = {
    "name": "A name has small letters, digits and underscores: it is the name of the exercise's files.",
    "kind": f"The kind of an exercise is one of: {', '.join(KINDS)}.",
    "points": "Points are an integer of at least 1.",
    "architecture": 'Write an architecture as nvcc does: "sm_80", or "sm_90a" for a single generation.',
    "stages": f"List the stages in order: {', '.join(ALWAYS)}, and then efficient and fast if the exercise has them.",
    "language": f"The files of an exercise are in one of: {', '.join(SUFFIXES)}.",
    "difficulty": "The difficulty is easy, medium or hard.",
    "minutes": "The minutes that a newcomer takes are an integer of at least 1.",
    "needs": 'List days and exercises that come before this one: ["day02_reductions", "day02_reductions/softmax"].',
    "draft": "draft = true marks an unfinished exercise, which counts nowhere; remove the line when it is complete.",
    "formerly": 'Write a former name before its current one: old_day = "new_day", "day/old" = "day/new".',
    "folder": "A day's folder is named dayNN_topic, such as day06_flash_attention.",
}
"""The correct form of each key's value, for error messages."""


def read_manifest(root: Path) -> Manifest:
    """Read course.toml. Check that it is consistent and that the files it names exist."""
    path = root / FILE
    if not path.is_file():
        hint = "Run `grader` inside the course folder, or set GRADER_COURSE to it."
        raise GraderError(f"there is no {FILE} in {root}", hint)
    text = _read_text(path)
    manifest = _parsed(path, text)
    for place, key, problem, hint in _contradictions(root, manifest):
        raise _error(path, _loads(path, text), place, key, problem, hint)
    return manifest


def former_names(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings from former to present names: days, exercises. Both are empty if course.toml is invalid.

    The files that course.toml names are not looked up, because each verdict calls this function several times.
    """
    path = root / FILE
    try:
        manifest = _parsed(path, _read_text(path))
    except GraderError:
        return {}, {}
    if any(_wrong_former_names(manifest)):
        return {}, {}
    return {old: new for old, new in manifest.formerly.items() if "/" not in old}, manifest.former_exercises


def read_toml(path: Path) -> dict[str, Any]:
    """Return the data of a TOML file; raise GraderError if it cannot be parsed."""
    return _loads(path, _read_text(path))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GraderError(f"{path} cannot be read: {error}", "The file must be readable and in UTF-8.") from error


def _loads(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GraderError(f"{path} is not TOML: {error}", "Correct that line, or the one before it.") from error


@lru_cache(maxsize=4)
def _parsed(path: Path, text: str) -> Manifest:
    """Parse the text of a course.toml, which takes 5 ms. A verdict of ``grader watch`` asks for it four times."""
    data = _loads(path, text)
    version = data.get("format")
    if version != FORMAT:
        says = "has no key format" if version is None else f"has the format {version!r}"
        raise GraderError(
            f"{path} {says}; this grader reads format {FORMAT}",
            f"If the file is newer than the grader: git pull, then make. Otherwise write format = {FORMAT}.",
        )
    try:
        return msgspec.convert(data, Manifest)
    except msgspec.ValidationError as error:
        raise _error(path, data, *_translated(str(error))) from None


Record = TypeVar("Record")


def read_record(path: Path, kind: type[Record], hint: str) -> Record:
    """Return the data of a TOML file as a record; raise GraderError with the hint if the data does not fit."""
    try:
        return msgspec.convert(read_toml(path), kind)
    except msgspec.ValidationError as error:
        raise GraderError(f"{path}: {error}", hint) from None


Problem = tuple[tuple[int, ...], str, str, str]
"""The indices of the day and of its exercise, the key, the error, and the correction."""


def _contradictions(root: Path, manifest: Manifest) -> Iterator[Problem]:
    """Yield the errors that the parser cannot find: values that contradict each other, and missing files."""
    if not _in_order(manifest.stages):
        yield (), "stages", "the stages are not in order, or one is missing", WANTED["stages"]
    days: set[int] = set()
    earlier: set[str] = set()
    for d, day in enumerate(manifest.days):
        if day.number in days:
            yield (d,), "folder", f"there are two days {day.number}", "Give one of these days another number."
        days.add(day.number)
        needed = [f"lessons/{day.folder}/lesson.ipynb"]
        needed += [f"exercises/{day.folder}/tasks.py"] if day.exercises else []
        for file in needed:
            if not (root / file).is_file():
                yield (
                    (d,),
                    "folder",
                    f"there is no {file}",
                    "Add the file, correct the name, or remove the day.",
                )
        names: set[str] = set()
        for e, exercise in enumerate(day.exercises):
            if exercise.name in names:
                yield (d, e), "name", "the day has two exercises with this name", "Rename one of them."
            names.add(exercise.name)
            if exercise.language == "python" and exercise.stages not in (None, OF_PYTHON):
                yield (d, e), "stages", f"a Python exercise has the stages {', '.join(OF_PYTHON)}", "Remove the line."
            elif exercise.language == "cuda" and exercise.stages is not None and not _in_order(exercise.stages):
                yield (d, e), "stages", "the stages are not in order, or one is missing", WANTED["stages"]
            file = f"{day.folder}/{exercise.name}{SUFFIXES[exercise.language]}"
            # A learner's own file may be missing: `grader reset` restores it. If the solution is missing too, the name
            # is wrong.
            if not any((root / part / file).is_file() for part in ("exercises", "solutions")):
                hint = "Add the file, correct the name, or remove the exercise."
                yield (d, e), "name", f"there is no exercises/{file}", hint
            for need in exercise.needs or ():
                if need not in earlier:
                    yield (d, e), "needs", f"{need!r} does not come before it", WANTED["needs"]
            earlier.add(f"{day.folder}/{exercise.name}")
        earlier.add(day.folder)

    yield from _wrong_former_names(manifest)


def _wrong_former_names(manifest: Manifest) -> Iterator[Problem]:
    """Yield the entries of ``formerly`` whose present name does not exist or whose former name still exists."""
    days = {day.folder for day in manifest.days}
    exercises = {f"{day.folder}/{exercise.name}" for day in manifest.days for exercise in day.exercises}
    for old, new in manifest.formerly.items():
        if old in days | exercises:
            yield (
                (),
                old,
                "this former name is also a present name",
                "Give the exercise or day another name, or remove the line.",
            )
        elif new not in (exercises if "/" in old else days):
            yield (), old, f"{new!r} is not in the course", WANTED["formerly"]
        elif "/" in old and old.partition("/")[0] not in days:
            hint = "Write a former exercise with the present name of its day."
            yield (), old, "this former exercise has a day that is not in the course", hint


def _in_order(stages: Stages) -> bool:
    return stages[:3] == ALWAYS and stages[3:] in ((), ("efficient",), ("fast",), ("efficient", "fast"))


def _translated(error: str) -> Problem:
    """Translate a message of msgspec, such as ``Expected `int`, got `str` - at `$.day[0].exercise[2].points```."""
    message, _, at = error.partition(" - at ")
    place = tuple(int(number) for number in re.findall(r"(?:day|exercise)\[(\d+)\]", at))
    if unknown := re.search(r"unknown field `(.*)`", message):
        known = msgspec.structs.fields((Manifest, ListedDay, ListedExercise)[len(place)])
        return (
            place,
            unknown[1],
            "there is no such key",
            f"The keys are {', '.join(item.encode_name for item in known)}.",
        )
    if missing := re.search(r"missing required field `(.*)`", message):
        return place, missing[1], "this key is missing", WANTED.get(missing[1], "")
    key = (re.findall(r"\.([a-z]+)", at) or [""])[-1]
    return place, key, message.replace("`", ""), WANTED.get(key, "")


def _error(path: Path, data: dict[str, Any], place: tuple[int, ...], key: str, problem: str, hint: str) -> GraderError:
    words = []
    table: Any = data
    for word, name, number in zip(("day", "exercise"), ("folder", "name"), place):
        table = table[word][number]
        called = table.get(name) if isinstance(table, dict) else None
        words.append(f"{word} {number + 1}" + (f" ({called})" if called else ""))
    where = f"{path}:{_line(path.read_text(encoding='utf-8'), place, key)}: {', '.join([*words, key])}"
    return GraderError(f"{where}: {problem}", hint or "CONTRIBUTING.md describes this file.")


def _line(text: str, place: tuple[int, ...], key: str) -> int:
    """Return the line of a key; if the key is missing, the line where its table begins."""
    lines = text.splitlines()
    head = 0
    for number, name in zip(place, ("day", "day.exercise")):
        found = [at for at in range(head, len(lines)) if re.match(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]", lines[at])]
        if number >= len(found):
            return 1  # inline tables have no head line
        head = found[number]
    for at in range(head + len(place[:1]), len(lines)):
        if re.match(r"\s*\[\[" if not place else r"\s*\[", lines[at]):
            break
        if re.match(rf'\s*"?{re.escape(key)}"?\s*=', lines[at]):
            return at + 1
    return head + 1
