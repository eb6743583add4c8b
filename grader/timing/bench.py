"""``grader bench``: how long a kernel takes, against the roofline and against torch, all measured in one run.

On a GPU, the kernel runs in the child process of ``grader.runner`` and torch in this one, both timed in the same way:
a kernel that only waits goes first, so that the launches queue up behind it and the device never waits for the host;
each run is between two events; the arguments rotate through copies that together are larger than the L2 cache, and where
that would be too many copies, other memory is read before each run. So the times are those of cold inputs and leave out
the cost of launching, for our kernel and for torch alike.

The roofline of a size is the longer of two times: its bytes, each distinct one counted once whatever the caches serve again, at
the bandwidth of a device-to-device copy, and its operations at the speed of torch's matrix product of the same dtype, both measured in the same run.

Without a GPU there is only the time that the simulator takes on this machine's processor. It says nothing about a GPU
and is labelled so.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import os
import platform
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from grader.building.build import compile_kernel
from grader.course import Course, Entry
from grader.course.task import Call, Case, Exercise, named_arguments
from grader.errors import GraderError
from grader.runner.answers import Ended, Malformed, parse_times, why_failed
from grader.runner.buffers import Buffers, prepare
from grader.runner.client import Child
from grader.runner.gpu import gpu_architecture
from grader.runner.program import build_runner
from grader.source.prototype import parse_prototype, require_launcher
from grader.timing.floor import Limits, limits_of_gpu
from grader.verdict import Timing

RECORD_VERSION = 1
RECORD, RECORDED_GPU = "h200.json", "H200"
"""Beside each lesson, and of which GPU it is."""
GPU = "cuda"
GPU_CLOCK = "GPU"
HOST_CLOCK = "host time of the simulator, not a GPU's time"

BUDGET_US = 300_000.0
"""GPU time that the timed runs of one size should take together."""

MOST_RUNS, FEWEST_RUNS, WARMUP = 400, 20, 5
MOST_SETS = 16
TIMEOUT = 120.0


@dataclass
class Machine:
    """What was measured on, and what it can do at most."""

    device: str
    driver: str = ""
    python: str = platform.python_version()
    torch: str = ""
    cuda: str = ""
    compiler: str = ""
    l2_bytes: int = 0
    copy_gigabytes_per_second: float | None = None
    product_gigaflops: dict[str, float] = field(default_factory=dict)
    """Speed of torch's matrix product, by dtype."""
    peak_gigabytes_per_second: float | None = None
    peak_gigaflops: float | None = None
    """What the device's clocks allow at most: see ``grader.timing.floor``."""

    def limits(self) -> Limits:
        """What no kernel can exceed here."""
        memory, arithmetic = self.peak_gigabytes_per_second or math.inf, self.peak_gigaflops or math.inf
        return Limits(memory * 1e9, arithmetic * 1e9, self.l2_bytes)


@dataclass
class BenchReport:
    """The times of one exercise's kernel."""

    exercise: str
    file: str
    device: str
    machine: Machine
    timings: list[Timing]
    date: str
    command: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept


