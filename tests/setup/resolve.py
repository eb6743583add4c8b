"""``python -m tests.setup.resolve``.

Whether the pins go together and have wheels, for each Python on each kind of machine.

It asks the package index, so it is no test: run it when constraints.txt or the dependencies change. Nothing is
installed. It needs uv, which resolves for other Pythons than the one in use: pip install -c constraints.txt uv.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.setup.test_pins import PYTHONS, pins_for

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
NAME = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+)", re.MULTILINE)


def main() -> int:
    """Resolve everywhere, and return 1 if that fails anywhere."""
    failed = False
    for python in PYTHONS:
        for machine in MACHINES:
            problem = resolved(python, machine)
            print(f"Python {python:7} {machine:24} {problem or 'good'}", flush=True)
            failed = failed or bool(problem)
    return 1 if failed else 0


def resolved(python: str, machine: str) -> str:
    """Return the error for one Python on one kind of machine; empty if there is none."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "pyproject.toml",
        "--extra",
        "test",
        "--extra",
        "book",
        "--extra",
        "cluster",
        "--extra",
        "browser",
        "-c",
        "constraints.txt",
    ]
    command += ["--only-binary", ":all:", "--python-version", python, "--python-platform", machine, "--no-header"]
    # What make installs beside the course's own dependencies.
    extra = subprocess.run(
        [*command, "-", "-q"], input="pip\nsetuptools\nuv\n", cwd=ROOT, capture_output=True, text=True
    )
    if extra.returncode != 0:
        return extra.stderr
    taken = {name.lower().replace("_", "-"): version for name, version in NAME.findall(extra.stdout)}
    wrong = [
        f"{name} {taken[name]}, not {version}"
        for name, version in pins_for(python).items()
        if name in taken and taken[name] != version
    ]
    # Builds of torch for CUDA ask for versions of their own.
    if len(taken) < 100:
        return f"only {len(taken)} packages were resolved"
    loose = [name for name in taken if name not in pins_for(python) and not re.match(r"nvidia-|cuda-|triton$", name)]
    return "; ".join(wrong + [f"{name} is not pinned" for name in loose])


if __name__ == "__main__":
    sys.exit(main())
