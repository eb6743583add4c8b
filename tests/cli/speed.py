"""Measures how long a verdict takes: ``python -m tests.cli.speed [--device cuda]``.

Each run grades a kernel with a new comment. So it compiles the kernel, but takes the grader's libraries and headers
from the cache. *torch* is the time of a process that imports torch and, with ``--device cuda``, creates a CUDA context.
*cold* is the time of a ``grader check`` process, and below it stand the seconds of its stages in the last run. *again*
is the same without a change. *watch* is the time from saving a file to the end of the verdict in ``grader watch``, and
*correct* below it that to the end of the stage *correct*, as the progress line shows it.
Processor time includes child processes that have ended. ``--first`` needs root and runs with priority over all other
processes (SCHED_RR), which approximates an idle machine. ``--nvcc`` also runs nvcc in the simulator's check.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.course_copy import ROOT, copy_course

GRADER = [sys.executable, "-c", "from grader.cli import main; main()"]


def main() -> None:
    """Measure all cases and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercise", default="day06_flash_attention/flash_attention")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--nvcc", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    if options.first:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    if not options.nvcc:
        os.environ["GRADER_CHECK_NVCC"] = "off"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    solution = (ROOT / "solutions" / f"{options.exercise}.cu").read_text()
    with tempfile.TemporaryDirectory() as folder:
        course = copy_course(Path(folder))
        file = course / "exercises" / f"{options.exercise}.cu"
        chosen = [options.exercise, "--device", options.device]
        results = Path(folder) / "results.json"

        def save() -> None:
            file.write_text(f"{solution}\n// {time.monotonic_ns()}\n")

        def check() -> float:
            return _timed([*GRADER, "check", *chosen, "--json", str(results)], course, "Passed")

        def cold() -> float:
            save()
            return check()

        context = "; torch.zeros(1, device='cuda')" if options.device == "cuda" else ""
        _show("torch", lambda: _timed([sys.executable, "-c", f"import torch{context}"], course, ""), options.runs)
        _show("cold", cold, options.runs)
        for stage in json.loads(results.read_text())["stages"]:
            print(f"         {stage['name']:10} {stage['seconds']:.2f} s")
        _show("again", check, options.runs)
        save()
        with _Watch(course, chosen) as watch:
            _show("watch", lambda: watch.verdict(save), options.runs)
            if seen := sorted(watch.correct[1:]):  # without the run that fills the caches
                print(f"         correct    {statistics.median(seen):.2f} s")


def _show(name: str, run: Callable[[], float], runs: int) -> None:
    run()  # fill the caches
    before = _processor_seconds()
    seconds = sorted(run() for _ in range(runs))
    used = (_processor_seconds() - before) / runs
    print(f"{name:6} median {statistics.median(seconds):.2f} s, {seconds[0]:.2f} to {seconds[-1]:.2f}", end="")
    print(f", processor time {used:.2f} s" if used > 0.1 else "", flush=True)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _timed(command: list[str], folder: Path, expected: str) -> float:
    """Return the seconds that a command takes; stop unless it succeeds and prints ``expected``."""
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode or expected not in done.stdout:
        sys.exit(done.stdout + done.stderr)
    return seconds


class _Watch:
    """``grader watch`` in a pseudo-terminal."""

    def __init__(self, course: Path, chosen: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [*GRADER, "watch", *chosen], cwd=course, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.correct: list[float] = []
        """The seconds from each save to the end of the stage *correct*."""
        self._until_it_waits()

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._ours, b"q")
        self._process.wait(timeout=60)

    def verdict(self, save: Callable[[], None]) -> float:
        time.sleep(0.5)  # like a person, pause before the next save
        began = time.monotonic()
        save()
        said = self._until_it_waits(began)
        seconds = time.monotonic() - began
        if "Passed" not in said:
            sys.exit(said)
        return seconds

    def _until_it_waits(self, began: float = 0.0) -> str:
        said = ""
        while "waiting for a save" not in said:
            if not select.select([self._ours], [], [], 120)[0]:
                sys.exit(f"grader watch stopped printing: {said}")
            passed = "correct passed" in said
            said += os.read(self._ours, 65536).decode(errors="replace")
            if began and not passed and "correct passed" in said:
                self.correct.append(time.monotonic() - began)
        return said


if __name__ == "__main__":
    main()