def bench(
    exercise: Entry | Exercise | str,
    file: str | Path | None = None,
    device: str = "cuda",
    *,
    machine: Machine | None = None,
    compiled: bool = True,
    sizes: Sequence[str] | None = None,
    command: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> BenchReport:
    """Time a kernel at the sizes of its exercise. ``file``: by default the learner's own, where ``exercise`` tells it.

    ``machine``: that of an earlier report of the same run, to save measuring it again. ``compiled``: also against
    torch.compile, which takes seconds for each size. ``sizes``: only the ones of these names.
    """
    entry = Course().find(exercise) if isinstance(exercise, str) else exercise
    path = Path(file or (entry.skeleton if isinstance(entry, Entry) else ""))
    if not path.is_file():
        raise GraderError(f"there is no file {path}", "Check the path; --file names the kernel to time.")
    task = entry.load() if isinstance(entry, Entry) else entry
    say = on_progress or (lambda text: None)
    if device == "cuda":
        machine = machine or measure_machine()
        timings = _on_gpu(task, path, machine, compiled, sizes, say)
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


def check_recordable(device: str, gpu: str, file: Path | None = None) -> None:
    """Whether figures of a device may be kept: beside the lessons stand those of one GPU, which say its name."""
    if device != "cuda":
        raise GraderError("only times of a real GPU are recorded", "Use --device cuda.")
    if file is None and not re.search(rf"\b{RECORDED_GPU}\b", gpu):
        raise GraderError(
            f"lessons/*/{RECORD} holds figures of an {RECORDED_GPU}; this is an {gpu}",
            "--record-in FILE keeps them in a file of their own.",
        )


def record(report: BenchReport, entry: Entry, file: Path | None = None) -> Path:
    """Keep a report beside the day's lesson, or in a file of one's own, in place of the exercise's earlier one."""
    check_recordable(report.device, report.machine.device, file)
    path = file or entry.root / "lessons" / entry.day / RECORD
    content: dict[str, Any] = {"version": RECORD_VERSION, "exercises": {}}
    try:
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known.get("version") == RECORD_VERSION:
                content = known
        kept = report.to_dict()
        for timing in kept["timings"]:
            for name, value in timing.items():
                if isinstance(value, float):
                    timing[name] = float(f"{value:.5g}")
        content["exercises"][entry.name if file else entry.variable] = kept
        content["exercises"] = dict(sorted(content["exercises"].items()))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraderError(f"cannot record in {path}: {error}") from error
    return path


def recorded(entry: Entry) -> BenchReport | None:
    """The report that ``record`` kept for an exercise; None when there is none."""
    path = entry.root / "lessons" / entry.day / RECORD
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["exercises"].get(entry.variable)
        if kept is None:
            return None
        parts = {"machine": Machine(**kept["machine"]), "timings": [Timing(**timing) for timing in kept["timings"]]}
        return BenchReport(**{**kept, **parts})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraderError(f"{path} cannot be read: {error}", "It is written by `grader bench --record`.") from error


def percentiles(microseconds: Sequence[float]) -> dict[str, float]:
    """Median and the percentiles that a Timing holds, by its field names."""
    import numpy

    values: Any = numpy.percentile(microseconds, [50, 90, 95, 99])
    return {"median_us": float(values[0]), **{f"p{p}_us": float(v) for p, v in zip((50, 90, 95, 99), values)}}


def roofline(timing: Timing, machine: Machine) -> None:
    """Fill in rates and percentages from the median."""
    seconds = timing.median_us * 1e-6
    if seconds <= 0:
        return
    timing.gigabytes_per_second = timing.bytes / seconds * 1e-9
    floor = 0.0
    if machine.copy_gigabytes_per_second:
        timing.percent_of_copy = 100 * timing.gigabytes_per_second / machine.copy_gigabytes_per_second
        floor = timing.bytes / (machine.copy_gigabytes_per_second * 1e9)
    if timing.flops:
        timing.gigaflops_per_second = timing.flops / seconds * 1e-9
        peak = machine.product_gigaflops.get(timing.dtype)
        if peak:
            floor = max(floor, timing.flops / (peak * 1e9))
    if floor:
        timing.percent_of_roofline = 100 * floor / seconds
    torch_times = [t for t in (timing.torch_eager_us, timing.torch_compile_us) if t]
    if torch_times and timing.median_us:
        timing.torch_ratio = min(torch_times) / timing.median_us


# ----------------------------------------------------------------------------------------------------------------------
# On a GPU


def gpu_name() -> str:
    """As the driver gives it: ``NVIDIA H200``."""
    import torch

    gpu_architecture()  # the message when there is no GPU
    return torch.cuda.get_device_properties(0).name


def measure_machine() -> Machine:
    """The GPU's name, its copy bandwidth and the speed of its matrix products."""
    import torch

    gpu_architecture()  # the message when there is no GPU
    properties = torch.cuda.get_device_properties(0)
    limits = limits_of_gpu()
    machine = Machine(
        device=properties.name,
        driver=_driver(),
        torch=str(torch.__version__),
        cuda=str(torch.version.cuda),
        l2_bytes=limits.l2_bytes,
        peak_gigabytes_per_second=limits.bytes_per_second * 1e-9,
        peak_gigaflops=limits.operations_per_second * 1e-9 if math.isfinite(limits.operations_per_second) else None,
    )
    words = min(1 << 28, properties.total_memory // 32)
    source = torch.empty(words, device="cuda").normal_()
    times = time_on_gpu([functools.partial(torch.empty_like(source).copy_, source)], runs=30)
    machine.copy_gigabytes_per_second = 2 * 4 * words / (percentiles(times)["median_us"] * 1e-6) * 1e-9
    del source
    size = 8192
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32)):
        n = size if name != "f32" else size // 2
        a = torch.randn(n, n, device="cuda").to(dtype)
        times = time_on_gpu([functools.partial(torch.matmul, a, a)], runs=20)
        machine.product_gigaflops[name] = 2 * n**3 / (percentiles(times)["median_us"] * 1e-6) * 1e-9
    torch.cuda.empty_cache()
    return machine


