"""``tests/exercises/dayNN_topic/name.toml``: the wrong kernels of an exercise, and how its skeleton fails."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from grader.course import Entry
from grader.course.manifest import Stage, read_record
from grader.frontend import course_headers
from grader.setup.errors import GraderError

Stages = Stage | tuple[Stage, ...]
"""The stage at which a kernel must fail. Several stages if the result depends on timing: a race may or may not corrupt
the output."""


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """The stage at which a skeleton must fail, and the text that a learner must then see."""

    says: str
    stage: Stages = "correct"

    @property
    def stages(self) -> tuple[str, ...]:
        """The stage or stages as a tuple."""
        return (self.stage,) if isinstance(self.stage, str) else self.stage


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """A replacement of a text in a kernel file, or its removal."""

    find: str
    replace: str = ""
    count: int = 1
    """The number of occurrences of ``find``."""


class Variant(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kernel: the solution, the skeleton or another file, with changes. Such a file may need no change.

    The changed text may also be in a header of the course that the solution includes: the header's text is then pasted
    into the file, as if the learner had written it there.
    """

    name: str
    base: str = "solution"
    """``solution``, ``skeleton``, or the path of a file, relative to the folder of the list of mistakes."""
    find: str = ""
    replace: str = ""
    count: int = 1
    also: tuple[Change, ...] = ()
    """Further changes, made after the first."""

    def path(self, entry: Entry) -> Path:
        """Return the path of the file to which the changes are made."""
        named = {"solution": entry.solution, "skeleton": entry.skeleton}
        return named.get(self.base) or entry.wrong_kernels.parent / self.base

    def text(self, entry: Entry) -> str:
        """Return the text of the whole kernel."""
        path = self.path(entry)
        text = path.read_text(encoding="utf-8")
        if not self.find and path not in (entry.solution, entry.skeleton):
            return _with_launchers(text, entry)
        where = f"the {self.base}" if path in (entry.solution, entry.skeleton) else self.base
        for change in (Change(self.find, self.replace, self.count), *self.also):
            if change.find not in text:
                text = _with_headers_pasted(text)
            found = text.count(change.find) if change.find else 0
            if found != change.count:
                raise GraderError(f"{change.find!r} occurs {found} times in {where}, not {change.count}")
            text = text.replace(change.find, change.replace)
        return _with_launchers(text, entry)


class Mistake(Variant, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A wrong kernel, the stage at which it must fail, and the text that a learner must then see."""

    stage: Stages = "correct"
    says: str
    case: str = ""
    """The only case that the tests run, because it catches the mistake. Empty if ``says`` names that case."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stage or stages as a tuple."""
        return (self.stage,) if isinstance(self.stage, str) else self.stage


_LAUNCHER = re.compile(r'^extern "C" void (\w+)\([^{}]*\) \{(?:[^\n]*\}|.*?^\})\n', re.MULTILINE | re.DOTALL)


def _with_launchers(text: str, entry: Entry) -> str:
    """Return a kernel file, followed by the solution's launchers that it lacks."""
    missing = [found[0] for found in _LAUNCHER.finditer(entry.solution_text()) if f" {found[1]}(" not in text]
    return "\n".join([text, *missing])


_OWN_INCLUDE = re.compile(r'^#include "(llmk/\w+\.cuh)"\n', re.MULTILINE)


def _with_headers_pasted(text: str) -> str:
    """Return a kernel file with each included header pasted once, without the ``#include`` lines."""
    pasted: set[str] = set()

    def paste(include: re.Match[str]) -> str:
        if include[1] in pasted:
            return ""
        pasted.add(include[1])
        header = (course_headers.FOLDER.parent / include[1]).read_text(encoding="utf-8")
        return _OWN_INCLUDE.sub(paste, header.replace("#pragma once\n", ""))

    return _OWN_INCLUDE.sub(paste, text)


class Mistakes(Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file."""

    wrong: tuple[Mistake, ...] = ()
    design: tuple[Variant, ...] = ()
    """Correct kernels of other designs that are a small change of another file."""
    skeleton: Failure | None = None
    """The way in which the skeleton of a *debug* or *optimize* exercise fails."""


def read_mistakes(entry: Entry) -> Mistakes:
    """Return the mistakes of an exercise; empty if the file does not exist yet."""
    path = entry.wrong_kernels
    return read_record(path, Mistakes, "CONTRIBUTING.md describes this file.") if path.is_file() else Mistakes()


def other_designs(entry: Entry) -> dict[str, str]:
    """Return the texts of the correct kernels of other designs, by name: whole files, and changes of other files."""
    whole = {path.name: _with_launchers(path.read_text(encoding="utf-8"), entry) for path in entry.designs}
    return whole | {design.name: design.text(entry) for design in read_mistakes(entry).design}


def add_mistakes(entry: Entry, mistakes: Sequence[Mistake]) -> None:
    """Append mistakes to the list of an exercise. Existing mistakes and comments stay unchanged.

    Raises:
        GraderError: the list cannot be written, or a mistake's text cannot be written as TOML.
    """
    path = entry.wrong_kernels
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    text = "\n\n".join([before.rstrip("\n"), *map(_as_toml, mistakes)]).lstrip("\n") + "\n"
    try:
        msgspec.convert(tomllib.loads(text), Mistakes)
        path.write_text(text, encoding="utf-8")
    except (tomllib.TOMLDecodeError, OSError) as error:
        raise GraderError(f"cannot write {path}: {error}", "Add the mistakes to the file by hand.") from error


def _as_toml(mistake: Mistake) -> str:
    """Return a mistake as a table of the list."""
    lines = ["[[wrong]]", f"name = {toml_text(mistake.name)}"]
    lines += [f"find = '''{mistake.find}'''"]
    if mistake.replace:
        lines += [f"replace = '''{mistake.replace}'''"]
    if mistake.stage != "correct":
        lines += [f"stage = {json.dumps(mistake.stage)}"]
    return "\n".join([*lines, f"says = {toml_text(mistake.says)}"])


def toml_text(value: str) -> str:
    """Return a string as TOML."""
    return json.dumps(value, ensure_ascii=False)
