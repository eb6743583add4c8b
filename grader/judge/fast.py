"""Stage 5, *fast*, on a real GPU only: time, percent of the roofline, ratio to torch in the same run.

Times are taken twice: by events in the kernel's own process, over many runs and against torch, and by the grader's own
clock (``grader.timing.verified``), which the kernel cannot turn. A time depends on the GPU: it is shown, and fails only
where the exercise has a limit for this very GPU (``TimeBar``). What else fails is a kernel that cannot be timed, that is
wrong at the sizes that are timed, or whose time cannot be true.

A limit is on the median that events saw, the figure that ``grader bench`` shows: the grader's own clock also sees what it
costs to hand memory over, and is too coarse for times of a few microseconds. A median that it refutes has failed before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grader.building.build import compile_kernel
from grader.course.task import Exercise, TimeBar
from grader.errors import GraderError
from grader.runner.client import Child
from grader.runner.gpu import GpuMemory, SharingFailed, gpu_architecture
from grader.runner.program import build_runner
from grader.timing import verified
from grader.timing.bench import bench
from grader.timing.machine import Machine, measure_machine
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, TimeBarResult, Timing
from grader.verdict.facts import Status


def judge_fast(task: Exercise, file: Path) -> Stage:
    """Time the kernel at the exercise's bench sizes, without torch.compile, which takes long."""
    stage = Stage("fast")
    if not task.bench:
        stage.status, stage.summary = SKIPPED, "the exercise names no sizes to time"
        return stage
    try:
        machine = measure_machine()
        report = bench(task, file, "cuda", machine=machine, compiled=False)
        stage.timings = report.timings
        measured = verify(task, file, report.timings, machine)
    except SharingFailed as error:
        measured = []
        report.timings[0].note = f"These are times of the kernel's own process, and not verified: {error}."
    except GraderError as error:
        stage.status, stage.message, stage.summary = FAILED, str(error), "cannot be timed"
        return stage
    failed = next((result for result in measured if result.problem), None)
    unseen = next((timing for timing in report.timings if _unseen(timing)), None)
    if failed is not None:
        stage.status, stage.message, stage.summary = FAILED, failed.text, failed.problem
        return stage
    if unseen is not None:
        stage.status, stage.summary = FAILED, "its own times are not true"
        stage.message = (
            f"At {unseen.name} ({unseen.dtype}) events around the launch saw {unseen.median_us:.3g} us, the grader's clock "
            f"{unseen.verified_us:.3g} us: the launcher works on another stream than the one that it is given, or its times are forged."
        )
        return stage
    stage.time_bars = judge_times(task.time_bars, report.timings, machine.device)
    missed = [bar for bar in stage.time_bars if bar.status == FAILED]
    stage.status, stage.summary = (FAILED, "") if missed else (PASSED, _summary(report.timings))
    return stage


def judge_times(limits: Sequence[TimeBar], timings: Sequence[Timing], gpu: str) -> list[TimeBarResult]:
    """Each limit beside each time that it is for: met or missed on the GPU that it names, skipped on any other."""
    results = []
    for limit in limits:
        for timing in timings:
            if timing.name != limit.size or (limit.dtypes is not None and timing.dtype not in limit.dtypes):
                continue
            status: Status = PASSED if timing.median_us <= limit.at_most_us else FAILED
            if not re.search(rf"(?<!\w){re.escape(limit.gpu)}(?!\w)", gpu):
                status = SKIPPED
            results.append(
                TimeBarResult(
                    timing.name, timing.dtype, limit.gpu, limit.at_most_us, status, timing.median_us, gpu, limit.look
                )
            )
    return results


def _unseen(timing: Timing) -> bool:
    """Whether events saw far less than the grader's clock, by more than the chances of a busy machine."""
    if timing.verified_us is None or timing.verified_error_us is None:
        return False
    return timing.verified_us - verified.SIGNIFICANT * timing.verified_error_us > 1.5 * timing.median_us + 300


def verify(task: Exercise, file: Path, timings: Sequence[Timing], machine: Machine) -> list[verified.Measured]:
    """Measure all sizes by the grader's own clock, whatever the other says, and add what it tells to their times."""
    arch = gpu_architecture(task.architecture)
    by_size = {(timing.name, timing.dtype): timing for timing in timings}
    sizes = [(case, dtype) for case in task.bench for dtype in case.dtypes or task.dtypes]
    runner = build_runner("cuda", arch)
    kernel, nothing = (compile_kernel(path, "cuda", checks=False, arch=arch) for path in (file, verified.NOTHING))

    measured = verified.verify(
        task,
        sizes,
        lambda: Child(runner, kernel.library, kernel.libsim),
        lambda: Child(runner, nothing.library, nothing.libsim),
        GpuMemory,
        machine.limits(),
    )
    for result in measured:
        timing = by_size[(result.name, result.dtype)]
        if result.significant and not result.problem:  # of the others it only says that they are short
            timing.verified_us, timing.verified_error_us = result.microseconds, result.standard_error
    return measured


def _summary(timings: Sequence[Timing]) -> str:
    """The largest size in a line."""
    best = max(timings, key=lambda timing: timing.bytes)
    time = best.median_us if best.verified_us is None else best.verified_us
    parts = [f"{best.name} ({best.dtype}) {time:.1f} us{'' if best.verified_us is None else ' by our own clock'}"]
    if best.percent_of_roofline:
        parts.append(f"{best.percent_of_roofline:.0f} % of the roofline")
    if best.torch_ratio:
        parts.append(f"{best.torch_ratio:.2f} x torch")
    return ", ".join(parts)
