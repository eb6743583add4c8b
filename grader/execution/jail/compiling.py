"""Runs a compiler in a sandbox, because source text can make it read any file, or use all memory and time.

The compiler works in a scratch folder; the grader copies its results into the build's folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.execution.jail.programs import build_program
from grader.execution.jail.running import Jail, bubblewrap
from grader.execution.jail.staging import as_unprivileged, drops_root, reachable, scratch_folder
from grader.frontend.toolchain.process import (
    ENGLISH,
    Command,
    Finished,
    RunCommand,
    run_command,
    started,
    status_when_ended,
)
from grader.setup import shipped
from grader.setup.errors import GraderError

SECONDS = 60.0
"""The limit of processor time for each process of a compiler."""
PATIENCE = 10
"""The wall-clock limit, as a multiple of ``SECONDS``. It is large, so that a busy machine does not stop a compiler."""
MEGABYTES = 2048
PROCESSES = 32
OUTPUT_LIMIT = 64 * 1024
LARGEST_RESULT = 64 << 20
_SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/opt")))
_SETTINGS = (Path("/etc/alternatives"), Path("/etc/ld.so.cache"))


def run_in(jail: Jail) -> RunCommand:
    """Return a function that runs compilers in a sandbox of this tier."""
    return run_command if jail.tier == "none" else functools.partial(_run, jail)


def _run(jail: Jail, command: Command) -> Finished:
    began = time.monotonic()
    scratch = scratch_folder()
    try:
        _copy(command.folder, scratch)
        places = {} if jail.tier == "bwrap" else _places(command, scratch)
        argv, options = _landlock(command, scratch, places) if places else _bwrap(command, scratch)
        status, output = _wait(Path(command.argv[0]).name, argv, {**options, "pipes": command.pipes})
        if status != 0 and jail.tier == "bwrap" and output.startswith("bwrap: "):
            raise GraderError(
                f"the sandbox does not start: {output.splitlines()[0]}", "`grader doctor` says what to change."
            )
        output = _with_original_paths(output, places)
        for text in scratch.glob("*.ii") if places else ():  # preprocessed text names each file
            if not text.is_symlink() and text.stat().st_size <= LARGEST_RESULT:
                named = text.read_text(encoding="utf-8", errors="surrogateescape")
                text.write_text(_with_original_paths(named, places), encoding="utf-8", errors="surrogateescape")
        if "stdout" not in command.pipes:  # a command with a pipe writes all results to the pipe
            _copy(scratch, command.folder)
        return Finished(status, output, time.monotonic() - began)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _wait(name: str, argv: list[str], options: dict[str, Any]) -> tuple[int, str]:
    """Run a compiler until it ends or its time is over. Return its status and the start of its output."""
    printed = os.memfd_create("messages", os.MFD_CLOEXEC)
    try:
        try:
            with started(argv, **{"stdout": printed, "stderr": printed, **options}) as process:
                status = status_when_ended(process, PATIENCE * SECONDS)
        except subprocess.TimeoutExpired:
            status = 1
            os.pwrite(
                printed, f"error: {name} was stopped: it did not end within {PATIENCE * SECONDS:.0f} s\n".encode(), 0
            )
        output = os.pread(printed, OUTPUT_LIMIT, 0).decode(errors="replace")
        if status != 0 and (limit := _limit(status, output)):
            output += f"error: {name} was stopped: it used more than {limit}\n"
        elif status != 0 and "error" not in output:
            output += f"error: {name} failed with status {status} and printed no error\n"
        return status, output
    except OSError as error:
        raise GraderError(f"the compiler cannot be started in a sandbox: {error.strerror}") from error
    finally:
        os.close(printed)


def _limit(status: int, output: str) -> str:
    """Return the limit that a compiler exceeded, from its signal or its output; empty if it exceeded none."""
    if re.search(r"out of memory|virtual memory exhausted|[Cc]annot allocate memory|std::bad_alloc", output):
        return f"{MEGABYTES} MB"
    if status in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or "CPU time limit exceeded" in output:
        return f"{SECONDS:.0f} s of processor time"
    return ""


def _limits(folder: Path, processes: int) -> list[str]:
    return [str(folder), str(MEGABYTES), str(int(SECONDS)), str(processes)]


def _bwrap(command: Command, scratch: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the command in a bubblewrap that has only the system's files, the command's inputs and a folder.

    The scratch folder appears at the path of the command's own folder.
    """
    program = build_program("compile")
    argv = [*as_unprivileged(), *bubblewrap({"PATH": _path(), **ENGLISH})]
    for path in _SYSTEM:
        if path.is_symlink():
            argv += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            argv += ["--ro-bind", str(path), str(path)]
    for path in _SETTINGS:
        argv += ["--ro-bind-try", str(path), str(path)]
    argv += ["--size", str(256 << 20), "--tmpfs", "/tmp", "--dev-bind", "/dev/null", "/dev/null"]
    for path in _hidden():
        argv += ["--tmpfs", str(path)]
    for path in _reads(command):
        if reachable(path) != path or not _of_the_system(path):
            argv += ["--ro-bind", str(reachable(path)), str(path)]
    argv += ["--ro-bind", str(reachable(program)), str(program), "--bind", str(scratch), str(command.folder)]
    argv += ["--remount-ro", "/", "--", str(program), *_limits(command.folder, PROCESSES), "--", *command.argv]
    return argv, {"env": {}, "cwd": "/"}


