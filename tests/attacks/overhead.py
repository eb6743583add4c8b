"""The cost of a check beside the kernel's own work: ``python -m tests.attacks.overhead``. Run it on an idle machine.

The start of a child in each tier, less that of the same child without a jail; and the stages after *builds* of a small
right kernel, less the processor time that its launches took. The least of several runs, as others' work only ever adds.
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
    """Return the right answer alone."""
    file = folder / "twice.cu"
    file.write_text((HERE / "prelude.cu").read_text() + (HERE / "controls/honest.cu").read_text())
    return file


def start(file: Path, tier: str) -> float:
    """Seconds from nothing to a loaded kernel."""
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
    """Seconds of *correct*, in which the other stages' runs take place too."""
    return min(check(exercise(), file, seed=1).stage("correct").seconds for _ in range(RUNS))


def main() -> int:
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        file = kernel(Path(name))
        check(exercise(), file, seed=1)  # compiles what is compiled once
        plain = start(file, "none")
        print(f"start without a jail   {plain * 1e3:7.1f} ms")
        for tier in ("bwrap", "landlock"):
            reason = tiers.why_not(tier)
            if reason:
                print(f"start in {tier:13} not here: {reason}")
                continue
            more = start(file, tier) - plain
            bad += more > MOST_START
            print(f"start in {tier:13} {more * 1e3:+7.1f} ms  (at most +{MOST_START * 1e3:.0f})")
        seconds = stages(file)
        bad += seconds > MOST_STAGE
        print(
            f"a whole stage correct  {seconds * 1e3:7.1f} ms  (at most {MOST_STAGE * 1e3:.0f}, with a kernel of "
            f"microseconds)"
        )
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
