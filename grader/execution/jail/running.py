"""Starts a runner in a sandbox of a given tier."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.execution.jail import driver
from grader.execution.jail.staging import as_unprivileged, reachable
from grader.setup.errors import GraderError

_BWRAP = "--unshare-all --unshare-user --die-with-parent --new-session --clearenv --cap-drop ALL --hostname jail"


@dataclass(frozen=True)
class Start:
    """A command that starts a sandboxed process. ``paths`` maps each file to its path inside the sandbox."""

    argv: list[str]
    options: dict[str, Any]
    """Arguments of ``subprocess.Popen``."""
    paths: dict[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Jail:
    """A sandbox of a tier: bwrap, landlock or none. With ``gpu``, CUDA's driver and its files are accessible."""

    tier: str = "none"
    gpu: bool = False

    def start(
        self,
        program: Path,
        arguments: Sequence[str],
        files: Sequence[Path],
        environment: Mapping[str, str],
        linked: Sequence[Path] = (),
    ) -> Start:
        """Return the command that starts ``program`` in this sandbox.

        The program can read only ``files``, the libraries that it and the files ``linked`` use, and the files of the
        GPU's driver if ``gpu`` is set.
        """
        words = [*arguments, self.tier, "gpu" if self.gpu else "simulator"]
        if self.tier == "none":
            return Start([str(program), *words], {"env": {**environment}}, {file: file for file in files})
        staged = {file: reachable(file) for file in (program, *files)}
        libraries = [library for file in (program, *linked) for library in shared_libraries(file)]
        for library in driver.libraries() if self.gpu else ():
            libraries += [library, *(shared_libraries(library) if library.name == "libcuda.so.1" else ())]
        places = {library: reachable(library) for library in libraries}
        inside = places.values() if self.tier == "landlock" else places
        search = ":".join(dict.fromkeys(str(library.parent) for library in inside))
        environment = {**environment, "LD_LIBRARY_PATH": search}
        if self.tier == "landlock":
            visible = [str(path) for path in (*staged.values(), *inside)]
            if self.gpu:
                visible += [*driver.READ, *driver.OWN_PROCESS, "--", *driver.devices(), driver.THREADS]
            argv = [*as_unprivileged(), str(staged[program]), *words, *visible]
            return Start(argv, {"env": environment}, staged)
        argv = [*as_unprivileged(), *bubblewrap(environment)]
        for file, source in [*staged.items(), *places.items()]:
            argv += ["--ro-bind", str(source), str(file)]
        if self.gpu:
            argv += ["--proc", "/proc"]  # a /proc that shows only processes of the sandbox
            for path in driver.READ:
                argv += [] if path.startswith("/proc/") else ["--ro-bind-try", path, path]
            for path in driver.devices():
                argv += ["--dev-bind", path, path]
        argv += ["--remount-ro", "/", "--chdir", "/", "--", str(program), *words]
        return Start(argv, {"env": {}}, {file: file for file in files})


NO_JAIL = Jail()


@functools.cache
def shared_libraries(program: Path) -> tuple[Path, ...]:
    """Return the shared libraries of a program that the grader built, and the dynamic loader."""
    try:
        done = subprocess.run([*_lister(), str(program)], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraderError(f"the libraries of the runner cannot be listed: {error}") from error
    found = [Path(path) for path in re.findall(r"(?:=>\s*|^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE)]
    if done.returncode != 0 or not (found or "statically linked" in done.stdout):
        raise GraderError(f"the libraries of the runner cannot be listed: {done.stderr.strip()}")
    return tuple(found)


_LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
"""The path of glibc's dynamic loader on each architecture."""


def _lister() -> list[str]:
    """Return the command that lists a program's libraries: the dynamic loader, or ldd, which takes 20x as long."""
    loader = _LOADERS.get(os.uname().machine, "")
    return [loader, "--list"] if os.access(loader, os.X_OK) else ["ldd"]


def bubblewrap(environment: Mapping[str, str]) -> list[str]:
    """Return the start of a command that runs bwrap: without files, network and rights, with these variables only."""
    variables = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    return [_bwrap(), *_BWRAP.split(), *no_more_namespaces(), *variables]


def _bwrap() -> str:
    """Return the path of bwrap."""
    program = shutil.which("bwrap", path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
    if program is None:
        raise GraderError("bubblewrap is not installed", "Debian, Ubuntu: apt install bubblewrap.")
    return program


@functools.cache
def no_more_namespaces() -> tuple[str, ...]:
    """Return bwrap's option that forbids user namespaces inside the sandbox, if it has one (from version 0.8 on)."""
    text = subprocess.run([_bwrap(), "--help"], capture_output=True, text=True, check=False).stdout
    return ("--disable-userns",) if "--disable-userns" in text else ()
