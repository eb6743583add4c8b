"""Tests a sandbox: ``jail/source/canary.cpp`` is loaded in it like a kernel, and tries to escape."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from pathlib import Path

from grader.execution.jail.programs import CONFINE, compiled
from grader.execution.jail.running import Jail
from grader.execution.jail.staging import UNPRIVILEGED, drops_root
from grader.execution.runner.client import Child, LoadFailed
from grader.frontend.toolchain.cache import BuildCache
from grader.frontend.toolchain.compilers import find_cxx
from grader.setup.errors import GraderError


def escapes(jail: Jail, secrets: list[Path], runner: Path) -> list[str]:
    """Return the forbidden operations in which the canary succeeded: an empty list if the sandbox works.

    Raises:
        GraderError: the sandbox does not start, or ``runner`` is for a GPU and cannot use the GPU inside it.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.chmod(folder, 0o777)
        other = folder / "submission.cu"
        other.write_text("somebody else's work")
        os.chmod(other, 0o644)
        if jail.tier != "none" and drops_root():
            # Without the sandbox, its user could then change the file.
            os.chown(other, UNPRIVILEGED, UNPRIVILEGED)
        talking = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        talking.bind(f"{folder}/socket")
        os.chmod(f"{folder}/socket", 0o777)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        orders = [f"read {path}" for path in (other, Path("/etc/passwd"), *secrets)]
        orders += [f"write {folder}", f"change {other}", f"talk {folder}/socket"]
        orders += [f"connect {listener.getsockname()[1]}", f"parent {os.getpid()}"]
        file = os.memfd_create("orders")
        stack.callback(os.close, file)
        os.write(file, "".join(f"{order}\n" for order in orders).encode())
        os.lseek(file, 0, os.SEEK_SET)
        child = stack.enter_context(Child(runner, build_canary(), jail=jail, standard_input=file))
        try:
            printed = child.start().splitlines()
        except LoadFailed as error:
            said = error.hint or ""
            raise GraderError(f"{error.message} {said.strip()}".strip()) from None
    if "sang" not in printed:
        raise GraderError("the program that tests the sandbox did not run")
    return [line.removeprefix("could ") for line in printed if line.startswith("could ")]


def build_canary(cache: BuildCache | None = None) -> Path:
    """Return the canary's library. Build it if it is not in the cache."""
    flags, what = ("-std=c++17", "-O1", "-shared", "-fPIC", "-w"), "the program that tests the sandbox"
    return compiled("canary.so", what, find_cxx(), flags, [CONFINE / "canary.cpp"], cache=cache)
