"""Finds the parts of the course by name: days, exercises, skeletons, solutions, wrong kernels.

Titles, kinds, points and similar properties come from ``exercises/course.toml``. Reading it runs no code and so imports
no torch, which takes two seconds. ``Entry.load`` runs the day's ``tasks.py`` and returns the whole ``Exercise``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.util
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import structs

from grader.course.manifest import (
    FILE,
    OF_PYTHON,
    SUFFIXES,
    Language,
    ListedDay,
    Manifest,
    read_manifest,
    read_toml,
)
from grader.setup import shipped
from grader.setup.errors import GraderError
from grader.setup.interrupts import interrupts_delayed

if TYPE_CHECKING:
    from grader.course.task import Exercise


def course_root(start: Path | None = None) -> Path:
    """Return the folder that holds ``exercises/course.toml``.

    The variable GRADER_COURSE names it, or it is the working folder or a folder above it, or the clone with this file.

    A course inside an installed package is read-only: ``grader init`` copies it.
    """
    named = os.environ.get("GRADER_COURSE")
    if named:
        root = Path(named).resolve()
        if not (root / FILE).is_file():
            raise GraderError(f"GRADER_COURSE is {named}, which has no {FILE}", "Unset GRADER_COURSE, or correct it.")
        return root
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder
    if shipped.IN_WHEEL:
        raise GraderError(
            f"there is no course in {here} or above it",
            "`grader init FOLDER` copies the course; run the command in that folder, or set GRADER_COURSE to it.",
        )
    return shipped.COURSE


@dataclass(frozen=True)
class Entry:
    """An exercise of the course: its files and its listed properties."""

    root: Path
    day: str
    """The day's folder: ``day06_flash_attention``."""
    variable: str
    """The name in tasks.py and the file stem: ``flash_attention``."""
    number: int = 0
    """The number of the day."""
    title: str = ""
    kind: str = "implement"
    points: int = 0
    architecture: str = "sm_80"
    """The oldest GPU architecture that can run the exercise."""
    stages: tuple[str, ...] = ()
    difficulty: str = ""
    """Easy, medium or hard; empty if course.toml has no difficulty."""
    minutes: int = 0
    """The minutes that a newcomer takes; 0 if course.toml has no number."""
    needs: tuple[str, ...] = ()
    """The full names of the days and exercises that it builds on."""
    draft: bool = False
    """True for an unfinished exercise. It is listed and can be checked, but has no points in a class."""
    language: Language = "cuda"

    @property
    def name(self) -> str:
        """The full name: ``day06_flash_attention/flash_attention``."""
        return f"{self.day}/{self.variable}"

    @property
    def file_name(self) -> str:
        """The name of the learner's file and of the solution: ``flash_attention.cu``."""
        return f"{self.variable}{SUFFIXES[self.language]}"

    @property
    def skeleton(self) -> Path:
        """The file that the learner edits."""
        return self.root / "exercises" / self.day / self.file_name

    @property
    def solution(self) -> Path:
        """The course's solution."""
        return self.root / "solutions" / self.day / self.file_name

    @property
    def tasks(self) -> Path:
        """The path of the tasks.py that describes it."""
        return self.root / "exercises" / self.day / "tasks.py"

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints: a nudge, the idea, nearly the code."""
        path = self.tasks.with_name("hints.toml")
        return _hints(path, path.stat().st_mtime_ns).get(self.variable, ()) if path.is_file() else ()

    @property
    def wrong_kernels(self) -> Path:
        """The path of the list of wrong kernels, which must fail."""
        return self.root / "tests" / "exercises" / self.day / f"{self.variable}.toml"

    @property
    def designs(self) -> list[Path]:
        """The correct kernels with another design than the solution: ``NAME.DESIGN.cu``, not ``NAME.wrong_WHAT.cu``."""
        found = (self.root / "tests" / "exercises" / self.day).glob(f"{self.variable}.*{SUFFIXES[self.language]}")
        return sorted(path for path in found if not path.name.startswith(f"{self.variable}.wrong_"))

    def solution_text(self) -> str:
        """Return the text of the course's solution."""
        try:
            return self.solution.read_text(encoding="utf-8")
        except OSError as error:
            raise GraderError(f"cannot read {self.solution}: {error.strerror}") from error

    def module(self) -> ModuleType:
        """Return the day's tasks.py as a module. Imports torch."""
        return _tasks_module(self.tasks)

    def load(self) -> Exercise:
        """Run tasks.py and return the whole description. Imports torch."""
        import numpy  # noqa: F401  (before torch, which ignores a Ctrl-C during its own import of NumPy)

        with interrupts_delayed():  # on Ctrl-C, torch's C++ code would end the process with an error of its own
            import torch  # noqa: F401

        from grader.course.task import Exercise

        exercise = getattr(self.module(), self.variable, None)
        if not isinstance(exercise, Exercise):
            raise GraderError(
                f"{self.tasks} has no Exercise {self.variable!r}", f"{FILE} lists {self.name}: describe it there."
            )
        if exercise.title or exercise.kind or exercise.points:
            raise GraderError(
                f"{self.tasks} gives {self.variable} a title, kind or points",
                f"Write title, kind and points in {FILE} only.",
            )
        listed = ("name", "title", "kind", "points", "architecture", "difficulty", "minutes", "needs")
        return dataclasses.replace(exercise, **{field: getattr(self, field) for field in listed})


