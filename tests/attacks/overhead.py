"""Overhead of a check compared with the kernel's own work. Run ``python -m tests.attacks.overhead`` when idle.

Prints the start time of a child process in each tier, minus that of the same process without a jail. Also prints the
time of the stages after *builds* for a small correct kernel, minus the processor time of its launches. Each figure is
the minimum of several runs, because other load can only increase it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from grader.execution.build.build import compile_kernel
from grader.execution.jail.running import NO_JAIL, Jail
from grader.execution.runner import tiers
from grader.execution.runner.client import Child
from grader.execution.runner.program import build_runner
from grader.judge import check
from grader.judge.driver import SETTINGS
from tests.attacks.conftest import HERE, exercise

RUNS = 10
MOST_START, MOST_STAGE = 0.020, 0.5


def kernel(folder: Path) -> Path:
    """Write a file with a correct kernel and return its path."""
    file = folder / "twice.cu"
    file.write_text((HERE / "prelude.cu").read_text() + (HERE / "controls/honest.cu").read_text())
    return file


def start(file: Path, tier: str) -> float:
    """Return the seconds from the start of a child process until it has loaded a kernel."""
    built = compile_kernel(file, "cpu", checks=True)
    jail = NO_JAIL if tier == "none" else Jail(tier)
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        with Child(build_runner("cpu"), built.library, built.libsim, SETTINGS, jail=jail) as child:
            child.start()
            times.append(time.perf_counter() - began)
    return min(times)


def stages(file: Path) -> float:
    """Return the seconds of the stage *correct*, in which the kernel also runs for the stages after it."""
    return min(check(exercise(), file, seed=1).stage("correct").seconds for _ in range(RUNS))


def main() -> int:
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        file = kernel(Path(name))
        check(exercise(), file, seed=1)  # fill the compiler cache before measuring
        plain = start(file, "none")
        print(f"start without a jail   {plain * 1e3:7.1f} ms")
        for tier in ("bwrap", "landlock"):
            reason = tiers.why_not(tier)
            if reason:
                print(f"start in {tier:13} not available: {reason}")
                continue
            more = start(file, tier) - plain
            bad += more > MOST_START
            print(f"start of a process in tier {tier:13} {more * 1e3:+7.1f} ms  (at most +{MOST_START * 1e3:.0f})")
        seconds = stages(file)
        bad += seconds > MOST_STAGE
        print(
            f"the whole stage 'correct' {seconds * 1e3:7.1f} ms  (at most {MOST_STAGE * 1e3:.0f}, with a kernel that "
            f"takes microseconds)"
        )
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
