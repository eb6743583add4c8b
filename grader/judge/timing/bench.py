"""``grader bench``: the time of a kernel, compared with the roofline and with torch, all measured in one run.

On a GPU, the kernel runs in the child process of ``grader.execution.runner``, and torch in this process. Both are timed
in the same way, and take turns. Each run is between two CUDA events. Before the first run, a kernel that only waits is
launched: the launches queue up behind it, so the device never waits for the host, and the times are without launch
overhead. The inputs are not in the L2 cache: each run uses another copy of the arguments, and the copies together are
larger than the cache. If this needs too many copies, other memory is read before each run instead.

The roofline of a size is the longer of two times. The first is the time that its distinct bytes take at the bandwidth
of a large device-to-device copy. The second is the time that its operations take at the speed of torch's matmul of the
same dtype. Both speeds are measured in the same run. A small kernel cannot reach that bandwidth, and neither can a copy
of the same size; ``copy_us`` is the time of such a copy.

Without a GPU, only the time of the simulator on this machine's processor is measured. It says nothing about a GPU and
is labeled accordingly.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import logging
import os
import platform
import re
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Course, Entry
from grader.course.catalog import file_to_grade
from grader.course.inputs import named
from grader.course.task import Call, Case, Exercise
from grader.execution.build.build import compile_kernel
from grader.execution.jail.running import NO_JAIL, Jail
from grader.execution.runner.answers import Done, Ended, Malformed, Refused, parse_times, why_failed
from grader.execution.runner.buffers import Buffers, prepare
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import GpuMemory, SharingFailed, gpu_architecture, uuid
from grader.execution.runner.program import build_runner
from grader.execution.runner.warm import WarmRunners
from grader.frontend.prototype import parse_prototype, require_launcher
from grader.judge.timing import others, turns
from grader.judge.timing.events import THOROUGH, Pace, in_turns, percentiles, statistics, time_on_gpu
from grader.judge.timing.machine import Machine, measure_machine, roofline
from grader.judge.timing.on_device import prepare_on_device
from grader.setup.errors import GraderError
from grader.verdict import Timing
from grader.verdict.wording import timed

GPU = "cuda"
GPU_CLOCK = "GPU"
HOST_CLOCK = "time of the simulator on this machine's processor, not a GPU's time"

MOST_SETS = 16
TIMEOUT = 120.0
OURS = "ours"

_NOT_MAPPED = re.compile("cannot be mapped|cannot share memory")
"""The reason of a runner that cannot use the grader's device memory: ``map`` in ``runner/source/device_cuda.cu``."""

Clock = Callable[[int], list[float]]
"""A function that executes a number of runs, and returns the microseconds of each run."""


