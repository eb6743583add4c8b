"""``grader bench --here``: times of the course's solutions on this machine's GPU, at the sizes of the recorded times.

The times are kept in the learner's own folder ``.grader``, in one file for each GPU. The file is written after each
exercise, and a later run measures only what the file lacks: new sizes, changed solutions, and sizes that could not be
timed. The notes of such sizes name the reason.

Torch is not timed, which halves the time and the memory. ``grader bench`` compares a kernel with torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course, Entry
from grader.course.task import Bench, Exercise, shape_of
from grader.execution.build.build import compile_kernel
from grader.execution.runner.gpu import gpu_architecture, uuid
from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.toolchain.compilers import find_nvcc
from grader.judge.timing import turns
from grader.judge.timing.bench import GPU_CLOCK, BenchReport, bench
from grader.judge.timing.machine import Machine, gpu_name, measure_machine
from grader.judge.timing.recordings import read_reports, record, recorded, sources
from grader.setup.errors import GraderError
from grader.verdict import Timing, words

COMMAND = "grader bench --here"

Size = tuple[Bench, str]
"""A size of an exercise, and a dtype."""


@dataclass(frozen=True)
class Compared:
    """The times of one exercise on this machine's GPU and on an H200, by size and dtype."""

    entry: Entry
    here: BenchReport
    h200: BenchReport | None
    """The recorded times; None if the course has none for an H200."""

    def rows(self) -> list[tuple[Timing, Timing | None]]:
        """Return each time with the recorded one; the second is None if that size is not recorded."""
        known = {(t.name, t.dtype): t for t in self.h200.timings} if self.h200 else {}
        return [(timing, known.get((timing.name, timing.dtype))) for timing in self.here.timings]


def timed_exercises(entries: Sequence[Entry]) -> list[Entry]:
    """Return the exercises that have sizes to time."""
    return [entry for entry in entries if entry.language == "cuda" and entry.load().bench]


def check_gpu() -> str:
    """Return the name of the first GPU. Raise GraderError if there is none, or no nvcc, or no torch for GPUs."""
    try:
        gpu_architecture()  # the driver answers before torch is imported
    except GraderError as error:
        raise GraderError(
            error.message,
            f"Run `{COMMAND}` on a machine with an NVIDIA GPU. `grader doctor` shows what is missing here, and\n"
            "`grader bench NAME --recorded` shows the times of an H200.",
        ) from error
    find_nvcc()
    return gpu_name()


def file_for(root: Path, gpu: str) -> Path:
    """Return the file for the times of a GPU."""
    return root / ".grader" / f"bench_{'_'.join(re.findall('[a-z0-9]+', gpu.lower()))}.json"


def newest_file(root: Path) -> Path | None:
    """Return the file that was written last; None if nothing was measured on this machine."""
    files = sorted((root / ".grader").glob("bench_*.json"), key=lambda path: path.stat().st_mtime)
    return files[-1] if files else None


def compared(course: Course, file: Path, entries: Sequence[Entry] | None = None) -> list[Compared]:
    """Return the kept times beside the recorded ones, for all exercises or for ``entries``."""
    kept = read_reports(file)
    found = []
    for entry in course.exercises if entries is None else entries:
        if entry.name in kept:
            other = recorded(entry)
            is_h200 = other is not None and re.search(r"\bH200\b", other.machine.device)
            found.append(Compared(entry, kept[entry.name], other if is_h200 else None))
    return found


def machines(found: Sequence[Compared]) -> dict[str, Machine]:
    """Return the machine of the last measurement ("here") and that of the last recorded one ("H200")."""
    reports = {"here": [one.here for one in found], "H200": [one.h200 for one in found if one.h200]}
    return {name: max(of, key=lambda report: report.date).machine for name, of in reports.items() if of}


def missing(task: Exercise, kept: BenchReport | None) -> list[Size]:
    """Return the sizes for which ``kept`` has no time."""
    known = {(timing.name, timing.dtype) for timing in kept.timings if timing.median_us} if kept else set()
    return [size for size in task.timed_sizes() if (size[0].name, size[1]) not in known]


