"""The steps of a new user on a machine. Each returns its result in a few words, or raises StepFailed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.machines import containerfile
from tests.machines.machine import Machine

PASSED = "passes"
ROOMS_WITH_PATHS = ("tests/cli", "tests/execution/in_process", "tests/setup")


class StepFailed(Exception):
    """A failed step; the message names the file with its output."""


def demo(machine: Machine, log: Path) -> str:
    """Run ``make demo`` twice; the second run has nothing to set up."""
    _run(machine, "make demo && make demo", log, minutes=40)
    return PASSED


def container(machine: Machine, log: Path) -> str:
    """Run the user's commands of the Containerfile, and start the container's command: JupyterLab."""
    steps = containerfile.read()
    for line, environment in steps.run:
        _run(machine, line, log, minutes=40, **environment)
    return _serves(machine, steps.command, log.with_suffix(".command.log"), **steps.environment)


def wheel(machine: Machine, log: Path) -> str:
    """Build and install a wheel, create the course in another folder with ``grader init``, and use its commands."""
    steps = (
        "python3 -m venv .venv",
        "PATH=$PWD/.venv/bin:$PATH",
        "pip wheel --no-deps -w ~/wheels .",
        "pip install -c constraints.txt ~/wheels/*.whl",
        "cd ~",
        "grader init mine",
        "cd mine",
        "grader demo",
        "grader list",
        "grader init",
        "grader doctor",
    )
    _run(machine, " && ".join(steps), log, minutes=40)
    return PASSED


def lab(machine: Machine, log: Path) -> str:
    """Run ``make lab``: JupyterLab starts and serves the first lesson."""
    return _serves(machine, "make lab", log, BROWSER="true")


def _serves(machine: Machine, command: str, log: Path, **environment: str) -> str:
    """Start JupyterLab with a command, and request the first lesson."""
    with log.open("w") as output:
        server = subprocess.Popen(
            machine.command(command, **environment), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            end = time.monotonic() + 300
            while not (found := re.search(r"http://\S*:(\d+)/\S*\?token=(\w+)", log.read_text(errors="replace"))):
                if server.poll() is not None or time.monotonic() > end:
                    raise StepFailed(f"JupyterLab did not start: see {log}")
                time.sleep(0.5)
            lesson = "day01_residual_add/lesson.ipynb"
            address = f"http://localhost:{found[1]}/api/contents/{lesson}?content=0&token={found[2]}"
            with urllib.request.urlopen(address, timeout=60) as answer:
                if answer.status != 200:
                    raise StepFailed(f"JupyterLab answers {answer.status}: see {log}")
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has exited
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    return PASSED


def lesson(machine: Machine, log: Path) -> str:
    """Run the lessons of days 1 and 6, cell by cell."""
    _run(machine, ".venv/bin/python -m pytest tests/notebooks/test_lessons.py -k 'day01 or day06'", log, minutes=20)
    return PASSED


def whole_suite(machine: Machine, log: Path) -> str:
    """Run ``make test``; return how many tests passed."""
    _run(machine, "make test", log, minutes=80)
    return counts(log)


def tests_of_paths(machine: Machine, log: Path) -> str:
    """Run the tests of the subpackages that pass paths to shells, compilers and pip; return how many passed."""
    _run(machine, f".venv/bin/python -m pytest {' '.join(ROOMS_WITH_PATHS)} -n auto", log, minutes=40)
    return counts(log)


def moved(machine: Machine, log: Path) -> str:
    """Rename the course's folder, and run ``make demo`` and a program of .venv in it. Nothing is downloaded."""
    steps = (
        'here="$PWD"',
        "cd ..",
        'mv "$here" "$here moved"',
        'cd "$here moved"',
        "make demo PIP_FLAGS=--no-index",
        ".venv/bin/jupyter --version",
        "cd ..",
        'mv "$here moved" "$here"',
        'cd "$here"',
        "make",
    )
    _run(machine, " && ".join(steps), log, minutes=20)
    return PASSED


def run_tests(machine: Machine, tests: str, log: Path, before: str = "true", **environment: str) -> str:
    """Run some of the tests, after a set-up if needed; return how many passed."""
    shell = f"{before} && make && .venv/bin/python -m pytest {tests} -n auto"
    _run(machine, shell, log, minutes=60, **environment)
    return counts(log)


def counts(log: Path) -> str:
    """Return pytest's final counts."""
    said = re.findall(r"=+ (.*?) in [\d.]+s", log.read_text(errors="replace"))
    return said[-1] if said else PASSED


def facts(machine: Machine, log: Path) -> dict[str, str]:
    """Return the machine's versions: Python, compiler, PyTorch, and the size of the environment."""
    ask = (
        ".venv/bin/python -c \"import platform, torch; print('Python', platform.python_version()); print('torch', "
        'torch.__version__)"; '
        '.venv/bin/python -c \'from grader.frontend.toolchain.compilers import find_cxx; print("compiler", '
        "find_cxx())'; "
        "du -sm .venv | cut -f1"
    )
    _run(machine, ask, log, minutes=5)
    text = log.read_text()
    found = {name: re.search(rf"^{name} (.*)$", text, re.MULTILINE) for name in ("Python", "torch", "compiler")}
    return {name: match[1] if match else "?" for name, match in found.items()} | {"megabytes": text.split()[-1]}


STEPS: dict[str, Callable[[Machine, Path], str]] = {
    "container": container,
    "demo": demo,
    "lab": lab,
    "lesson": lesson,
    "moved": moved,
    "paths": tests_of_paths,
    "test": whole_suite,
    "wheel": wheel,
}


def _run(machine: Machine, shell: str, log: Path, minutes: float, **environment: str) -> None:
    with log.open("w") as output:
        try:
            done = subprocess.run(
                machine.command(shell, **environment),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=60 * minutes,
            )
        except subprocess.TimeoutExpired:
            raise StepFailed(f"the step was not done after {minutes:.0f} minutes: see {log}") from None
    if done.returncode != 0:
        raise StepFailed(f"exit status {done.returncode}: see {log}")
