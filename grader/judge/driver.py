"""Runs the stages of a check in order and skips those that depend on a failed one.

Slow steps overlap. The kernel, the simulator and the runner compile while torch is imported and creates its context on
a GPU, and while runners start there. The references are computed while the kernel compiles, or while child processes
run the kernel. The case of *efficient* runs among those of *correct*, and its result is discarded if an earlier stage
fails.
"""

from __future__ import annotations

import datetime
import hashlib
import platform
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import grader
from grader.course import Course, Entry
from grader.course.catalog import file_to_grade
from grader.course.manifest import FILE, OF_PYTHON
from grader.course.puzzles import Puzzle
from grader.course.python_task import PythonExercise
from grader.course.task import Exercise
from grader.execution.jail.running import Jail
from grader.execution.runner.client import Child, LoadFailed
from grader.frontend.toolchain.gpus import Gpu, find_gpu, gpu_for
from grader.judge.build_job import Building, Job
from grader.judge.builds import Builder, Built, add_answer
from grader.judge.cases import CasePool, Run, draw_ahead, plan
from grader.judge.correct import judge_correct
from grader.judge.efficient import judge_efficient, needs
from grader.judge.nvcc import Answer, launches_of
from grader.judge.operations import TOTALS as OPERATIONS
from grader.judge.operations import Operations, bound_of
from grader.judge.options import CheckEvent, CheckOptions
from grader.judge.safe import judge_safe
from grader.judge.schedules import in_reverse
from grader.judge.simulated import attach_findings
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, STAGES, Stage, Verdict
from grader.verdict.wording.stages import summary, why_skipped

if TYPE_CHECKING:
    from grader.execution.runner.warm import WarmRunners
    from grader.judge.recorded import Recorded
    from grader.judge.timing.kept import Kept
    from grader.simulator.report import Report

LAST = 6
"""The maximum number of cases of *correct* that start after those of *efficient*: see ``_in_order``."""

SETTINGS = {"checks": "1", "watchdog_seconds": "3"}
"""The simulator's settings during a check."""

WARM, MUCH_MEMORY = 4, 20 << 30
"""The number of runners that start while a kernel compiles for a GPU with at least that much memory, in bytes.

One runs the cases. Two of *fast* run the kernel, and one the empty kernel. Each takes up to half a GB of the GPU.
"""


def run_check(
    exercise: Entry | Exercise | str,
    file: str | Path | None,
    options: CheckOptions,
) -> Verdict:
    """Do the work of ``grader.judge.check``, which describes the parameters."""
    device = options.device
    started = time.monotonic()
    entry = Course().find(exercise) if isinstance(exercise, str) else exercise
    path = file_to_grade(entry, file)
    wanted = _stages(options.stages, device)
    peak = find_gpu(options.gpu)
    verdict = Verdict(
        exercise=entry.name,
        title=entry.title,
        file=str(path),
        device=device,
        seed=secrets.randbits(48) if options.seed is None else options.seed,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        source_sha256=_hash(path),
    )
    verdict.command = f"grader check {entry.name} --file {path} --device {device} --seed {verdict.seed}"
    options.report(CheckEvent("builds", "started"))
    if entry.language == "python" if isinstance(entry, Entry) else isinstance(entry, PythonExercise):
        _check_python(entry, path, options, wanted, verdict)
        return _completed(verdict, wanted, OF_PYTHON, None, started)
    ask_nvcc = (device == "cpu" or options.details) and not isinstance(entry, Puzzle)  # a puzzle needs no nvcc
    job = Job(path, device, entry.architecture, ask_nvcc)
    with Builder(job, options.own_process) as builder, ExitStack() as drawn:
        warm = None
        if device == "cuda" and options.ahead:
            warm = drawn.enter_context(_warm_runners(builder.building, wanted))
        task = entry.load() if isinstance(entry, Entry) else entry  # imports torch while the builder compiles
        times: Kept | None = None
        if device == "cuda" and "fast" in wanted:
            task, times = _ready_to_time(entry, task, path, options)
        verdict.title, verdict.kind, verdict.points = task.title, task.kind, task.points
        runs, counted = _planned(task, device, wanted, verdict.seed)
        if options.ahead:
            builder.building.translated()
            with _one_thread():
                draw_ahead(task, _in_order(runs, counted), builder.building.kernel.done, drawn)
        held = builder.building.jail.result()
        verdict.isolation, verdict.isolation_note = held.tier, held.note
        stage, built = builder.finish(task)
        verdict.stages.append(stage)
        options.report(CheckEvent("builds", "finished", status=stage.status))
        if built is not None:
            counting = device == "cpu" and (options.details or needs(task, OPERATIONS))
            operations = Operations(path, held.jail) if counting else None
            check = _Check(
                task,
                path,
                built,
                (runs, counted),
                replace(options, stages=wanted),
                held.jail,
                operations,
                builder.building.nvcc,
                peak,
                replace(times, tier=held.tier) if times is not None else None,
                warm,
            )
            later = check.run() if set(wanted) != {"builds"} else []
            if options.on_recording is not None and (recorded := check.record()) is not None:
                options.on_recording(recorded)
            if builder.building.nvcc is not None:
                on = gpu_for(entry.architecture, peak)
                add_answer(stage, builder.building.nvcc.result(), launches_of(check.reports), on)
            if stage.passed:
                verdict.stages += later
            else:
                options.report(CheckEvent("builds", "finished", status=stage.status))
    return _completed(verdict, wanted, STAGES, built, started)


