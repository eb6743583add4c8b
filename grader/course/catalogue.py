"""Finds the parts of the course by name: days, exercises, skeletons, solutions, wrong kernels.

What is listed (titles, points, hints) is read from ``tasks.py`` as text, without running it: importing torch takes two
seconds and a list should not. ``Entry.load`` runs the file and gives the whole ``Exercise``.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.errors import GraderError

if TYPE_CHECKING:
    from grader.course.task import Exercise


def course_root(start: Path | None = None) -> Path:
    """The folder that holds ``exercises/``: named by GRADER_COURSE, above the working folder, or around us."""
    named = os.environ.get("GRADER_COURSE")
    if named:
        root = Path(named).resolve()
        if not (root / "exercises").is_dir():
            raise GraderError(f"GRADER_COURSE is {named}, which has no folder exercises/", "Unset it, or correct it.")
        return root
    here = (start or Path.cwd()).resolve()
    for folder in [here, *here.parents]:
        if (folder / "exercises").is_dir() and (folder / "lessons").is_dir():
            return folder
    return Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Entry:
    """One exercise of the course: where its files are and what a list shows of it."""

    root: Path
    day: str
    """The folder: ``day06_flash_attention``."""
    variable: str
    """The name in tasks.py and the file stem: ``flash_attention``."""
    title: str = ""
    kind: str = ""
    points: int = 0
    summary: str = ""
    hints: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """``day06_flash_attention/flash_attention``."""
        return f"{self.day}/{self.variable}"

    @property
    def number(self) -> int:
        """The day's number."""
        match = re.match(r"day(\d+)", self.day)
        return int(match[1]) if match else 0

    @property
    def skeleton(self) -> Path:
        """The file that the learner writes in."""
        return self.root / "exercises" / self.day / f"{self.variable}.cu"

    @property
    def solution(self) -> Path:
        """The course's own answer."""
        return self.root / "solutions" / self.day / f"{self.variable}.cu"

    @property
    def tasks(self) -> Path:
        """The file that describes it."""
        return self.root / "exercises" / self.day / "tasks.py"

    @property
    def wrong_kernels(self) -> Path:
        """The list of mistakes that must fail."""
        return self.root / "tests" / "exercises" / self.day / f"{self.variable}.toml"

    @property
    def designs(self) -> list[Path]:
        """Right kernels of other designs that must pass; ``NAME.wrong_WHAT.cu`` beside them are whole wrong ones."""
        found = (self.root / "tests" / "exercises" / self.day).glob(f"{self.variable}.*.cu")
        return sorted(path for path in found if not path.name.startswith(f"{self.variable}.wrong_"))

    def load(self) -> Exercise:
        """Run tasks.py and give the whole description. Imports torch."""
        module = _tasks_module(self.tasks)
        exercise = getattr(module, self.variable)
        exercise.name = self.name
        return exercise


@dataclass(frozen=True)
class Day:
    """One day: a folder with a lesson and exercises."""

    root: Path
    folder: str
    exercises: tuple[Entry, ...]

    @property
    def number(self) -> int:
        """6 of ``day06_flash_attention``."""
        match = re.match(r"day(\d+)", self.folder)
        return int(match[1]) if match else 0

    @property
    def topic(self) -> str:
        """``Flash attention`` of ``day06_flash_attention``."""
        return self.folder.partition("_")[2].replace("_", " ").capitalize()

    @property
    def lesson(self) -> Path:
        """The notebook."""
        return self.root / "lessons" / self.folder / "lesson.ipynb"


class Course:
    """All days and exercises under one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or course_root()

    @cached_property
    def days(self) -> list[Day]:
        """In order."""
        folders = {
            path.name
            for part in ("lessons", "exercises")
            for path in (self.root / part).glob("day[0-9]*")
            if path.is_dir() and not path.name.startswith(".")
        }
        return [Day(self.root, folder, tuple(_entries(self.root, folder))) for folder in sorted(folders)]

    @property
    def exercises(self) -> list[Entry]:
        """All, in the order in which they are meant to be done."""
        return [entry for day in self.days for entry in day.exercises]

    def find(self, name: str) -> Entry:
        """The exercise that a user means: full name, unique last part, ``6/flash_attention`` or a path to a file."""
        wanted = name.strip().replace("\\", "/").rstrip("/")
        wanted = re.sub(r"\.cu$", "", wanted)
        parts = wanted.split("/")
        tail = parts[-1]
        matches = [entry for entry in self.exercises if entry.name == "/".join(parts[-2:])]
        if not matches and len(parts) == 1:
            matches = [entry for entry in self.exercises if entry.variable == tail]
        if not matches and len(parts) == 2:
            number = re.fullmatch(r"(?:day)?0*(\d+)", parts[0])
            if number:
                matches = [e for e in self.exercises if e.number == int(number[1]) and e.variable == tail]
        if len(matches) == 1:
            return matches[0]
        if matches:
            several = ", ".join(entry.name for entry in matches)
            raise GraderError(f"{name!r} names several exercises: {several}", "Write the whole name.")
        names = [entry.name for entry in self.exercises]
        close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
        short = {entry.variable: entry.name for entry in self.exercises}
        close += [short[v] for v in difflib.get_close_matches(tail, list(short), n=3) if short[v] not in close]
        hint = f"Did you mean {' or '.join(close[:3])}?" if close else "`grader list` shows them all."
        raise GraderError(f"there is no exercise {name!r}", hint)


def find(name: str, root: Path | None = None) -> Entry:
    """The exercise of that name, or a GraderError that suggests near ones."""
    return Course(root).find(name)


def _entries(root: Path, folder: str) -> list[Entry]:
    tasks = root / "exercises" / folder / "tasks.py"
    if not tasks.is_file():
        return []
    try:
        tree = ast.parse(tasks.read_text(encoding="utf-8"), filename=str(tasks))
    except SyntaxError as error:
        raise GraderError(
            f"{tasks}:{error.lineno}: {error.msg}", "The file that describes the day does not parse."
        ) from error
    entries = []
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1):
            continue
        target, call = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(call.func, ast.Name) and call.func.id == "Exercise":
            known: dict[str, Any] = {}
            for keyword in call.keywords:
                if keyword.arg in ("title", "kind", "points", "summary", "hints"):
                    try:
                        known[keyword.arg] = ast.literal_eval(keyword.value)
                    except ValueError:
                        continue
            entries.append(
                Entry(
                    root,
                    folder,
                    target.id,
                    title=known.get("title", target.id),
                    kind=known.get("kind", "implement"),
                    points=known.get("points", 10),
                    summary=" ".join(str(known.get("summary", "")).split()),
                    hints=tuple(known.get("hints", ())),
                )
            )
    return entries


_loaded: dict[Path, tuple[int, Any]] = {}


def _tasks_module(path: Path) -> Any:
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
        raise GraderError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = previous
    _loaded[path] = (changed, module)
    return module
