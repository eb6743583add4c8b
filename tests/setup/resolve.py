"""Check the pins of constraints.txt: ``python -m tests.setup.resolve``.

For each Python version and processor architecture, it checks that the pins are compatible and that wheels exist.

It is not a test, because it queries the package index. Run it when constraints.txt or the dependencies change. It
installs nothing. It needs uv, which can resolve for other Python versions: pip install -c constraints.txt uv.
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
    """Resolve for every Python version and architecture; return 1 if one of them fails."""
    failed = False
    for python in PYTHONS:
        for machine in MACHINES:
            problem = resolved(python, machine)
            print(f"Python {python:7} {machine:24} {problem or 'good'}", flush=True)
            failed = failed or bool(problem)
    return 1 if failed else 0


def resolved(python: str, machine: str) -> str:
    """Return the error for one Python version and architecture, or an empty string."""
    extras = [f"--extra={name}" for name in ("test", "book", "cluster", "browser")]
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *extras, "-c", "constraints.txt"]
    command += ["--only-binary", ":all:", "--python-version", python, "--python-platform", machine, "--no-header"]
    # `make` installs these in addition to the course's dependencies.
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
    # torch's CUDA builds pin their nvidia-*, cuda-* and triton packages themselves.
    if len(taken) < 100:
        return f"only {len(taken)} packages were resolved"
    loose = [name for name in taken if name not in pins_for(python) and not re.match(r"nvidia-|cuda-|triton$", name)]
    return "; ".join(wrong + [f"{name} is not pinned" for name in loose])


if __name__ == "__main__":
    sys.exit(main())