def _check_python(
    entry: Entry | Exercise, path: Path, options: CheckOptions, wanted: list[str], verdict: Verdict
) -> None:
    """Add the stages of a Python file to the verdict."""
    from grader.judge.python_file import check_python

    task = entry.load() if isinstance(entry, Entry) else entry
    if not isinstance(task, PythonExercise):
        raise GraderError(f"{entry.name} is not a PythonExercise in its tasks.py", f"{FILE} says that it is Python.")
    verdict.title, verdict.kind, verdict.points = task.title, task.kind, task.points
    verdict.device = "python"
    verdict.command = f"grader check {entry.name} --file {path} --seed {verdict.seed}"
    verdict.stages += check_python(task, path.absolute(), options, wanted, verdict)


def _completed(
    verdict: Verdict, wanted: Sequence[str], existing: Sequence[str], built: Built | None, started: float
) -> Verdict:
    """Add those of the ``existing`` stages that did not run, the summaries, and the result."""
    done = {stage.name for stage in verdict.stages}
    for name in existing:
        if name not in done:
            verdict.stages.append(Stage(name, SKIPPED, why_skipped(name, verdict, wanted, verdict.device)))
    verdict.stages.sort(key=lambda stage: STAGES.index(stage.name))
    for stage in verdict.stages:
        stage.summary = summary(stage)
    ran = [stage for stage in verdict.stages if stage.status != SKIPPED]
    verdict.passed = all(stage.status == PASSED for stage in ran)
    verdict.score = float(verdict.points) if verdict.passed else 0.0
    verdict.versions = _versions(built)
    verdict.seconds = time.monotonic() - started
    return verdict


def _ready_to_time(
    entry: Entry | Exercise, task: Exercise, file: Path, options: CheckOptions
) -> tuple[Exercise, Kept | None]:
    """Return the task with the limits that goals set, and the place where a check's times are kept.

    Raise GraderError if this machine cannot time kernels.
    """
    from grader.execution.runner.gpu import require_torch, start_context
    from grader.judge.timing.goals import with_time_bars
    from grader.judge.timing.kept import kept

    require_torch()
    times: Kept | None = None
    if isinstance(entry, Entry):
        task = with_time_bars(entry, task)
        times = None if options.times == "measure" else kept(entry, task, file)
    if options.ahead and not (options.times == "reuse" and times is not None and times.exists):
        start_context()
    return task, times