@dataclass(frozen=True)
class Day:
    """A day: a folder with a lesson and exercises."""

    root: Path
    folder: str
    number: int
    title: str
    summary: str
    exercises: tuple[Entry, ...]
    drafts: tuple[Entry, ...] = ()
    """The day's exercises that are not complete yet."""

    @property
    def lesson(self) -> Path:
        """The lesson's notebook."""
        return self.root / "lessons" / self.folder / "lesson.ipynb"


class Course:
    """All days and exercises under one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or course_root()

    @cached_property
    def manifest(self) -> Manifest:
        """The parsed course.toml."""
        return read_manifest(self.root)

    @cached_property
    def days(self) -> list[Day]:
        """The days, in order."""
        return [self._day(day) for day in self.manifest.days]

    def _day(self, listed: ListedDay) -> Day:
        entries = list(self._entries(listed))
        exercises = tuple(entry for entry in entries if not entry.draft)
        drafts = tuple(entry for entry in entries if entry.draft)
        return Day(self.root, listed.folder, listed.number, listed.title, listed.summary, exercises, drafts)

    def _entries(self, day: ListedDay) -> Iterator[Entry]:
        """Yield a day's exercises, with the defaults at the head of course.toml."""
        head = self.manifest
        for exercise in day.exercises:
            stages = head.stages if exercise.language == "cuda" else OF_PYTHON
            listed: dict[str, Any] = {"architecture": head.architecture, "stages": stages}
            listed |= {name: value for name, value in structs.asdict(exercise).items() if value is not None}
            yield Entry(self.root, day.folder, listed.pop("name"), day.number, **listed)

    @property
    def exercises(self) -> list[Entry]:
        """All exercises, in the order of the course, without drafts."""
        return [entry for day in self.days for entry in day.exercises]

    @property
    def drafts(self) -> list[Entry]:
        """The course's exercises that are not complete yet."""
        return [entry for day in self.days for entry in day.drafts]

    @cached_property
    def _present_names(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in [*self.exercises, *self.drafts]}

    @cached_property
    def former_names(self) -> dict[str, Entry]:
        """Return each former full name with its exercise: the exercise or its day was renamed."""
        return {old: self._present_names[new] for old, new in self.manifest.former_exercises.items()}

    def find(self, name: str) -> Entry:
        """Return the exercise for a full name, a unique last part, ``6/flash_attention`` or a path to its file.

        Drafts are found, too. Former names are accepted as well, if no current one matches.
        """
        parts = _parts(name)
        wanted, tail = "/".join(parts), parts[-1]
        matches = _matching(parts, self._present_names) or _matching(parts, self.former_names)
        if len(matches) == 1:
            return matches[0]
        if matches:
            several = ", ".join(entry.name for entry in matches)
            raise GraderError(f"{name!r} names several exercises: {several}", "Write the full name.")
        day = self.find_day(name)
        if day and (of_day := [entry.variable for entry in self.exercises if entry.day == day.folder]):
            raise GraderError(f"{name!r} is a day, not an exercise", f"Name one of its exercises: {', '.join(of_day)}.")
        names = [entry.name for entry in self.exercises]
        short = {entry.variable: entry.name for entry in self.exercises}
        close = [short[variable] for variable in difflib.get_close_matches(tail, list(short), n=3)]
        close += [other for other in difflib.get_close_matches(wanted, names, n=3, cutoff=0.5) if other not in close]
        hint = f"Did you mean {' or '.join(close[:3])}?" if close else "`grader list` shows them all."
        raise GraderError(f"there is no exercise {name!r}", hint)

    def find_day(self, name: str) -> Day | None:
        """Return the day for its folder, a former folder, or a number such as ``6``, ``06`` or ``day6``."""
        folder = name.rstrip("/")
        folder, number = self.manifest.formerly.get(folder, folder), _day_number(folder)
        return next((day for day in self.days if folder == day.folder or number == day.number), None)

    def is_former(self, name: str) -> bool:
        """Return whether a name is only a former name of an exercise."""
        parts = _parts(name)
        return not _matching(parts, self._present_names) and bool(_matching(parts, self.former_names))