def time_on_gpu(functions: Sequence[Callable[[], Any]], runs: int = 0, flush_bytes: int = 0) -> list[float]:
    """Microseconds of each run of functions called in turn; ``runs`` 0: as many as the budget allows."""
    import torch

    other = torch.empty(flush_bytes // 4, dtype=torch.int32, device="cuda") if flush_bytes else None
    began = time.perf_counter()
    for warm in range(max(WARMUP, len(functions))):
        functions[warm % len(functions)]()
    torch.cuda.synchronize()
    if not runs:
        began = time.perf_counter()
        for warm in range(3):
            functions[warm % len(functions)]()
        torch.cuda.synchronize()
        runs = runs_for((time.perf_counter() - began) / 3 * 1e6)
    began = time.perf_counter()
    functions[0]()
    host_us = (time.perf_counter() - began) * 1e6 + 30
    torch.cuda.synchronize()
    begin = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    end = [torch.cuda.Event(enable_timing=True) for _ in range(runs)]
    # Cycles of a clock of at most 2 GHz; never more than a third of a second.
    torch.cuda._sleep(int(min(host_us * runs * 2000, 600e6)))
    for run in range(runs):
        if other is not None:
            other.sum()
        begin[run].record()
        functions[run % len(functions)]()
        end[run].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(begin, end)]


def runs_for(microseconds: float) -> int:
    """How many runs of that length fit into the budget."""
    return int(max(FEWEST_RUNS, min(MOST_RUNS, BUDGET_US / max(microseconds, 1.0))))


def _on_gpu(
    task: Exercise,
    path: Path,
    machine: Machine,
    compiled: bool,
    sizes: Sequence[str] | None,
    say: Callable[[str], None],
) -> list[Timing]:
    import torch

    if not task.bench:
        raise GraderError(f"{task.name} names no sizes to time")
    arch = gpu_architecture(task.architecture)
    say("building")
    kernel = compile_kernel(path, "cuda", checks=False, arch=arch)
    machine.compiler = str(kernel.plan.compiler)
    runner = build_runner("cuda", arch)
    timings = []
    with Child(runner, kernel.library, kernel.libsim) as child:
        for case in task.bench:
            if sizes is not None and case.name not in sizes:
                continue
            for dtype in case.dtypes or task.dtypes:
                require_launcher(kernel.launchers, parse_prototype(task.prototype(dtype)), path.name)
                say(f"{case.name} ({dtype})")
                timings.append(_time_one(task, case, dtype, child, machine, compiled))
                torch.cuda.empty_cache()
    return timings


def _time_one(task: Exercise, case: Case, dtype: str, child: Child, machine: Machine, compiled: bool) -> Timing:
    call = draw_on_gpu(task, case, dtype, task.case_seed(secrets.randbits(48), case, dtype))
    least = task.roofline_bytes(call)
    size = sum(t.numel() * t.element_size() for t in call.tensors.values())
    sets, flush = rotation(size, machine.l2_bytes)
    timing = Timing(case.name, dtype, GPU_CLOCK, dict(call.dims), bytes=least, flops=task.operations(call))
    with prepare(call, quick=True) as buffers:
        first = time_in_child(task, call, buffers, child, 3, sets, flush)
        runs = runs_for(max(min(first), 1.0))
        microseconds = time_in_child(task, call, buffers, child, runs, sets, flush)
        timing.runs = len(microseconds)
        for name, value in percentiles(microseconds).items():
            setattr(timing, name, value)
        content = buffers.snapshot()
        outputs = {name: buffers.tensor(content, name) for name in call.output_shapes}
    if task.torch_baseline is not None:
        _time_torch(task, call, timing, sets, flush, compiled, outputs)
    roofline(timing, machine)
    floor = machine.limits().floor_us(task, call)
    if timing.median_us < floor:
        timing.note = (
            f"{case.name} ({dtype}): {timing.median_us:.3g} us are less than the {floor:.3g} us that this GPU needs at least: "
            "the kernel did not do the work when it was asked to."
        )
    return timing