def _warm_runners(building: Building, stages: Sequence[str]) -> WarmRunners:
    """Start runners while the kernel compiles. The first is for the stage *correct*, the others for *fast*."""
    from grader.execution.runner.gpu import total_memory, uuid
    from grader.execution.runner.warm import WarmRunners
    from grader.judge.timing.turns import turn

    def children() -> Iterator[Child]:
        program, jail = building.runner.result(), building.jail.result().jail
        yield Child(program, Path(), jail=jail)
        if "fast" in stages and total_memory() >= MUCH_MEMORY:
            for _ in range(WARM - 1):
                yield Child(program, Path(), jail=jail)

    return WarmRunners(children(), lambda: turn(uuid(), alone=False))


@dataclass
class _Check:
    """Runs the stages after *builds*."""

    task: Exercise
    file: Path
    built: Built
    planned: tuple[list[Run], list[Run]]
    options: CheckOptions
    jail: Jail
    operations: Operations | None
    nvcc: Future[Answer] | None
    gpu: Gpu
    times: Kept | None
    warm: WarmRunners | None = None

    def __post_init__(self) -> None:
        self.device, self.stages, self.report = self.options.device, self.options.stages or (), self.options.report
        self.settings = {**SETTINGS, "same_value_races": str(int(self.options.same_value_races))}
        self.reports: list[Report | None] = []
        """The simulator's report of each run."""
        self.runs: list[Run] = []

    def run(self) -> list[Stage]:
        """Run the requested stages; return their results."""
        began = time.monotonic()
        runs, counted = self.planned
        self.report(CheckEvent("correct", "started", total=len(runs)))
        with self._turn():
            self._run_cases(runs, counted)
        seconds = time.monotonic() - began
        self.reports = [run.simulated for run in (*runs, *counted)]
        repeated = self._run_in_reverse(runs, counted) if "safe" in self.stages else []
        self.runs = [*runs, *counted, *repeated]
        correct = judge_correct(runs, repeated)
        correct.seconds = seconds
        self.report(CheckEvent("correct", "finished", status=correct.status))
        stages = [correct]
        if self.device == "cpu":
            safe = judge_safe([*runs, *counted], repeated)
            if "safe" in self.stages and (correct.passed or safe.findings):
                stages.append(safe)
                self.report(CheckEvent("safe", "finished", status=safe.status))
            if counted and correct.passed and safe.passed:
                resources = self.nvcc.result().resources(launches_of(self.reports)) if self.nvcc is not None else []
                if self.operations is not None:
                    runs = counted if needs(self.task, OPERATIONS) else counted[:1]
                    self.operations.count(self.task, runs, self._child)
                efficient = judge_efficient(self.task, counted, resources)
                if self.operations is not None:
                    self.operations.add_to(efficient, counted[0], self.gpu)
                elif counted[0].simulated is not None:
                    efficient.bound = bound_of(counted[0], counted[0].simulated.kernels, self.gpu)
                stages.append(efficient)
                self.report(CheckEvent("efficient", "finished", status=efficient.status))
        elif "fast" in self.stages and correct.passed:
            self.report(CheckEvent("fast", "started"))
            began = time.monotonic()
            stages.append(self._fast())
            stages[-1].seconds = time.monotonic() - began
            self.report(CheckEvent("fast", "finished", status=stages[-1].status))
        return stages

    def _fast(self) -> Stage:
        """Time the kernel, or return the result of an earlier check."""
        from grader.judge.fast import judge_fast

        if self.times is not None and self.options.times == "reuse" and (known := self.times.find()) is not None:
            return known
        stage = judge_fast(
            self.task, self.file, self.jail, lambda step: self.report(CheckEvent("fast", "step", case=step)), self.warm
        )
        if self.times is not None:
            self.times.keep(stage)
        return stage

    def record(self) -> Recorded | None:
        """Run a case again and record the steps of one block, which a web page can play back."""
        if self.device != "cpu":
            return None
        from grader.judge.recorded import record

        kernel = self.built.kernel
        return record(
            self.task,
            self.runs,
            kernel,
            self.file,
            lambda settings: self._child(settings={**self.settings, **settings}),
        )

    def _turn(self) -> AbstractContextManager[object]:
        """Return a context in which this process may use the GPU together with others that do not measure times."""
        if self.device == "cpu":
            return nullcontext()
        from grader.execution.runner.gpu import uuid
        from grader.judge.timing.turns import turn

        return turn(uuid(), alone=False)

    def _run_cases(self, runs: list[Run], counted: list[Run]) -> None:
        done = 0

        def count(run: Run) -> None:
            nonlocal done
            if not run.counted:
                done += 1
                self.report(CheckEvent("correct", "case", done, len(runs), run.case.name, run.result.status))

        pool = CasePool(self.task, self._child, self._read, count)
        if self.device != "cpu":
            pool.helpers = 1
        self._run_all(_in_order(runs, counted), pool, runs)

    def _run_in_reverse(self, runs: list[Run], counted: list[Run]) -> list[Run]:
        """Run some cases a second time, with the blocks and warps in reverse order. Return these runs."""
        repeated = in_reverse([*runs, *counted]) if self.device == "cpu" else []
        if repeated:
            settings = {**self.settings, "schedule": "reverse"}
            pool = CasePool(self.task, lambda: self._child(settings=settings), self._read)
            pool.helpers = 1  # the runs are few and small, and each child takes time to start
            self._run_all(repeated, pool, runs)
        return repeated

    def _run_all(self, chosen: list[Run], pool: CasePool, runs: list[Run]) -> None:
        """Run the chosen cases. If a child cannot load the kernel, all ``runs`` fail."""
        try:
            with _one_thread():
                pool.run(chosen)
        except LoadFailed as error:
            for run in runs:
                run.result.status, run.result.problem, run.result.reasons = FAILED, "load", [str(error)]

    def _read(self, run: Run) -> None:
        if self.device == "cpu":
            attach_findings(run, self.built.kernel.library, self.file)

    def _child(
        self, library: Path | None = None, libsim: Path | None = None, settings: dict[str, str] | None = None
    ) -> Child:
        """Return a child process for the kernel's library, or for ``library``, another build of the same kernel."""
        kernel = self.built.kernel
        settings = (settings or self.settings) if self.device == "cpu" else {}
        library, libsim = library or kernel.library, libsim or kernel.libsim
        return Child(self.built.runner, library, libsim, settings, jail=self.jail, warm=self.warm)