def _parts(name: str) -> list[str]:
    """Split a name or path at slashes, without the suffix of an exercise's file."""
    return re.sub(r"\.(cu|py)$", "", name.strip().replace("\\", "/").rstrip("/")).split("/")


def _matching(parts: list[str], names: Mapping[str, Entry]) -> list[Entry]:
    """Return the exercises whose full name in ``names`` matches the parts of a name or path."""
    full, tail = "/".join(parts[-2:]), parts[-1]
    if full in names:
        return [names[full]]
    found: list[Entry] = []
    if len(parts) == 1:
        found = [entry for name, entry in names.items() if name.partition("/")[2] == tail]
    elif len(parts) == 2 and (day := _day_number(parts[0])) is not None:
        found = [entry for name, entry in names.items() if entry.number == day and name.partition("/")[2] == tail]
    return list({entry.name: entry for entry in found}.values())


def _day_number(text: str) -> int | None:
    """Return the number of a day that is written ``6``, ``06`` or ``day6``."""
    number = re.fullmatch(r"(?:day)?0*(\d+)", text)
    return int(number[1]) if number else None


def find(name: str, root: Path | None = None) -> Entry:
    """Return the exercise with that name; raise a GraderError that suggests similar names."""
    return Course(root).find(name)


def file_to_grade(exercise: Entry | Exercise, file: str | Path | None) -> Path:
    """Return the path of the file to grade or time, by default the learner's; raise GraderError if there is none."""
    if file is not None:
        path, hint = Path(file), "Check the path. The option --file names the kernel file."
    elif isinstance(exercise, Entry):
        path, hint = exercise.skeleton, f"`grader reset {exercise.name}` writes the skeleton there."
    else:
        raise GraderError("no file was given", "Name the kernel file with --file.")
    try:
        if path.is_dir():
            raise GraderError(f"{path} is a folder, not a kernel file", hint)
        if not path.is_file():
            raise GraderError(f"there is no file {path}", hint)
        path.open("rb").close()
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}", hint) from error
    return path


@functools.lru_cache(maxsize=64)
def _hints(path: Path, changed: int) -> dict[str, tuple[str, ...]]:
    """Return the hints of a day by exercise.

    ``changed``: the file's modification time in nanoseconds, so that the cache misses after a change.
    """
    found = {}
    for name, hints in read_toml(path).items():
        if not isinstance(hints, list) or not all(isinstance(hint, str) for hint in hints):
            raise GraderError(f"{path}: {name} is not a list of strings", "Write the hints as a list of strings.")
        found[name] = tuple(_hint_blocks(hint) for hint in hints)
    return found


def _hint_blocks(text: str) -> str:
    """Join the lines of each paragraph. Keep the lines of blocks that are indented by four spaces, which are code."""
    blocks = re.split(r"\n(?:[ \t]*\n)+", textwrap.dedent(text).strip("\n").rstrip())
    return "\n\n".join(
        block if all(line.startswith("    ") for line in block.splitlines()) else " ".join(block.split())
        for block in blocks
    )


def tasks_of_day(file: str, folder: str) -> ModuleType:
    """Return another day's tasks.py as a module, for a tasks.py ``file`` with variants of its exercises."""
    return _tasks_module(Path(file).resolve().parent.with_name(folder) / "tasks.py")


_loaded: dict[Path, tuple[int, ModuleType]] = {}


def _tasks_module(path: Path) -> ModuleType:
    """Run a tasks.py once for each version of the file."""
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError as error:
        raise GraderError(f"{path} is missing", "Each day of exercises needs a tasks.py.") from error
    if path in _loaded and _loaded[path][0] == changed:
        return _loaded[path][1]
    name = f"_grader_tasks_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    previous, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except GraderError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else 1
        raise GraderError(
            f"{path}:{line}: {type(error).__name__}: {error}", "Correct the description of the day's exercises."
        ) from error
    finally:
        sys.dont_write_bytecode = previous
    _loaded[path] = (changed, module)
    return module