def draw_on_gpu(task: Exercise, case: Case, dtype: str, seed: int) -> Call:
    """Draw large inputs on the GPU where the distributions can, and on the CPU otherwise; the tensors end on the CPU."""
    import torch

    try:
        with torch.device(GPU):
            return task.call(case, dtype, seed, device=GPU)
    except (RuntimeError, TypeError):
        return task.call(case, dtype, seed)


def rotation(size: int, l2_bytes: int) -> tuple[int, int]:
    """How many copies of the inputs to rotate through, and how many bytes to read in between where that is not enough."""
    if size >= 4 * l2_bytes:
        return 1, 0
    enough = -(-2 * l2_bytes // max(size, 1)) + 1
    return (enough, 0) if enough <= MOST_SETS else (1, 2 * l2_bytes)


def time_in_child(
    task: Exercise, call: Call, buffers: Buffers, child: Child, runs: int, sets: int, flush: int
) -> list[float]:
    """Microseconds of each run of the kernel in the child."""
    arguments = "\n".join(buffers.lines(call, task.parameters(call.dtype)))
    text = f"time {task.launcher(call.dtype)} {WARMUP} {runs} {flush}\n" + "\nnext\n".join([arguments] * sets)
    os.ftruncate(buffers.report_file, 0)
    os.lseek(buffers.report_file, 0, os.SEEK_SET)
    reply = child.request(text, buffers.files, TIMEOUT)
    where = f"{task.name} at {call.case.name} ({call.dtype})"
    if isinstance(reply.answer, Ended):
        raise GraderError(f"{where}: the kernel did not return: {reply.answer.text}")
    if why := why_failed(reply.answer):
        raise GraderError(f"{where}: the kernel failed: {why}", "`grader check` says more.")
    try:
        microseconds = parse_times(buffers.report())
    except Malformed as error:
        raise GraderError(
            f"{where}: the kernel's process gave times that only a kernel can have made up: {error}"
        ) from error
    if not microseconds:
        raise GraderError(f"{where}: no run was timed")
    return microseconds


def _time_torch(
    task: Exercise, call: Call, timing: Timing, sets: int, flush: int, compiled: bool, outputs: dict[str, Any]
) -> None:
    """torch's own times, eager and compiled, over the same rotation; and whether it computes the same."""
    import torch

    baseline = task.torch_baseline
    assert baseline is not None
    wanted = named_arguments(baseline)
    copies = []
    for _ in range(sets):
        arguments: dict[str, Any] = dict(call.scalars)
        arguments.update({name: tensor.to(GPU, copy=True) for name, tensor in call.tensors.items()})
        if task.torch_prepare is not None:
            needed = named_arguments(task.torch_prepare)
            named = {name: value for name, value in arguments.items() if needed is None or name in needed}
            arguments.update(task.torch_prepare(**named))
        copies.append({name: value for name, value in arguments.items() if wanted is None or name in wanted})
    try:
        result = baseline(**{n: v.clone() if hasattr(v, "clone") else v for n, v in copies[0].items()})
        timing.note = _difference(task, call, outputs, result)
        del result
        times = time_on_gpu([functools.partial(baseline, **a) for a in copies], flush_bytes=flush)
        timing.torch_eager_us = percentiles(times)["median_us"]
    except Exception as error:
        timing.note = f"torch fails here: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        return
    if not compiled:
        return
    try:
        torch._dynamo.reset()
        faster = torch.compile(baseline, dynamic=False)
        times = time_on_gpu([functools.partial(faster, **a) for a in copies], flush_bytes=flush)
        timing.torch_compile_us = percentiles(times)["median_us"]
    except Exception as error:
        timing.note = (timing.note + f" torch.compile fails here: {type(error).__name__}").strip()


def _difference(task: Exercise, call: Call, outputs: dict[str, Any], result: Any) -> str:
    """A remark when the kernel's output at this size is far from torch's: then its time means nothing."""
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
            return f"{name} differs from torch's by {off:.2g} of its norm: is the kernel right at this size?"
    return ""


def _driver() -> str:
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else ""


# ----------------------------------------------------------------------------------------------------------------------
# On the simulator


def _on_simulator(task: Exercise, path: Path, machine: Machine, say: Callable[[str], None]) -> list[Timing]:
    """The simulator's own speed on the case that it counts, or on the first case."""
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
            for name, value in percentiles(microseconds).items():
                setattr(timing, name, value)
            timing.note = "how fast the simulator is, not how fast the kernel is"
            timings.append(timing)
    return timings
