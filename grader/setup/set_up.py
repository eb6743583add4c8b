"""The steps of a set-up, which completes .venv from an empty folder or from an earlier set-up."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from grader.setup import state, torch
from grader.setup.display import Display, megabytes
from grader.setup.failures import Failure, explained, refusal
from grader.setup.files import try_lock
from grader.setup.installer import Installer, seconds_since
from grader.setup.relocation import relocate_programs
from grader.setup.state import Environment, Folder, Plan

FAILED, INTERRUPTED = 2, 130


def run(folder: Folder, torch_build: str, this_python: bool, flags: list[str]) -> int:
    """Set up .venv, after any other set-up of this course has ended. Return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)
    display = Display()
    try:
        with alone(folder, display) as lock:
            plan = state.plan(folder, torch_build, this_python)
            if not plan.complete:
                SetUp(folder, plan, flags, display, lock).finish()
    except Failure as failure:
        display.clear()
        print(failure, file=sys.stderr)
        return FAILED
    except OSError as problem:
        display.clear()
        print(explained("The set-up failed.", [str(problem)], changed=True), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        display.clear()
        print("make: the set-up was interrupted; run `make` again to finish it", file=sys.stderr)
        return INTERRUPTED
    return 0


@contextlib.contextmanager
def alone(folder: Folder, display: Display) -> Iterator[int]:
    """Wait for any other set-up of this course to end.

    Child processes inherit the lock, because they may outlive this process.
    """
    lock = os.open(folder.course, os.O_RDONLY)
    try:
        if not try_lock(lock):
            display.say("Another `make` is setting up this course; waiting for it to end.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


class SetUp:
    """A set-up of a course. ``flags``: more options for pip; ``lock``: the lock file, which child processes inherit."""

    def __init__(self, folder: Folder, plan: Plan, flags: list[str], display: Display, lock: int):
        self.folder = folder
        self.plan = plan
        self.flags = flags
        self.display = display
        self.installer = Installer(folder, display, lock)

    def finish(self) -> None:
        """Carry out the plan."""
        begun = time.monotonic()
        self._check_prerequisites()
        if self.plan.anew:
            self.display.say(f"Setting up .venv: {self.plan.anew}. The output of pip goes to .venv/install.log.")
            self._make_empty()
        if self.plan.moved_from:
            self.display.say(f"Repairing .venv: the course was moved here from {self.plan.moved_from}.")
            self._relocate()
        if self.plan.installs and not self.plan.anew:
            self.display.say("Updating .venv: the course's required packages have changed.")
        kept = None if self.plan.installs else self.folder.recorded()
        self._build_ahead(kept or self._install())
        shutil.rmtree(self.folder.scratch, ignore_errors=True)
        amount = f", {megabytes(self.installer.downloaded)} downloaded" if self.installer.downloaded else ""
        self.display.say(f"The set-up is complete ({seconds_since(begun)}{amount}).")

    def _check_prerequisites(self) -> None:
        """Raise ``Failure`` for a problem that would stop the set-up later. Check before any download or removal."""
        oldest, newest = state.supported_pythons(self.folder.course)
        if self.plan.anew and not oldest <= sys.version_info.minor <= newest:
            raise refusal(
                f"the course supports Python 3.{oldest} to 3.{newest}, but this is Python {state.running_python()}.",
                f"Choose another Python: make PYTHON=python3.{newest - 1}.",
                sys.executable,
            )
        if self.plan.anew and importlib.util.find_spec("ensurepip") is None:
            advice = f"On Debian and Ubuntu: apt install python{state.running_python()}-venv."
            raise refusal("this Python cannot create virtual environments.", advice, sys.executable)
        wanted = os.environ.get("GRADER_CXX", "").split()[:1] or ["g++", "clang++"]
        if not any(shutil.which(compiler) for compiler in wanted):
            said = f"no C++ compiler was found ({' or '.join(wanted)})."
            raise refusal(said, "On Debian and Ubuntu: apt install g++.")
        if self.folder.path.is_symlink():
            said = f".venv is a link to {self.folder.path.resolve()}, whose packages do not match the course."
            raise refusal(said, "Remove the link .venv, then run `make` again.")
        for place in (self.folder.path, self.folder.course):
            if place.exists() and not os.access(place, os.W_OK | os.X_OK):
                raise self._not_writable(place)

    def _not_writable(self, place: Path) -> Failure:
        """Return the failure for a folder in which this user may not write."""
        try:
            owner = place.owner()
        except (OSError, KeyError):
            owner = "somebody else"
        advice = f"Take ownership (sudo chown -R $USER '{self.folder.course}'), then run `make` again."
        return refusal(f"you cannot write in {place}: it belongs to {owner}.", advice)

    def _make_empty(self) -> None:
        """Create an environment with only Python and pip."""
        self.folder.forget()

        def refuse(_: object, path: str, problem: BaseException) -> None:
            raise self._not_writable(Path(path).parent) if isinstance(problem, PermissionError) else problem

        if self.folder.path.is_dir():
            self.display.now("Removing the old .venv")
            if sys.version_info >= (3, 12):
                shutil.rmtree(self.folder.path, onexc=refuse)
            else:
                shutil.rmtree(self.folder.path, onerror=lambda function, path, info: refuse(function, path, info[1]))
        elif self.folder.path.exists():
            raise refusal(".venv is not a folder.", "Remove the file .venv, then run `make` again.")
        self.folder.path.mkdir()
        self.folder.request_torch(self.plan.torch)
        # This Python may belong to the environment that was just removed, so use its base Python.
        python = getattr(sys, "_base_executable", sys.executable)
        self.installer.run([python, "-m", "venv", self.folder.path], "Creating the environment")

    def _relocate(self) -> None:
        """Change the paths in a .venv that was moved with the course. Nothing is downloaded.

        An interruption is harmless: the record names the former folder until the end, and each step can be repeated.
        """
        assert self.plan.before
        former = Path(self.plan.moved_from, self.folder.path.name, "bin")
        relocate_programs(self.folder.path / "bin", former)
        # venv writes pyvenv.cfg and bin/activate again, and pip the paths at which Python finds the course.
        self.installer.run([self.folder.python, "-m", "venv", self.folder.path, "--without-pip"], "Repairing .venv")
        offline = ["--no-index", "--no-deps", "--no-build-isolation"]
        self.installer.run([*self._pip(), "install", *offline, "-e", "."], "Repairing .venv")
        self.folder.record(self.plan.before._replace(course=str(self.folder.course), built_ahead=False))

    def _pip(self) -> list[str | Path]:
        return [self.folder.python, "-m", "pip", "--disable-pip-version-check", "--no-color", "--no-input"]

    def _install(self) -> Environment:
        """Install the packages.

        If that fails before any package changed, keep the record of the previous installation.
        """
        pip = self._pip()
        pinned = [*self.flags, "-c", "constraints.txt"]
        before = self.folder.recorded()
        self.folder.forget()
        try:
            # First install the pinned pip and the pinned build tools of the course's package.
            tools = ["pip", "setuptools"] if self.plan.torch == state.PIPS_CHOICE else ["pip", "setuptools", "uv"]
            self.installer.run([*pip, "install", *pinned, *tools], "Getting pip")
            self.installer.changed = False
            if self.plan.torch == state.PIPS_CHOICE:
                said = torch.notice(self.installer, pip, self.flags)
                if said:
                    self.display.say(said)
            else:
                self._install_torch()
            course = ["--progress-bar", "raw", "--no-build-isolation", "-e", ".[test]"]
            self.installer.run([*pip, "install", *pinned, *course], "Installing the packages")
        except BaseException:
            if before and not self.installer.changed:
                self.folder.record(before)
            raise
        environment = Environment(
            python=self._python_in_place(),
            packages=self.plan.packages,
            torch=self.plan.torch,
            course=str(self.folder.course),
            interpreter=self.folder.interpreter(),
            built_ahead=False,
        )
        self.folder.record(environment)
        return environment

    def _install_torch(self) -> None:
        """Install the requested build of torch with uv, which knows PyTorch's package index. pip installs the rest."""
        command: list[str | Path] = [self.folder.path / "bin" / "uv", "pip", "install", "--python", self.folder.python]
        command += ["--torch-backend", self.plan.torch, "--no-cache", "--no-deps", "-c", "constraints.txt", "torch"]
        self.installer.run(command, f"Downloading torch, {state.build_name(self.plan.torch)}")

    def _python_in_place(self) -> str:
        """Return the version of .venv's Python."""
        asked: list[str | Path] = [self.folder.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        return self.installer.run(asked, "Asking for Python's version")[-1]

    def _build_ahead(self, environment: Environment) -> None:
        """Build the grader's own C++ parts. Report a failure, but continue."""
        output = self.installer.run([self.folder.python, "-m", "grader.cli.install"], "Building the simulator")
        for line in output:
            self.display.say(line)
        self.folder.record(environment._replace(built_ahead=True))