def _planned(task: Exercise, device: str, stages: Sequence[str], seed: int) -> tuple[list[Run], list[Run]]:
    """Return the runs of the stage *correct*, and those of the stage *efficient*."""
    counted: list[Run] = []
    if device == "cpu" and "efficient" in stages and task.efficient and task.bars:
        dtypes = task.efficient.dtypes or task.dtypes
        counted = plan(task, [(task.efficient, dtype) for dtype in dtypes], seed, counted=True)
    return plan(task, task.runs(), seed), counted


def _in_order(runs: list[Run], counted: list[Run]) -> list[Run]:
    """Return all runs in the order in which they start.

    The counted runs are long. They start before the last ``LAST`` runs, so that both children end at about the same
    time.
    """
    begin = max(len(runs) - LAST, (len(runs) + 1) // 2)
    return [*runs[:begin], *counted, *runs[begin:]]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one thread, so that its idle threads do not take cores from compilers and kernels."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _stages(stages: Sequence[str] | None, device: str) -> list[str]:
    if device not in ("cpu", "cuda"):
        raise GraderError(f"unknown device {device!r}", "Use cpu (the simulator) or cuda (a real GPU).")
    for name in stages or ():
        if name not in STAGES:
            raise GraderError(f"unknown stage {name!r}", f"The stages are {', '.join(STAGES)}.")
    return list(stages or STAGES)


def _versions(built: Built | None) -> dict[str, str]:
    import torch

    versions = {
        "grader": grader.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if built is not None:
        versions["compiler"] = built.kernel.compiler
    return versions


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}") from error
