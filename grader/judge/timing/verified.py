"""Measures a kernel's time on a real GPU so that the kernel cannot manipulate it.

A kernel could manipulate any measurement in its own process. Here the grader's process measures the time between its
request and the output. It does this for several sets of inputs (``Clock.time``), in four steps:

1. The grader writes new inputs into new memory of the GPU (``grader.execution.runner.gpu``), poisons the outputs next
   to them, and reads other memory until they are no longer in the L2 cache.
2. The kernel's process uses the device and maps other memory, so that it is warm. The clock starts. The grader passes
   the memory and requests one call. Only now can the kernel's process map the memory.
3. The process answers when the outputs are ready. The grader reads randomly chosen words of the outputs, then all
   outputs, and the clock stops.
4. The grader compares the outputs with the reference in float64. It also compares the chosen words with their later
   contents: if they differ, the process answered before it had written the outputs.

The process cannot reuse a result from another set, because all sets differ. It cannot compute a result early, because
it cannot see the inputs before the clock starts. It cannot write it late, and it cannot merge calls, because the next
inputs arrive after the answer.

The overhead of passing memory, requesting and reading is subtracted. It is the time of an empty kernel in the same
steps, in a separate process that ends before the kernel is loaded. The overhead is measured again in a process that
starts after the kernel's process has ended. The shorter of the two times counts, because a kernel could only make the
second one longer.

A size is measured with at least ``FEWEST_SETS`` sets of inputs, and with more until the time is precise enough. To
lower the median, a kernel must cheat in more than half of these calls, and each of them is compared with the reference.

A time below the physical floor is an error. The floor is the longer of two times (``grader.judge.timing.floor``): that
of the bytes at the memory's peak rate, without those that the cache may hold, and that of the operations at the SMs'
peak rate.
"""

from __future__ import annotations

import functools
import gc
import math
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.course.task import Call, Case, Exercise
from grader.execution.runner.answers import Ended, why_failed
from grader.execution.runner.buffers import GUARD_BYTES
from grader.execution.runner.client import Child, Reply
from grader.execution.runner.gpu import SharingFailed
from grader.execution.runner.program import NOTHING
from grader.frontend.dtypes import torch_dtype
from grader.judge.comparison.compare import compare
from grader.judge.timing.bench import draw_on_gpu
from grader.judge.timing.floor import Limits
from grader.judge.timing.on_device import Layout
from grader.setup.errors import GraderError
from grader.verdict.wording import timed
from grader.verdict.wording.outputs import text

__all__ = ["NOTHING", "Clock", "Measured", "verify"]

WARMUP, FEWEST_SETS, MOST_SETS = 1, 6, 16
SECONDS = 2.0
"""After ``FEWEST_SETS``, no more sets of a size are measured if this many seconds have passed."""

FEWEST_NULL_CALLS, NULL_CALLS = 5, 9

PRECISION, RESOLUTION_US = 0.01, 5.0
"""The measurement ends when the standard error of the median is within this share of the time, or this many us."""

TIMEOUT = 60.0
CHOSEN_WORDS = 4096
"""The number of randomly chosen words of the outputs that are read first."""

SHORTEST_US = 20.0
"""The time in microseconds below which this clock cannot tell a kernel from an empty kernel."""


SIGNIFICANT = 3.0
"""The number of standard errors by which a time must differ from zero to be significant."""

MARGIN, SLACK_US = 0.9, 30.0
"""Limits for an impossible time: a share of the physical floor, and an allowance in microseconds for a busy machine.

A time is impossible if it is below this share of the floor, even if the allowance and ``SIGNIFICANT`` standard errors
are added to it.
"""


