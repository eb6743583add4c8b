"""Running a compiler: one place, so that a sandbox can replace it and a signal can stop it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from grader.setup.errors import GraderError

# Messages are parsed, so their language is fixed.
ENGLISH = {"LC_ALL": "C", "LANGUAGE": "C"}

_TIME_LIMIT = 120.0
_OUTPUT_LIMIT = 256 * 1024


@dataclass(frozen=True)
class Command:
    """A compiler call: it writes in ``folder`` only, and reads ``reads`` besides the system's files.

    ``pipes`` are its standard input (``stdin``) and output (``stdout``) if they connect to another process; this
    process closes them once the compiler has them.
    """

    argv: tuple[str, ...]
    folder: Path
    reads: tuple[Path, ...] = ()
    pipes: Mapping[str, IO[bytes]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Finished:
    """The result of a command: its status, its output, and the seconds it took."""

    returncode: int
    output: str
    seconds: float = field(default=0.0, compare=False)


RunCommand = Callable[[Command], Finished]


_running: set[subprocess.Popen[bytes]] = set()


@contextlib.contextmanager
def started(
    argv: Sequence[str], pipes: Mapping[str, IO[bytes]] = MappingProxyType({}), **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a compiler during the block. Leaving the block or ``stop_all`` ends it; the latter raises a GraderError."""
    options = {"stdin": subprocess.DEVNULL, **options, **pipes}
    process = subprocess.Popen(argv, start_new_session=True, **options)
    for pipe in pipes.values():
        pipe.close()
    _running.add(process)
    try:
        yield process
    except BaseException:
        _end(process)
        process.wait()
        raise
    finally:
        stopped = process not in _running
        _running.discard(process)
    if stopped:
        raise GraderError(f"{Path(argv[0]).name} was stopped")


def stop_all() -> None:
    """Stop all compilers that threads of this process wait for, and their children."""
    while _running:
        with contextlib.suppress(KeyError):
            _end(_running.pop())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a compiler and its children: the driver starts the actual compiler in the same session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def status_when_ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Return a process's status as soon as it ends, or raise TimeoutExpired. ``Popen.wait`` polls 20 times a second."""
    try:
        ended = os.pidfd_open(process.pid)
    except (OSError, AttributeError):  # missing in the system or in Python: conda builds for old kernels
        return process.wait(seconds)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(ended)
    return process.wait(0)


def run_command(command: Command) -> Finished:
    """Run a command with the user's own rights."""
    began = time.monotonic()
    try:
        with started(
            command.argv,
            command.pipes,
            cwd=command.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if command.pipes else subprocess.STDOUT,
            env={**os.environ, **ENGLISH},
        ) as process:
            printed = b"".join(part for part in process.communicate(timeout=_TIME_LIMIT) if part)
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"{Path(command.argv[0]).name} was stopped: the compilation took longer than {_TIME_LIMIT:.0f} s",
            "Look for templates or loops that unroll without end.",
        ) from None
    except OSError as problem:
        raise GraderError(f"{command.argv[0]} cannot be started: {problem.strerror}") from None
    output = printed[:_OUTPUT_LIMIT].decode(errors="replace")
    return Finished(process.returncode, output, time.monotonic() - began)
