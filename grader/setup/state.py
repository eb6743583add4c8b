"""The contents of .venv, and whether they match the course.

`.venv/.installed` records what was installed. It is removed before anything in .venv changes and written when
everything is in place. An interrupted set-up therefore leaves no record, and its .venv is created again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from grader.setup.files import replace_file

PIPS_CHOICE = "pip"  # stands for pip's default build of torch; other values name a build, such as "cpu"


class Environment(NamedTuple):
    """The properties of an installed .venv.

    ``python``: the version of Python, such as "3.12"; ``packages``: the hash of the required packages.
    """

    python: str
    packages: str
    torch: str
    course: str  # programs in .venv/bin contain this path
    interpreter: str  # the target of .venv/bin/python
    built_ahead: bool  # whether `python -m grader.cli.install` has run


class Folder:
    """The course's .venv, with the paths of its files."""

    def __init__(self, course: Path):
        self.course = course.resolve()
        self.path = self.course / ".venv"
        self.python = self.path / "bin" / "python"
        self.log = self.path / "install.log"
        self.scratch = self.path / "tmp"
        self._record = self.path / ".installed"
        self._torch = self.path / ".torch"

    def recorded(self) -> Environment | None:
        """Return the record of the last complete installation, if there is one."""
        try:
            return Environment(**json.loads(self._record.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def record(self, environment: Environment) -> None:
        """Record a complete installation, atomically."""
        replace_file(self._record, f"{json.dumps(environment._asdict(), indent=2)}\n".encode())

    def forget(self) -> None:
        """Remove the record. Until ``record`` is called, the contents of .venv count as unknown."""
        self._record.unlink(missing_ok=True)

    def requested_torch(self) -> str:
        """Return the build of torch requested by the last set-up, even if it was interrupted."""
        try:
            return self._torch.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return PIPS_CHOICE

    def request_torch(self, torch: str) -> None:
        """Save the requested build for later set-ups."""
        self._torch.write_text(torch + "\n", encoding="utf-8")

    def interpreter(self) -> str:
        """Return the target of .venv/bin/python; empty if this user cannot reach it."""
        return os.path.realpath(self.python) if os.path.exists(self.python) else ""


def requirements_hash(course: Path) -> str:
    """Return a hash of the settings that determine the installed packages. It ignores the rest of pyproject.toml."""
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [project.get("build-system"), project.get("project"), project.get("tool", {}).get("setuptools")]
    text = json.dumps(parts, sort_keys=True) + (course / "constraints.txt").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def supported_pythons(course: Path) -> tuple[int, int]:
    """Return the oldest and the newest minor version of Python 3 that pyproject.toml allows."""
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"])
    assert found, "requires-python in pyproject.toml must be a range: >=3.N,<3.M"
    return int(found[1]), int(found[2]) - 1


def running_python() -> str:
    """Return the version of the running Python, such as "3.12"."""
    return "{}.{}".format(*sys.version_info[:2])


class Plan(NamedTuple):
    """The state of .venv and the work to do.

    ``anew``: why .venv must be created from scratch; ``moved_from``: the course's former folder. Both are empty if that
    is not so.
    """

    before: Environment | None
    packages: str
    torch: str
    anew: str
    moved_from: str

    @property
    def installs(self) -> bool:
        """True if packages must be installed."""
        return bool(self.anew) or self.before is None or self.before.packages != self.packages

    @property
    def complete(self) -> bool:
        """True if there is nothing to do."""
        return not self.installs and not self.moved_from and self.before is not None and self.before.built_ahead


def plan(folder: Folder, torch: str = "", this_python: bool = False) -> Plan:
    """Return the plan.

    ``torch``: the build ("": the previous one); ``this_python``: require the running Python version.
    """
    before = folder.recorded()
    torch = torch or folder.requested_torch()
    anew = _why_anew(folder, before, running_python() if this_python else "", torch)
    moved_from = before.course if before and not anew and before.course != str(folder.course) else ""
    return Plan(before, requirements_hash(folder.course), torch, anew, moved_from)


def _why_anew(folder: Folder, recorded: Environment | None, python: str, torch: str) -> str:
    if not folder.path.exists():
        return "the folder does not exist yet"
    if recorded is None:
        return "an earlier set-up was not completed"
    if not folder.interpreter():
        return f"the Python of .venv was removed ({recorded.interpreter})"
    if folder.interpreter() != recorded.interpreter:
        return f"the Python of .venv was replaced: it is {folder.interpreter()}, and was {recorded.interpreter}"
    if python and recorded.python != python:
        return f".venv has Python {recorded.python}, but {python} was requested"
    if recorded.torch != torch:
        return f"the torch in .venv is {build_name(recorded.torch)}, but {build_name(torch)} was requested"
    return ""


def build_name(torch: str) -> str:
    """Describe a build of torch."""
    return "the build that pip chose" if torch == PIPS_CHOICE else f"the build '{torch}'"