def run(
    entries: Sequence[Entry],
    file: Path,
    measure: Callable[[Entry, Exercise, list[Size]], BenchReport],
    gpu: str,
    on_progress: Callable[[int, int, str], None],
) -> None:
    """Measure the sizes that ``file`` lacks, and keep the times of each exercise in it.

    ``on_progress`` is called with the number of sizes measured by this run, the number of sizes left, and the exercise
    that follows.
    """
    kept = {name: report for name, report in read_reports(file).items() if report.machine.device == gpu}
    planned = []
    for entry in entries:
        task, before = entry.load(), kept.get(entry.name)
        if before is not None and before.sources != sources(entry):
            before = None
        planned.append((entry, task, before, missing(task, before)))
    done, left = 0, sum(len(sizes) for *_, sizes in planned)
    for entry, task, before, sizes in planned:
        if sizes:
            on_progress(done, left, entry.variable)
            record(_merged(task, before, measure(entry, task, sizes)), entry, file)
            done, left = done + len(sizes), left - len(sizes)


class Measurer:
    """Times solutions on the first GPU. The bandwidth and the matmul rates of the GPU are measured once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._machine: Machine | None = None

    def measure(self, entry: Entry, task: Exercise, sizes: list[Size]) -> BenchReport:
        """Time a solution. A size that cannot be timed gets a ``Timing`` without times, whose note is the reason."""
        if self._machine is None:
            self.say("measuring the GPU's bandwidth and matmul rates")
            with turns.turn(uuid(), alone=True):
                self._machine = measure_machine()
        try:
            self.say("building")
            compile_kernel(entry.solution, "cuda", checks=False, arch=gpu_architecture(task.architecture))
            timings = self._time(entry, task, sizes)
        except GraderError as error:
            timings = [_untimed(task, size, error.message) for size in sizes]
        today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        return BenchReport(entry.name, entry.file_name, "cuda", self._machine, timings, today, COMMAND)

    def _time(self, entry: Entry, task: Exercise, sizes: list[Size]) -> list[Timing]:
        import torch

        free = torch.cuda.mem_get_info()[0]
        needed = [(size, needed_bytes(task, *size)) for size in sizes]
        fitting = [size for size, total in needed if total <= free]
        timings = [
            _untimed(task, size, f"it needs at least {words.amount(total)}; {words.amount(free)} of the GPU are free")
            for size, total in needed
            if total > free
        ]
        if len(fitting) > 1:
            with contextlib.suppress(GraderError):
                return timings + self._bench(entry, task, fitting)
        for size in fitting:  # one after the other, so that a size that fails does not stop the others
            try:
                timings += self._bench(entry, task, [size])
            except GraderError as error:
                timings.append(_untimed(task, size, error.message))
        return timings

    def _bench(self, entry: Entry, task: Exercise, sizes: list[Size]) -> list[Timing]:
        import torch

        only, chosen = dataclasses.replace(task, torch_baseline=None), {(case.name, dtype) for case, dtype in sizes}
        try:
            report = bench(only, entry.solution, machine=self._machine, sizes=chosen, on_progress=self.say)
            return report.timings
        except torch.OutOfMemoryError as error:
            raise GraderError("the GPU's memory is not large enough") from error
        finally:
            torch.cuda.empty_cache()


def needed_bytes(task: Exercise, case: Bench, dtype: str) -> int:
    """Return a lower bound on the memory that timing a size takes: its inputs are drawn, then copied for the kernel."""
    values = task.scalars_of(task.dims_of(case, 0))
    tensors = [(spec.shape, spec.dtype, 2) for spec in task.inputs.values()]
    tensors += [(spec.shape, spec.dtype, 1 + spec.inout) for spec in task.outputs.values()]
    return sum(
        copies * math.prod(shape_of(shape, values)) * ITEM_BYTES[own_dtype or dtype]
        for shape, own_dtype, copies in tensors
    )


def _untimed(task: Exercise, size: Size, reason: str) -> Timing:
    """Return a ``Timing`` without times. The note is the first line of the reason, without the name of the size."""
    case, dtype = size
    note = reason.splitlines()[0].removeprefix(f"{task.name} at {case.name} ({dtype}): ")
    return Timing(case.name, dtype, GPU_CLOCK, note=note)


def _merged(task: Exercise, before: BenchReport | None, now: BenchReport) -> BenchReport:
    """Return the new report with the times of ``before`` that it lacks, in the order of the task."""
    timings = {(timing.name, timing.dtype): timing for timing in [*(before.timings if before else ()), *now.timings]}
    keys = [(case.name, dtype) for case, dtype in task.timed_sizes()]
    return dataclasses.replace(now, timings=[timings[key] for key in keys if key in timings])
