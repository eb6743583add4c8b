"""Measures where the time of a verdict on a GPU goes: ``python -m tests.cli.phases [EXERCISE...]``.

One process grades each solution ``--runs`` times, each time with a new comment, as ``grader watch`` does after a save.
For the last run, it prints the seconds until *correct* and *fast* ended, how often each step ran and how long its runs
took together, and the kernel's times in microseconds. A step contains the steps that it calls, and steps in threads
overlap, so the sums exceed the whole. A step is measured on the host: work that the GPU still has to do counts for the
step that waits for it. ``--before`` starts no runner before it is needed, and gives nvcc every flag.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STEPS = {
    "nvcc": "grader.execution.build.build:_compile_cuda",
    "start a runner ahead": "grader.execution.runner.client:Child.prepare",
    "start a runner, load the kernel": "grader.execution.runner.client:Child.start",
    "draw inputs before the kernel is built": "grader.judge.driver:draw_ahead",
    "run a case": "grader.judge.cases:run_case",
    "*fast*": "grader.judge.fast:judge_fast",
    "copy bandwidth and matmul rates": "grader.judge.fast:measure_machine",
    "driver's version": "grader.judge.timing.machine:_driver",
    "times by events": "grader.judge.fast:bench",
    "a size": "grader.judge.timing.bench:_time_one",
    "draw the inputs": "grader.judge.timing.bench:draw_on_gpu",
    "place the call": "grader.judge.timing.bench:placed",
    "torch's first calls": "grader.judge.timing.bench:_torch_clocks",
    "turns": "grader.judge.timing.bench:in_turns",
    "the kernel's turns": "grader.judge.timing.bench:time_in_child",
    "a copy of the size": "grader.judge.timing.bench:copy_of",
    "the grader's own clock": "grader.judge.fast:verify",
    "prepare a size": "grader.judge.timing.verified:Clock.__post_init__",
    "a size with the empty kernel": "grader.judge.timing.verified:Clock.time_nothing",
    "a size with the kernel": "grader.judge.timing.verified:Clock.time",
    "draw the inputs of a set": "grader.judge.timing.verified:draw_on_gpu",
    "a call": "grader.judge.timing.verified:Clock._one",
    "allocate shared memory": "grader.execution.runner.gpu:GpuMemory.__init__",
    "free shared memory": "grader.execution.runner.gpu:GpuMemory.close",
    "requests to the kernel's process": "grader.execution.runner.client:Child.receive",
    "compare outputs": "grader.judge.timing.verified:Clock._differences",
    "reference": "grader.judge.timing.verified:_expected",
    "ask for other processes": "grader.judge.timing.others:_ask",
}
"""The function of each step, as ``module:name``."""


class Steps:
    """The number of calls and the seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its duration to a step."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                with self._lock:
                    self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
                    self.calls[name] = self.calls.get(name, 0) + 1

        return call

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Time all steps in this context."""
        with contextlib.ExitStack() as restored:
            for name, place in STEPS.items():
                module, _, path = place.partition(":")
                *outer, last = path.split(".")
                owner = functools.reduce(getattr, outer, importlib.import_module(module))
                function = getattr(owner, last)
                setattr(owner, last, self.timed(name, function))
                restored.callback(setattr, owner, last, function)
            yield


def main() -> None:
    """Grade the solutions and print the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["day01_residual_add/residual_add", "day06_flash_attention/flash_attention"]
    parser.add_argument("exercises", nargs="*", default=names)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--before", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    import torch

    torch.zeros(1, device="cuda")
    print(f"import torch and create a context: {time.perf_counter() - began:.2f} s", flush=True)
    from grader.course import Course
    from tests.course_copy import copy_course

    if options.before:
        _work_as_before()
    with tempfile.TemporaryDirectory() as folder:
        course = Course(copy_course(Path(folder)))
        os.chdir(folder)
        for name in options.exercises:
            for run in range(options.runs):
                _grade(course, name, last=run == options.runs - 1)


def _grade(course: Any, name: str, last: bool) -> None:
    from grader.judge import check

    entry, ends, steps = course.find(name), {}, Steps()
    entry.skeleton.write_text(f"{entry.solution.read_text()}\n// {time.monotonic_ns()}\n")

    def note(event: Any) -> None:
        if event.event == "finished":
            ends[event.stage] = time.perf_counter() - began

    with steps.measured() if last else contextlib.nullcontext():
        began = time.perf_counter()
        verdict = check(entry, device="cuda", times="renew", ahead=True, on_progress=note)
        whole = time.perf_counter() - began
    stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in ends.items())
    print(f"\n{name}: {stages}, end {whole:.2f} s", flush=True)
    if not verdict.passed:
        sys.exit(f"the solution fails: {[(stage.name, stage.status, stage.message) for stage in verdict.stages]}")
    for step in STEPS:
        if step in steps.seconds:
            print(f"  {step:40} {steps.calls[step]:4} x {steps.seconds[step]:7.3f} s", flush=True)
    for timing in verdict.stages[-1].timings if last else ():
        verified = "not measurable"
        if timing.verified_us is not None:
            verified = f"{timing.verified_us:.1f} +- {timing.verified_error_us:.1f}"
        print(
            f"  {timing.name} ({timing.dtype}): {timing.median_us:.1f} us by events, {verified} by the grader's clock"
        )


def _work_as_before() -> None:
    from grader.execution.build import build
    from grader.judge import driver

    setattr(build, "may_have_extended_lambda", lambda source: True)  # noqa: B010
    setattr(driver, "_warm_runners", lambda *_: contextlib.nullcontext())  # noqa: B010


if __name__ == "__main__":
    main()
