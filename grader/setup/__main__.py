"""The program of `make`. If .venv is up to date, it ends quickly, without importing the installer."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (`make PYTHON=python3.9` could not parse the modules below)
    sys.exit(f"make: the course needs Python 3.11 or newer, but {sys.executable} is {sys.version.split()[0]}")

import argparse
import signal
from pathlib import Path

from grader.setup.state import Folder, plan


def main() -> int:
    """Bring .venv up to date with the course."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing to clean up yet: Ctrl-C ends silently
    parser = argparse.ArgumentParser(prog="python -m grader.setup", description="Sets .venv up, as `make` does.")
    parser.add_argument(
        "--torch",
        default="",
        help="the build of torch: cpu, another build that uv can install, or pip to let pip choose",
    )
    parser.add_argument(
        "--this-python", action="store_true", help="recreate .venv if its version of Python is not that of this Python"
    )
    parser.add_argument("flags", nargs="*", help="more options for pip, after --")
    options = parser.parse_args()
    folder = Folder(Path.cwd())
    if plan(folder, options.torch, options.this_python).complete:
        return 0
    from grader.setup.set_up import run

    return run(folder, options.torch, options.this_python, options.flags)


sys.exit(main())