def _places(command: Command, scratch: Path) -> dict[str, str]:
    """Return the path in a Landlock jail of each file that the command reads, and of its folder."""
    return {str(path): str(reachable(path)) for path in _reads(command)} | {str(command.folder): str(scratch)}


def _with_original_paths(text: str, places: Mapping[str, str]) -> str:
    for path, place in places.items():
        text = text.replace(place, path)
    return text


def _landlock(command: Command, scratch: Path, places: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """Return the command confined by Landlock to the same files.

    Landlock cannot move files, so paths of staged files and of the command's folder are replaced in the arguments.
    """
    words = []
    for word in command.argv:
        for path, place in places.items():
            word = word.replace(path, place)
        words.append(word)
    visible = [str(path) for path in (*_SYSTEM, *_SETTINGS, Path("/dev/null"))] + list(places.values())
    temporary = scratch / "tmp"
    temporary.mkdir()
    temporary.chmod(0o777)
    environment = {"PATH": _path(), "TMPDIR": str(temporary), **ENGLISH}
    program = str(reachable(build_program("compile")))
    # The limit counts all processes of the user, so it is set only if that user runs no other processes.
    limits = _limits(scratch, 8 * PROCESSES if drops_root() else 0)
    return [*as_unprivileged(), program, *limits, *visible, "--", *words], {"env": environment, "cwd": "/"}


def _path() -> str:
    return os.environ.get("PATH", "/usr/bin:/bin")


def _reads(command: Command) -> list[Path]:
    """Return the files that the command reads outside the system's folders, including the compiler's own folder."""
    compiler = Path(command.argv[0]).resolve()
    reads = [path for path in command.reads if path.exists()]
    if not any(compiler.is_relative_to(folder) for folder in _SYSTEM):
        reads.append(compiler.parent.parent)
    return reads


def _of_the_system(path: Path) -> bool:
    """Return whether a path and the file that it links to are in the system's folders."""
    return all(any(place.is_relative_to(folder) for folder in _SYSTEM) for place in (path, path.resolve()))


def _hidden() -> list[Path]:
    """Return the course's folders to hide, such as the solutions: those inside visible folders of the system."""
    roots = [shipped.COURSE]
    with contextlib.suppress(GraderError):  # `grader run` needs no course
        roots.append(course_root())
    places = [root / name for root in roots for name in ("solutions", "exercises", "tests")]
    folders = [place for place in dict.fromkeys(places) if place.is_dir()]
    return [folder for folder in folders if any(folder.is_relative_to(system) for system in _SYSTEM)]


def _copy(source: Path, target: Path) -> None:
    """Copy the regular files of a folder, but no links; raise an error for a file that is too large."""
    for entry in os.scandir(source):
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            continue
        if status.st_size > LARGEST_RESULT:
            raise GraderError(
                f"the compiler wrote {entry.name} of {status.st_size >> 20} MB; the limit is {LARGEST_RESULT >> 20} MB"
            )
        file = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(file, "rb") as reading, open(target / entry.name, "wb") as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
        os.chmod(target / entry.name, 0o755 if status.st_mode & 0o100 else 0o644)
