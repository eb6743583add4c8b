"""What .venv holds, and whether that is what the course wants.

`.venv/.installed` says what was installed. It is removed before anything in .venv changes and written when everything
is in place, so a set-up that was interrupted, at whatever moment and by whatever, leaves none: what such a set-up left is
not believed but made anew.
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

PIPS_CHOICE = "pip"  # the torch that pip takes by itself; else the name of a build, such as "cpu"


class Environment(NamedTuple):
    """What an environment is made of. ``python``: such as "3.12"; ``packages``: a hash of what the course asks for."""

    python: str
    packages: str
    torch: str
    course: str  # scripts in .venv/bin hold this path
    interpreter: str  # the Python that .venv/bin/python leads to
    built_ahead: bool  # whether `python -m grader.cli.install` has run


class Folder:
    """The course's .venv."""

    def __init__(self, course: Path):
        self.course = course.resolve()
        self.path = self.course / ".venv"
        self.python = self.path / "bin" / "python"
        self.log = self.path / "install.log"
        self.scratch = self.path / "tmp"
        self._record = self.path / ".installed"
        self._torch = self.path / ".torch"

    def recorded(self) -> Environment | None:
        """What was installed to its end, if anything was."""
        try:
            return Environment(**json.loads(self._record.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def record(self, environment: Environment) -> None:
        """Says that this is installed. The file appears with all that it says, or not at all."""
        beside = self._record.with_suffix(".new")
        beside.write_text(json.dumps(environment._asdict(), indent=2) + "\n", encoding="utf-8")
        beside.replace(self._record)

    def forget(self) -> None:
        """From now on, until ``record``, nothing in .venv is to be believed."""
        self._record.unlink(missing_ok=True)

    def torch_wished(self) -> str:
        """The build of torch that the last set-up was to install, whether or not it came to its end."""
        try:
            return self._torch.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return PIPS_CHOICE

    def wish_for_torch(self, torch: str) -> None:
        """Keeps this choice for later set-ups."""
        self._torch.write_text(torch + "\n", encoding="utf-8")

    def interpreter(self) -> str:
        """The Python that .venv/bin/python leads to; empty where it leads to none that this user can reach."""
        return os.path.realpath(self.python) if os.path.exists(self.python) else ""


def packages_wanted(course: Path) -> str:
    """A hash of what decides which packages are installed: other settings in pyproject.toml may change freely."""
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [project.get("build-system"), project.get("project"), project.get("tool", {}).get("setuptools")]
    text = json.dumps(parts, sort_keys=True) + (course / "constraints.txt").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def supported_pythons(course: Path) -> tuple[int, int]:
    """The oldest and the newest minor version of Python 3 for which pyproject.toml allows the course."""
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"])
    assert found, "requires-python in pyproject.toml names a range"
    return int(found[1]), int(found[2]) - 1


def running_python() -> str:
    """The version of the Python that runs this, such as "3.12"."""
    return "{}.{}".format(*sys.version_info[:2])


class Plan(NamedTuple):
    """What is there and what is to be done. ``anew``: why .venv must be made from nothing, empty where it need not be."""

    before: Environment | None
    packages: str
    torch: str
    anew: str

    @property
    def installs(self) -> bool:
        """Whether packages are to be installed."""
        return bool(self.anew) or self.before is None or self.before.packages != self.packages

    @property
    def complete(self) -> bool:
        """Whether there is nothing to do."""
        return not self.installs and self.before is not None and self.before.built_ahead


def plan(folder: Folder, torch: str = "", this_python: bool = False) -> Plan:
    """What is to be done for a build of torch ("": as before) with the Python that runs this, or with any."""
    before = folder.recorded()
    torch = torch or folder.torch_wished()
    anew = _why_anew(folder, before, running_python() if this_python else "", torch)
    return Plan(before, packages_wanted(folder.course), torch, anew)


def _why_anew(folder: Folder, recorded: Environment | None, python: str, torch: str) -> str:
    if not folder.path.exists():
        return "there is none yet"
    if recorded is None:
        return "an earlier set-up did not come to its end"
    if not folder.interpreter():
        return f"its Python is gone ({recorded.interpreter})"
    if folder.interpreter() != recorded.interpreter:
        return f"its Python is another one now ({folder.interpreter()}, before {recorded.interpreter})"
    if python and recorded.python != python:
        return f"it has Python {recorded.python}, and you want {python}"
    if recorded.course != str(folder.course):
        return f"the course was moved here from {recorded.course}"
    if recorded.torch != torch:
        return f"its torch is {build_name(recorded.torch)}, and you want {build_name(torch)}"
    return ""


def build_name(torch: str) -> str:
    """A build of torch in words."""
    return "the one that pip chose" if torch == PIPS_CHOICE else f"the build '{torch}'"