@dataclass
class BenchReport:
    """The times of the kernel of one exercise, and the machine on which they were measured."""

    exercise: str
    file: str
    device: str
    machine: Machine
    timings: list[Timing]
    date: str
    command: str
    sources: dict[str, str] = field(default_factory=dict)
    """The digests of the sources by path, and nvcc's flags. ``grader.judge.timing.recordings`` fills them in."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept


def bench(
    exercise: Entry | Exercise | str,
    file: str | Path | None = None,
    device: str = "cuda",
    *,
    machine: Machine | None = None,
    compiled: bool = True,
    pace: Pace = THOROUGH,
    sizes: Collection[tuple[str, str]] | None = None,
    command: str = "",
    on_progress: Callable[[str], None] | None = None,
    jail: Jail = NO_JAIL,
    warm: WarmRunners | None = None,
) -> BenchReport:
    """Time a kernel at the sizes of its exercise.

    Args:
        exercise: the exercise, or its name.
        file: the kernel file; None for the learner's own file, unless ``exercise`` is an ``Exercise``.
        device: "cuda" for a GPU, "cpu" for the simulator.
        machine: the machine of an earlier report of this process, which is then not measured again.
        compiled: true to compare with torch.compile as well, which takes seconds for each size.
        pace: how often the kernel and torch take turns, and how long each turn is.
        sizes: the sizes to time, each with a dtype; None for all.
        command: the command line that the report names.
        on_progress: a function that is called with the name of each step.
        jail: the kernel's sandbox on a GPU; by default none, so the kernel has the user's rights.
        warm: runners that have already started, of which the kernel may take one.
    """
    entry = Course().find(exercise) if isinstance(exercise, str) else exercise
    path = file_to_grade(entry, file)
    task = entry.load() if isinstance(entry, Entry) else entry
    say = on_progress or (lambda text: None)
    if device == "cuda":
        gpu = uuid()
        with turns.turn(gpu, alone=True) as granted, others.watch(gpu) as seen:
            machine = machine or measure_machine()
            timings = _on_gpu(task, path, machine, compiled, pace, sizes, say, jail, warm)
        if seen.busy or not granted:
            for timing in timings:
                timing.note = f"{timing.note} {timed.BUSY_NOTE}".strip()
    elif device == "cpu":
        machine = machine or Machine(device=platform.processor() or platform.machine())
        timings = _on_simulator(task, path, machine, say)
    else:
        raise GraderError(f"unknown device {device!r}", "Use cpu (the simulator) or cuda (a real GPU).")
    return BenchReport(
        exercise=entry.name,
        file=path.name,
        device=device,
        machine=machine,
        timings=timings,
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        command=command or f"grader bench {entry.name} --device {device}",
    )


def _on_gpu(
    task: Exercise,
    path: Path,
    machine: Machine,
    compiled: bool,
    pace: Pace,
    sizes: Collection[tuple[str, str]] | None,
    say: Callable[[str], None],
    jail: Jail,
    warm: WarmRunners | None,
) -> list[Timing]:
    import torch

    if not task.bench:
        raise GraderError(f"{task.name} has no sizes to time", "Only exercises with `bench=` in tasks.py can be timed.")
    arch = gpu_architecture(task.architecture)
    say("building")
    kernel = compile_kernel(path, "cuda", checks=False, arch=arch)
    machine.compiler = str(kernel.plan.compiler)
    runner = build_runner("cuda", arch)
    timings = []
    shared = True
    with Child(runner, kernel.library, kernel.libsim, jail=jail, warm=warm) as child:
        for case, dtype in task.timed_sizes():
            if sizes is not None and (case.name, dtype) not in sizes:
                continue
            require_launcher(kernel.launchers, parse_prototype(task.prototype(dtype)), path.name)
            say(f"{case.name} ({dtype})")
            try:
                timing = _time_one(task, case, dtype, child, machine, compiled, pace, shared)
            except SharingFailed:  # use files from now on
                shared = False
                timing = _time_one(task, case, dtype, child, machine, compiled, pace, shared)
            timings.append(timing)
            torch.cuda.empty_cache()
    return timings


def _time_one(
    task: Exercise, case: Case, dtype: str, child: Child, machine: Machine, compiled: bool, pace: Pace, shared: bool
) -> Timing:
    call = draw_on_gpu(task, case, dtype, keep_on=GPU)
    least = task.roofline_bytes(call)
    size = sum(t.numel() * t.element_size() for t in call.tensors.values())
    sets, flush = rotation(size, machine.l2_bytes)
    timing = Timing(case.name, dtype, GPU_CLOCK, dict(call.dims), bytes=least, flops=task.operations(call))
    with placed(call, shared) as buffers:
        clocks: dict[str, Clock] = {
            OURS: lambda runs: time_in_child(task, call, buffers, child, runs, sets, flush, pace.warmup)
        }
        result = None
        if task.torch_baseline is not None:
            theirs, result = _torch_clocks(task, call, timing, sets, flush, compiled, pace)
            clocks.update(theirs)
        times = in_turns(clocks, pace)
        outputs = buffers.results()
    timing.runs = len(times[OURS])
    for name, value in statistics(times.pop(OURS)).items():
        setattr(timing, name, value)
    for name, microseconds in times.items():
        setattr(timing, name, percentiles(microseconds)["median_us"])
    if result is not None:
        timing.note = f"{difference(task, call, outputs, result)} {timing.note}".strip()
    timing.copy_us = copy_of(int(least), machine.l2_bytes, pace)
    roofline(timing, machine, task.flops_of)
    if faster := faster_than_possible(timing.median_us, machine.limits().floor_us(task, call)):
        timing.note = f"{case.name} ({dtype}): {faster}"
    return timing


def placed(call: Call, shared: bool) -> Buffers:
    """Return the memory of a call whose tensors are on the GPU: shared device memory, or files."""
    if shared:
        return prepare_on_device(call, GpuMemory)
    moved = {name: tensor.cpu() for name, tensor in call.tensors.items()}
    return prepare(dataclasses.replace(call, tensors=moved), quick=True)


def copy_of(size: int, l2_bytes: int, pace: Pace = THOROUGH) -> float:
    """Return the median time of a device-to-device copy in microseconds, from a cold cache.

    It reads ``size / 2`` bytes and writes as many.
    """
    import torch

    sets, flush = rotation(size, l2_bytes)
    memory = torch.empty(sets, 2, max(1, size // 512) * 256, dtype=torch.uint8, device=GPU).random_()
    runs = pace.rounds * pace.fewest_runs if pace is not THOROUGH else 0
    times = time_on_gpu([functools.partial(to.copy_, of) for to, of in memory], runs, flush, pace)
    return percentiles(times)["median_us"]


def faster_than_possible(microseconds: float, floor: float) -> str:
    """Return a remark if a time is below the lower bound on this GPU; empty otherwise."""
    if microseconds >= floor:
        return ""
    return (
        f"the time of {microseconds:.3g} us is impossible, because this GPU needs at least {floor:.3g} us: "
        "the kernel did not do its work during the timed call."
    )


def draw_on_gpu(task: Exercise, case: Case, dtype: str, seed: int | None = None, keep_on: str = "cpu") -> Call:
    """Draw the inputs of a call, new ones if there is no seed, and return them on the device ``keep_on``.

    They are drawn on the GPU, which is faster for large inputs, if their distributions support it.
    """
    import torch

    seed = task.case_seed(secrets.randbits(48), case, dtype) if seed is None else seed
    try:
        with torch.device(GPU):
            return task.call(case, dtype, seed, device=GPU, keep_on=keep_on)
    except (RuntimeError, TypeError):
        return task.call(case, dtype, seed, keep_on=keep_on)


def rotation(size: int, l2_bytes: int) -> tuple[int, int]:
    """Return how the inputs are kept out of the L2 cache: the number of copies, and the bytes to read before a run.

    If the copies are enough, no bytes need to be read.
    """
    if size >= 4 * l2_bytes:
        return 1, 0
    enough = -(-2 * l2_bytes // max(size, 1)) + 1
    return (enough, 0) if enough <= MOST_SETS else (1, 2 * l2_bytes)


def time_in_child(
    task: Exercise,
    call: Call,
    buffers: Buffers,
    child: Child,
    runs: int,
    sets: int,
    flush: int,
    warmup: int = THOROUGH.warmup,
) -> list[float]:
    """Execute ``runs`` runs of the kernel in the child process, and return the microseconds of each."""
    return run_in_child(task, call, buffers, child, runs, sets, flush, warmup)[0]


def run_in_child(
    task: Exercise, call: Call, buffers: Buffers, child: Child, runs: int, sets: int, flush: int, warmup: int
) -> tuple[list[float], int]:
    """Execute runs of the kernel in the child process. Return the microseconds of each, and the launcher's memory.

    The launcher's memory is the device memory that its calls allocated, in bytes: what they have kept, and the largest
    amount that was allocated in stream order. It includes the kernel's code, which the driver loads at the first call.
    """
    arguments = "\n".join(buffers.lines(call, task.parameters(call.dtype)))
    head = f"time {task.launcher(call.dtype)} {warmup} {runs} {flush}{buffers.where}\n"
    text = head + "\nnext\n".join([arguments] * sets)
    os.ftruncate(buffers.report_file, 0)
    os.lseek(buffers.report_file, 0, os.SEEK_SET)
    reply = child.request(text, buffers.files, TIMEOUT)
    where = f"{task.name} at {call.case.name} ({call.dtype})"
    if isinstance(reply.answer, Ended):
        raise GraderError(f"{where}: the kernel did not return: {reply.answer.text}")
    if isinstance(reply.answer, Refused) and buffers.where and _NOT_MAPPED.search(reply.answer.reason):
        raise SharingFailed(reply.answer.reason)
    if why := why_failed(reply.answer):
        raise GraderError(f"{where}: the kernel failed: {why}", "Run `grader check`, which finds more errors.")
    try:
        microseconds = parse_times(buffers.report())
    except Malformed as error:
        raise GraderError(f"{where}: the kernel's process sent invalid times: {error}") from error
    if not microseconds:
        raise GraderError(f"{where}: no run was timed")
    assert isinstance(reply.answer, Done)
    return microseconds, sum(int(text) for text in reply.answer.said("allocated"))


def _torch_clocks(
    task: Exercise, call: Call, timing: Timing, sets: int, flush: int, compiled: bool, pace: Pace
) -> tuple[dict[str, Clock], Any]:
    """Return a clock for eager torch and one for torch.compile, and torch's output.

    The name of a clock is the field of ``Timing`` that gets the median of the clock's times.
    """
    import torch

    baseline = task.torch_baseline
    assert baseline is not None
    copies = torch_arguments(task, call, baseline, sets)

    def clock(function: Callable[..., Any]) -> Clock:
        functions = [functools.partial(function, **a) for a in copies]
        functions[0]()  # if it does not work, raise the error now
        return lambda runs: time_on_gpu(functions, runs, flush, pace)

    clocks: dict[str, Clock] = {}
    try:
        result = baseline(**{n: v.clone() if hasattr(v, "clone") else v for n, v in copies[0].items()})
        clocks["torch_eager_us"] = clock(baseline)
    except Exception as error:
        timing.note = f"torch fails here: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        return {}, None
    if compiled:
        try:
            logging.getLogger("torch").setLevel(logging.CRITICAL)  # raise no error: the failure becomes a note
            torch._dynamo.reset()
            clocks["torch_compile_us"] = clock(torch.compile(baseline, dynamic=False))
        except Exception as error:
            timing.note = f"torch.compile fails here: {type(error).__name__}"
    return clocks, result


def torch_arguments(task: Exercise, call: Call, function: Callable[..., Any], sets: int) -> list[dict[str, Any]]:
    """Return the arguments of a torch function by name, ``sets`` times; only the first shares the call's tensors."""
    copies = []
    for number in range(sets):
        arguments: dict[str, Any] = dict(call.scalars)
        arguments.update({name: tensor.to(GPU, copy=number > 0) for name, tensor in call.tensors.items()})
        if task.torch_prepare is not None:
            arguments.update(task.torch_prepare(**named(task.torch_prepare, arguments)))
        copies.append(named(function, arguments))
    return copies


