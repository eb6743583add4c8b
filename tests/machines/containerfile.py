"""A parser of the repository's Containerfile, whose steps are run without docker.

The Containerfile may contain only instructions that this parser supports.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from tests.machines.machine import ROOT

FILE = ROOT / ".devcontainer" / "Containerfile"


class NotUnderstood(Exception):
    """An unsupported line in the Containerfile. Extend this parser, because otherwise the container is not tested."""


@dataclass
class Container:
    """The content of a Containerfile."""

    suite: str = ""
    """The release of Debian."""
    packages: list[str] = field(default_factory=list)
    user: str = ""
    folder: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    """The variables that ARG and ENV set."""
    run: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The commands that the user runs in the course's folder, each with the variables set so far."""
    command: str = ""
    """The command that the container runs when it starts."""


def read(file: Path = FILE) -> Container:
    """Return the steps, or raise NotUnderstood with the line."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE))
    container, made = Container(), ""
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if found := re.fullmatch(r"FROM debian:(\w+)-slim AS machine", line):
            container.suite = found[1]
        elif found := re.fullmatch(
            r"RUN apt-get update && apt-get install --yes --no-install-recommends +([\w.+ -]+)", line
        ):
            container.packages = found[1].split()
        elif found := re.fullmatch(
            r"RUN useradd --create-home --shell /bin/bash (\w+) && install --directory --owner=\1 (/\S+)", line
        ):
            container.user, made = found[1], found[2]
        elif word == "WORKDIR" and rest == made:
            container.folder = rest
        elif line in ("FROM machine", f"COPY --chown={container.user} . .", f"USER {container.user}"):
            pass
        elif (word == "ARG" or word == "ENV") and "=" in rest:
            name, _, value = rest.partition("=")
            container.environment[name] = value
        elif word == "RUN" and container.folder:
            container.run.append((rest, dict(container.environment)))
        elif word == "CMD":
            container.command = shlex.join(json.loads(rest))
        else:
            raise NotUnderstood(f"{file.name}: {line}")
    return container
