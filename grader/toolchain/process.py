"""Running a compiler: one place, so that a jail can take it over."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from grader.errors import GraderError

# Messages are read, so they must be in one language.
ENGLISH = {"LC_ALL": "C", "LANGUAGE": "C"}

_TIME_LIMIT = 120.0
_OUTPUT_LIMIT = 256 * 1024


@dataclass(frozen=True)
class Command:
    """A compiler call: it writes in ``folder`` only, and reads ``reads`` besides the system's files."""

    argv: tuple[str, ...]
    folder: Path
    reads: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Finished:
    """How a command ended: its status, all that it printed, and the seconds it took."""

    returncode: int
    output: str
    seconds: float = field(default=0.0, compare=False)


RunCommand = Callable[[Command], Finished]


def run_command(command: Command) -> Finished:
    """Runs a command with the user's own rights."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            command.argv,
            cwd=command.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIME_LIMIT,
            check=False,
            env={**os.environ, **ENGLISH},
        )
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"{Path(command.argv[0]).name} was stopped: it compiled for {_TIME_LIMIT:.0f} s without an end",
            "Look for templates or loops that unroll without end.",
        ) from None
    except OSError as problem:
        raise GraderError(f"{command.argv[0]} cannot be started: {problem.strerror}") from None
    output = done.stdout[:_OUTPUT_LIMIT].decode(errors="replace")
    return Finished(done.returncode, output, time.monotonic() - began)