def difference(task: Exercise, call: Call, outputs: dict[str, Any], result: Any) -> str:
    """Return a remark if the kernel's output differs much from torch's. Its time would be meaningless."""
    import torch

    if isinstance(result, dict):
        theirs = result
    else:
        compared = [name for name, spec in task.outputs.items() if not spec.scratch]
        theirs = dict(zip(compared, result if isinstance(result, tuple) else (result,)))
    limit = {"f32": 5e-3, "f16": 3e-2, "bf16": 1e-1}.get(call.dtype, 5e-3)
    for name, tensor in theirs.items():
        if name not in outputs or not torch.is_tensor(tensor) or tensor.numel() != outputs[name].numel():
            continue
        mine = outputs[name].to(GPU).reshape(-1).float()
        other = tensor.reshape(-1).float()
        off = float(torch.linalg.vector_norm(mine - other) / torch.linalg.vector_norm(other).clamp(min=1e-30))
        if not off <= limit:
            return f"{name} differs from torch's result by {off:.2g} of its norm: is the kernel right at this size?"
    return ""


def _on_simulator(task: Exercise, path: Path, machine: Machine, say: Callable[[str], None]) -> list[Timing]:
    """Time how long the simulator takes for the case of the stage *efficient*, or for the first case."""
    import torch

    say("building")
    kernel = compile_kernel(path, "cpu", checks=False)
    machine.compiler, machine.torch = str(kernel.plan.compiler), str(torch.__version__)
    case = task.efficient or task.cases[0]
    timings = []
    with Child(build_runner("cpu"), kernel.library, kernel.libsim, {"checks": "0"}) as child:
        for dtype in case.dtypes or task.dtypes:
            require_launcher(kernel.launchers, parse_prototype(task.prototype(dtype)), path.name)
            say(f"{case.name} ({dtype})")
            call = task.call(case, dtype, task.case_seed(secrets.randbits(48), case, dtype))
            with prepare(call) as buffers:
                first = time_in_child(task, call, buffers, child, 1, 1, 0)
                runs = int(max(5, min(50, 5e5 / max(first[0], 1.0))))
                microseconds = time_in_child(task, call, buffers, child, runs, 1, 0)
            timing = Timing(case.name, dtype, HOST_CLOCK, dict(call.dims), runs=len(microseconds))
            timing.bytes, timing.flops = task.roofline_bytes(call), task.operations(call)
            for name, value in statistics(microseconds).items():
                setattr(timing, name, value)
            timing.note = "the speed of the simulator, not of the kernel on a GPU"
            timings.append(timing)
    return timings
