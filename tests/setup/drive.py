"""Run the set-up with a fake pip: `python drive.py [arguments]` in a course.

It runs the course's `python -m grader.setup`, but the created .venv contains the fake pip.
"""

from __future__ import annotations

import runpy
import shutil
import signal
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve()


def make_environment(path: Path) -> None:
    """Create a .venv with the fake pip, quickly: the real pip is not installed."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(path)
    packages = next(path.glob("lib/python3*/site-packages"))
    (packages / "pip").mkdir()
    (packages / "pip" / "__init__.py").touch()
    sys.path.insert(0, str(packages))
    shutil.copy(HERE.with_name("fake_pip.py"), packages / "pip" / "__main__.py")
    from pip.__main__ import told

    told("venv")


def drive() -> None:
    """Run the course's own grader.setup."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell that runs the tests may ignore SIGINT
    sys.path.insert(0, str(Path.cwd()))
    from grader.setup.installer import Installer

    real = Installer.run

    def run(self: Installer, command: list, title: str) -> list[str]:
        if command[1:3] == ["-m", "venv"] and "--without-pip" not in command:
            command = [sys.executable, HERE, "--venv", command[3]]
        return real(self, command, title)

    Installer.run = run
    runpy.run_module("grader.setup", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--venv"]:
        make_environment(Path(sys.argv[2]))
    else:
        drive()
