"""The course's kernels on an arm64 processor emulated by qemu.

``python -m pytest -p tests.machines.arm64 tests/exercises/test_verdicts.py``.

Kernels, the simulator and the runner are compiled for arm64, and the runner runs in the emulator. Python and the
compiler run without emulation. There is no jail, because an emulated process can use neither Landlock nor seccomp.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
_LIBRARIES = "/usr/aarch64-linux-gnu"
SLOWER = 40
"""The factor for time limits on the emulated processor."""


def lacking() -> str:
    """Return a message about programs that must be installed; empty if none is missing."""
    there = shutil.which(COMPILER) and shutil.which(EMULATOR)
    return "" if there else f"needs {COMPILER} and {EMULATOR} (apt install g++-aarch64-linux-gnu qemu-user-static)"


def pytest_configure(config: pytest.Config) -> None:
    if lacking():
        raise pytest.UsageError(lacking())
    os.environ |= {"GRADER_CXX": COMPILER, "GRADER_JAIL": "none"}
    platform.machine = lambda: "aarch64"
    from grader.execution.runner import program

    build = program.build_runner
    folder = tempfile.TemporaryDirectory(prefix="arm64-")
    config.add_cleanup(folder.cleanup)

    def emulated(*asked: Any, **more: Any) -> Path:
        script = Path(folder.name, "runner")
        if not script.exists():
            runner = build(*asked, **more)
            script.write_text(f'#!/bin/sh\nexec {EMULATOR} -L {_LIBRARIES} {shlex.quote(str(runner))} "$@"\n')
            script.chmod(0o755)
        return script

    program.build_runner = emulated
    # These modules import the runner, so import them after it is replaced.
    from grader.execution.runner.client import Child
    from grader.judge import driver

    driver.SETTINGS["watchdog_seconds"] = str(3 * SLOWER)
    receive = Child.receive
    Child.receive = lambda child, timeout=20.0, awake=False: receive(child, SLOWER * timeout, awake)
