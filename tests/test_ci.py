"""The CI script installs missing programs that tests need, or reports that it cannot and continues."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "run"
PROGRAMS = {"bwrap": "bubblewrap", "clang++": "clang", "tmux": "tmux", "objdump": "binutils", "chromium": "chromium"}


class Machine:
    """A machine with only the given fake programs, which record their command lines."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.calls = folder / "calls"
        self.script = folder / "course" / ".ci" / "run"
        self.script.parent.mkdir(parents=True)
        self.path.mkdir()
        shutil.copy(SCRIPT, self.script)
        for name in ("bash", "dirname"):
            (self.path / name).symlink_to(shutil.which(name))
        self.put("make")
        self.put("id", "echo 0")

    def put(self, name: str, body: str = "") -> None:
        program = self.path / name
        program.write_text(f'#!/usr/bin/env bash\necho "{name} $DEBIAN_FRONTEND $*" >>"{self.calls}"\n{body}\n')
        program.chmod(0o755)

    def run(self) -> tuple[str, list[str]]:
        """Return the output, and the calls of apt-get and make."""
        done = subprocess.run([self.script], env={"PATH": str(self.path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        calls = self.calls.read_text().splitlines()
        return done.stdout + done.stderr, [call for call in calls if call.startswith(("apt-get", "make"))]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_missing_programs_are_installed_before_the_tests(machine: Machine) -> None:
    machine.put("apt-get")
    machine.put("tmux")
    said, (update, install, *made) = machine.run()
    assert not said
    assert update.startswith("apt-get noninteractive ") and update.endswith(" update")
    assert "-qq" in install and "Acquire::Retries=3" in install and "--no-install-recommends" in install
    assert install.endswith(" bubblewrap clang binutils chromium"), "tmux is there"
    assert [call.split() for call in made] == [["make", "book"], ["make", "browser"], ["make", "test"]]


def test_a_browser_without_windows_is_preferred(machine: Machine) -> None:
    machine.put("apt-get")
    machine.put("apt-cache")
    _, (_, install, *_) = machine.run()
    assert install.endswith(" bubblewrap clang tmux binutils chromium-headless-shell")


@pytest.mark.parametrize("browser", ["chromium-headless-shell", "chromium-browser", "google-chrome"])
def test_any_browser_is_accepted(machine: Machine, browser: str) -> None:
    for name in ("apt-get", *(set(PROGRAMS) - {"chromium"}), browser):
        machine.put(name)
    said, calls = machine.run()
    assert not said and [call.split()[1] for call in calls] == ["book", "browser", "test"]


def test_present_programs_are_not_installed(machine: Machine) -> None:
    for name in ("apt-get", *PROGRAMS):
        machine.put(name)
    said, calls = machine.run()
    assert not said and [call.split()[1] for call in calls] == ["book", "browser", "test"]


@pytest.mark.parametrize(
    ("apt", "user", "says"),
    [(None, 0, "no apt"), ("", 1000, "not root"), ("exit 100", 0, "could not install")],
    ids=["no apt", "no root", "no network"],
)
def test_a_failed_installation_is_reported_only(machine: Machine, apt: str | None, user: int, says: str) -> None:
    machine.put("id", f"echo {user}")
    if apt is not None:
        machine.put("apt-get", apt)
    said, calls = machine.run()
    assert len(said.splitlines()) == 1 and says in said and all(package in said for package in PROGRAMS.values())
    assert calls[-1].split() == ["make", "test"]


def test_failing_tests_fail_the_run(machine: Machine) -> None:
    for name in PROGRAMS:
        machine.put(name)
    machine.put("make", "exit 3")
    assert subprocess.run([machine.script], env={"PATH": str(machine.path)}).returncode == 3


def test_the_workflow_runs_the_same_script() -> None:
    workflow = (SCRIPT.parents[1] / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"- run: (.*)$", workflow, re.MULTILINE) == ['sudo --preserve-env env "PATH=$PATH" .ci/run']
    assert "timeout-minutes: 90" in workflow
