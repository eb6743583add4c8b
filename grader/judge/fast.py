"""Stage 5, *fast*: the kernel's time on a real GPU, compared with the roofline and with torch.

Times are measured twice. First, CUDA events in the kernel's own process time many runs, as ``grader bench`` does. Then
the grader's own clock measures the time (``grader.judge.timing.verified``), because the kernel could manipulate events.
The stage fails if the kernel cannot be timed, if its output is wrong at the timed sizes, or if its time is impossible.
A slow kernel fails only if the exercise has a limit for this GPU (``TimeBar``), because times depend on the GPU. Most
limits follow from goals that the course's solutions meet (``grader.judge.timing.goals``).

A limit applies to the median of the times by events. The grader's own clock is too coarse for times of a few
microseconds, because it includes the overhead of passing memory. If the two times contradict each other, the stage
fails before limits are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.course.task import Exercise, TimeBar
from grader.execution.build.build import compile_kernel
from grader.execution.jail.running import Jail
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import GpuMemory, SharingFailed, gpu_architecture, uuid
from grader.execution.runner.program import build_runner
from grader.execution.runner.warm import WarmRunners
from grader.judge.timing import others, turns, verified
from grader.judge.timing.bench import bench
from grader.judge.timing.events import QUICK
from grader.judge.timing.machine import Machine, measure_machine
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, Stage, TimeBarResult, Timing
from grader.verdict.facts import Status
from grader.verdict.wording import timed


def judge_fast(
    task: Exercise,
    file: Path,
    jail: Jail,
    say: Callable[[str], None] = lambda step: None,
    warm: WarmRunners | None = None,
) -> Stage:
    """Time the kernel at the exercise's bench sizes, without torch.compile, which takes long.

    ``say`` is called with the name of each step. ``warm`` are runners that have already started.
    """
    stage = Stage("fast")
    if not task.bench:
        stage.status, stage.summary = SKIPPED, timed.NO_SIZES
        return stage
    measured: list[verified.Measured] = []
    try:
        gpu = uuid()
        if warm is not None:
            warm.settle()
        with turns.turn(gpu, alone=True) as granted, others.watch(gpu) as seen:
            say("the GPU's copy bandwidth and matmul rates")
            # The rooflines of a task need the rates of these dtypes.
            machine = measure_machine(frozenset([task.flops_of] if task.flops_of else task.dtypes))
            report = bench(
                task, file, "cuda", machine=machine, compiled=False, pace=QUICK, on_progress=say, jail=jail, warm=warm
            )
            stage.timings = report.timings
            say("the grader's own clock")
            try:
                measured = verify(task, file, report.timings, machine, jail, warm)
            except SharingFailed as error:
                report.timings[0].note = timed.not_verified(str(error))
    except GraderError as error:
        stage.status, stage.message, stage.summary = FAILED, str(error), timed.NOT_TIMED
        return stage
    return judge_measured(stage, task, measured, machine.device, busy=bool(seen.busy) or not granted)


def judge_measured(
    stage: Stage, task: Exercise, measured: Sequence[verified.Measured], gpu: str, busy: bool = False
) -> Stage:
    """Return the result of the stage from the times. ``busy`` is true if others used the GPU during the measurement.

    No time is reliable then, so the stage is skipped.
    """
    failed = next((result for result in measured if result.problem and not (busy and result.impossible)), None)
    if failed is not None:
        stage.status, stage.message, stage.summary = FAILED, failed.text, failed.problem
        return stage
    if busy:
        for timing in stage.timings:
            timing.verified_us = timing.verified_error_us = None
            timing.note = f"{timing.note} {timed.BUSY_NOTE}".strip()
        stage.status, stage.summary, stage.message = SKIPPED, timed.BUSY, timed.BUSY_NOTE
        return stage
    contradicted = next((timing for timing in stage.timings if _contradicted(timing)), None)
    if contradicted is not None:
        stage.status, stage.message, stage.summary = FAILED, timed.contradicted(contradicted), timed.CONTRADICTED
        return stage
    stage.time_bars = judge_times(task.time_bars, stage.timings, gpu)
    missed = [bar for bar in stage.time_bars if bar.status == FAILED]
    stage.status, stage.summary = (FAILED, "") if missed else (PASSED, timed.summary(stage.timings))
    return stage


def judge_times(limits: Sequence[TimeBar], timings: Sequence[Timing], gpu: str) -> list[TimeBarResult]:
    """Compare each limit with the times of its size.

    A limit is a time on one model of GPU. On another model, the kernel must reach the limit's share of that model's
    roofline instead. There, a limit without a share is skipped.
    """
    results = []
    for limit in limits:
        for timing in timings:
            if timing.name != limit.size or (limit.dtypes is not None and timing.dtype not in limit.dtypes):
                continue
            at_most_us, share = limit.at_most_us, None
            skipped = not re.search(rf"(?<!\w){re.escape(limit.gpu)}(?!\w)", gpu)
            if skipped and limit.share_of_roofline and timing.percent_of_roofline:
                share = limit.share_of_roofline
                at_most_us = timing.median_us * timing.percent_of_roofline / 100 / share
                skipped = False
            status: Status = SKIPPED if skipped else PASSED if timing.median_us <= at_most_us else FAILED
            results.append(
                TimeBarResult(
                    timing.name,
                    timing.dtype,
                    limit.gpu,
                    at_most_us,
                    status,
                    timing.median_us,
                    gpu,
                    limit.look,
                    share_of_roofline=share,
                )
            )
    return results


def _contradicted(timing: Timing) -> bool:
    """Return whether the time by events is much less than that by the grader's clock: it was probably manipulated."""
    if timing.verified_us is None or timing.verified_error_us is None:
        return False
    return timing.verified_us - verified.SIGNIFICANT * timing.verified_error_us > 1.5 * timing.median_us + 300


def verify(
    task: Exercise,
    file: Path,
    timings: Sequence[Timing],
    machine: Machine,
    jail: Jail,
    warm: WarmRunners | None = None,
) -> list[verified.Measured]:
    """Measure all sizes with the grader's own clock, and add these times to ``timings``."""
    arch = gpu_architecture(task.architecture)
    by_size = {(timing.name, timing.dtype): timing for timing in timings}
    sizes = task.timed_sizes()
    runner = build_runner("cuda", arch)
    kernel, nothing = (compile_kernel(path, "cuda", checks=False, arch=arch) for path in (file, verified.NOTHING))

    # The second process of the empty kernel starts when the kernel's process has ended, so that nothing can reach it.
    before = [warm]

    def empty() -> Child:
        return Child(runner, nothing.library, nothing.libsim, jail=jail, warm=before.pop() if before else None)

    measured = verified.verify(
        task,
        sizes,
        lambda: Child(runner, kernel.library, kernel.libsim, jail=jail, warm=warm),
        empty,
        GpuMemory,
        machine.limits(),
    )
    for result in measured:
        timing = by_size[(result.name, result.dtype)]
        if result.significant and not result.problem:  # the time is long enough to be measured precisely
            timing.verified_us, timing.verified_error_us = result.microseconds, result.standard_error
    return measured