@dataclass
class Measured:
    """The result for one size and dtype. The time is valid if ``problem`` is empty."""

    name: str
    dtype: str
    microseconds: float = 0.0
    """The kernel's time: the median over the sets, minus the median for an empty kernel, but at least 0."""
    standard_error: float = 0.0
    """The standard error of the time, in microseconds."""
    sets: int = 0
    significant: bool = False
    """True if the time is long enough to be told from the noise."""
    floor_us: float = 0.0
    """The physical floor in microseconds."""
    problem: str = ""
    """The error in one line; empty if there is none."""
    impossible: bool = False
    """True if the error is a time below the floor. Only this error may be caused by other users of the GPU."""
    text: str = ""
    """The message for a learner, over several lines."""

    @property
    def where(self) -> str:
        """The name of the size and the dtype, for messages."""
        return f"{self.name} ({self.dtype})"


@dataclass
class Clock:
    """Times a launcher at one size. ``memory(bytes)`` allocates device memory that a child process can map."""

    task: Exercise
    case: Case
    dtype: str
    memory: Callable[[int], Any]
    l2_bytes: int
    draw: Callable[[], Call]
    """A function that draws new inputs on the memory's device."""
    null: list[float] = field(default_factory=list)
    """The median times of an empty kernel, in microseconds: before and after the kernel's process."""

    def __post_init__(self) -> None:
        import torch

        self.device = self.memory.device  # type: ignore[attr-defined]
        self.layout = Layout(self.draw(), self.device)
        self.buffers, self.out_start, self.end = self.layout.buffers, self.layout.out_start, self.layout.end
        self.other = torch.zeros(max(1, 2 * self.l2_bytes // 4), dtype=torch.int32, device=self.device)
        self.seen = torch.empty_like(self.layout.starts)
        self.random = torch.Generator(self.device).manual_seed(secrets.randbits(56))

    def time_nothing(self, child: Child) -> float:
        """Return the median time of calls of an empty kernel in microseconds. ``child`` has loaded ``NOTHING``."""
        times: list[float] = []
        began = time.monotonic()
        call = self.draw()
        zeros = self._zeros(call)
        while len(times) < WARMUP + NULL_CALLS:
            if len(times) >= WARMUP + FEWEST_NULL_CALLS and (
                _error_of_median(times[WARMUP:]) <= RESOLUTION_US or time.monotonic() - began > SECONDS / 2
            ):
                break
            seconds, reply, _, _ = self._one(child, call, "do_nothing", ["stream"])
            if why := why_failed(reply.answer):
                raise SharingFailed(f"an empty kernel fails: {why}")
            times.append(seconds * 1e6)
            # Compare the outputs as for a real kernel, although they are wrong: this empties the processor's caches.
            self._differences(zeros, dict.fromkeys(zeros, "row"), explained=False)
        self.null.append(statistics.median(times[WARMUP:]))
        self._null_spread = _error_of_median(times[WARMUP:])
        return self.null[-1]

    def time(self, child: Child, limits: Limits, result: Measured) -> list[float]:
        """Time the kernel with several sets of inputs. Return the microseconds of each, including the overhead.

        If an error occurs, store it in ``result``.
        """
        times: list[float] = []
        began = time.monotonic()
        while len(times) < WARMUP + MOST_SETS:
            if len(times) >= WARMUP + FEWEST_SETS and (
                self._precise(times[WARMUP:]) or time.monotonic() - began > SECONDS
            ):
                break
            call = self.draw()
            lines = self.buffers.lines(call, self.task.parameters(self.dtype))
            seconds, reply, chosen, first = self._one(child, call, self.task.launcher(self.dtype), lines)
            self._judge(call, reply, chosen, first, result)
            result.floor_us = max(result.floor_us, limits.floor_us(self.task, call))
            if result.problem:
                return times
            times.append(seconds * 1e6)
        return times[WARMUP:]

    def _precise(self, times: Sequence[float]) -> bool:
        """Return whether the kernel's time is known well enough that more sets are not worth their time."""
        error = math.hypot(_error_of_median(times), self._null_spread)
        return error <= max(RESOLUTION_US, PRECISION * (statistics.median(times) - min(self.null)))

    def conclude(self, times: Sequence[float], result: Measured) -> None:
        """Compute the kernel's time from the times of the sets and those of the empty kernel, and store it."""
        result.sets = len(times)
        if result.problem or not times:
            return
        result.microseconds = max(0.0, statistics.median(times) - min(self.null))
        drift = (max(self.null) - min(self.null)) / 2
        result.standard_error = math.hypot(_error_of_median(times), self._null_spread, drift)
        result.significant = result.microseconds > max(SHORTEST_US, SIGNIFICANT * result.standard_error)
        most = result.microseconds + SIGNIFICANT * result.standard_error + SLACK_US
        if most < MARGIN * result.floor_us:
            result.impossible = True
            result.problem, result.text = timed.impossible(result.where, most, result.floor_us)

    def _one(self, child: Child, call: Call, launcher: str, lines: list[str]) -> tuple[float, Reply, Any, Any]:
        """Time one call. Return its seconds, the child's answer, the chosen words' positions and their contents."""
        import torch

        memory = self.memory(self.end)
        try:
            self.layout.write(call, memory)
            outputs, words = memory.tensor[self.out_start : self.end], memory.tensor.view(torch.int32)
            chosen = torch.randint(
                self.out_start // 4, self.end // 4, (CHOSEN_WORDS,), device=self.device, generator=self.random
            )
            # Fill the L2 cache by reads. Cache lines filled by writes would be written back during the kernel's time.
            self.other.sum()
            memory.forget_cached()
            memory.finish()
            request = "\n".join([f"run {launcher} {self.out_start} {memory.bytes}", *lines])
            child.request("awake", timeout=TIMEOUT)
            began = time.perf_counter()
            reply = child.request(request, [memory.file], TIMEOUT, awake=True)
            first = words[chosen]
            self.seen.copy_(outputs)
            memory.finish()
            seconds = time.perf_counter() - began
            if not isinstance(reply.answer, Ended):
                child.request("release", timeout=TIMEOUT)
            return seconds, reply, chosen, first
        finally:
            memory.close()

    def _judge(self, call: Call, reply: Reply, chosen: Any, first: Any, result: Measured) -> None:
        """Store the error of a call in the result, if there is one."""
        import torch

        if isinstance(reply.answer, Ended):
            result.problem, result.text = timed.not_returned(result.where, reply.answer.text)
            return
        if why := why_failed(reply.answer):
            result.problem, result.text = timed.not_launched(result.where, why)
            return
        now = self.seen.view(torch.int32)[chosen - self.out_start // 4]
        text = self._wrong(call)
        if not torch.equal(first, now):
            result.problem, result.text = timed.still_writing(result.where)
        elif text:
            result.problem, result.text = timed.wrong(result.where, text)

    def _wrong(self, call: Call) -> str:
        """Compare the outputs with the reference. Return a description of the error; empty if they are right."""
        return self._differences(*_expected(self.task, call))

    def _differences(self, expected: dict[str, Any], scales: dict[str, Any], explained: bool = True) -> str:
        """Compare the outputs with expected ones. Return a description of the error; empty if they are right."""
        import torch

        damaged = False
        for name, wanted in expected.items():
            place = self.buffers.outputs[name]
            for start in (place.start - GUARD_BYTES, place.start + place.bytes):
                part = slice(start, start + GUARD_BYTES)
                damaged |= not torch.equal(self.seen[part], self.layout.starts[part])
            tolerance = self.task.tolerance_of(name, self.dtype)
            dtype = torch.uint8 if place.dtype == "bool" else torch_dtype(place.dtype)
            part = slice(place.start, place.start + place.bytes)
            arguments = [self.seen[part], self.layout.starts[part]]
            actual, poison = (x.to(wanted.device).view(dtype).reshape(place.shape) for x in arguments)
            unwritten = None if name in self.buffers.in_out else poison
            if compare(name, actual, wanted, place.dtype, tolerance, unwritten, scales[name], explained=False).passed:
                continue
            if not explained:
                return f"{name} is wrong"
            sides: list[Any] = [actual, wanted, unwritten, scales[name]]
            parts = [x.cpu() if torch.is_tensor(x) else x for x in sides]
            return text(compare(name, parts[0], parts[1], place.dtype, tolerance, parts[2], parts[3]))
        return timed.OUTSIDE if damaged else ""

    def _zeros(self, call: Call) -> dict[str, Any]:
        """Return zeros in the shapes and dtypes of the reference's results."""
        import torch

        found = {}
        for name, place in self.buffers.outputs.items():
            if name not in call.scratch:
                float_ = torch_dtype(place.dtype).is_floating_point
                dtype = torch.float64 if float_ else torch.int64
                found[name] = torch.zeros(place.shape, dtype=dtype, device=self.device)
        return found


def _expected(task: Exercise, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the expected outputs and the scales of errors, computed on the GPU if that is possible."""
    import dataclasses

    import torch

    device = next(iter(call.tensors.values())).device if call.tensors else torch.device("cpu")
    try:
        with device:
            return task.expected(call), {name: task.scale_of(name, call) for name in call.output_shapes}
    except RuntimeError:
        if device.type == "cpu":
            raise
    torch.cuda.empty_cache()  # the reference needs CPU tensors, or more memory
    moved = dataclasses.replace(call, tensors={name: tensor.cpu() for name, tensor in call.tensors.items()})
    return task.expected(moved), {name: task.scale_of(name, moved) for name in call.output_shapes}


def _error_of_median(values: Sequence[float]) -> float:
    """Return the standard error of the median, estimated from the median absolute deviation of normal values."""
    middle = statistics.median(values)
    deviation = 1.4826 * statistics.median(abs(value - middle) for value in values)
    return 1.2533 * deviation / math.sqrt(len(values))


def verify(
    task: Exercise,
    sizes: Sequence[tuple[Case, str]],
    kernel: Callable[[], Child],
    nothing: Callable[[], Child],
    memory: Callable[[int], Any],
    limits: Limits,
) -> list[Measured]:
    """Time a kernel at each size and dtype.

    ``kernel()`` creates a child process with the kernel, ``nothing()`` one with the empty kernel ``NOTHING``. Raise
    ``SharingFailed`` if this machine cannot measure verified times, and ``GraderError`` if the kernel prevents it.
    """
    import torch

    if not sizes:
        return []
    draw = functools.partial(draw_on_gpu, task, keep_on=memory.device)  # type: ignore[attr-defined]
    results = [Measured(case.name, dtype) for case, dtype in sizes]
    gc.disable()  # garbage collection during a measurement would add its time
    try:
        try:
            clocks = [
                Clock(task, case, dtype, memory, limits.l2_bytes, functools.partial(draw, case, dtype))
                for case, dtype in sizes
            ]
            _time_nothing(nothing, clocks)
        except torch.OutOfMemoryError as error:
            raise SharingFailed("this GPU has too little memory to compare the results at these sizes") from error
        try:
            times = _time_kernel(kernel, clocks, limits, results)
            _time_nothing(nothing, clocks)
        except (SharingFailed, torch.OutOfMemoryError) as error:
            # The empty kernel could be timed before, so the error is due to the kernel's process.
            raise GraderError(f"the kernel's process prevents the measurement: {str(error).splitlines()[0]}") from error
    finally:
        gc.enable()
    for clock, taken, result in zip(clocks, times, results):
        clock.conclude(taken, result)
    return results


def _time_nothing(nothing: Callable[[], Child], clocks: Sequence[Clock]) -> None:
    with nothing() as child:
        for clock in clocks:
            clock.time_nothing(child)


def _time_kernel(
    kernel: Callable[[], Child], clocks: Sequence[Clock], limits: Limits, results: Sequence[Measured]
) -> list[list[float]]:
    """Return the times for all sizes. Stop after the first size with an error."""
    times = []
    with kernel() as child:
        for clock, result in zip(clocks, results):
            times.append(clock.time(child, limits, result))
            if result.problem:
                break
    return times
