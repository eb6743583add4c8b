"""Measures the sizes of a grid (``grader/judge/timing/grid.py``) on this machine's GPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from grader.course.task import Call, Exercise
from grader.execution.build.build import BuiltKernel, compile_kernel
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import SharingFailed, gpu_architecture, uuid
from grader.execution.runner.program import build_runner
from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.prototype import parse_prototype, require_launcher
from grader.judge.timing import bench, turns
from grader.judge.timing.events import Pace, in_turns, percentiles, time_on_gpu
from grader.judge.timing.floor import Limits, limits_of_gpu
from grader.judge.timing.grid import Row, plan, source_of
from grader.judge.timing.machine import gpu_name
from grader.setup.errors import GraderError

TENSORS, PLACES, COPIES = 4, 3, 3
"""The tensors that take memory: q, k, v and out, each in three places (torch's, the memory that the child maps, and the
child's), and the f32 copies of one tensor while it is drawn."""

PACE = Pace(rounds=2, turn_us=1_500.0, fewest_runs=6, warmup=1, tried=1, rest=0.5)
"""Short turns, because a grid has hundreds of sizes."""


@dataclass
class Rival:
    """One of torch's functions at one size: its clock, its result, and its peak of memory in bytes."""

    name: str
    clock: bench.Clock
    result: Any
    memory_bytes: float


class Measurer:
    """Times a kernel file at one size after the other, in a child process that is restarted after a crash."""

    def __init__(self, task: Exercise, path: Path) -> None:
        arch = gpu_architecture(task.architecture)
        self.task = task
        self.plan = plan(task, gpu_name(), source_of(path))
        self.limits: Limits = limits_of_gpu()
        self.kernel: BuiltKernel = compile_kernel(path, "cuda", checks=False, arch=arch)
        require_launcher(self.kernel.launchers, parse_prototype(task.prototype(task.dtypes[-1])), path.name)
        self.runner = build_runner("cuda", arch)
        self._child: Child | None = None
        self._shared = True

    def measure(self, row: Row) -> Row:
        """Time the kernel at a size and return the row with its figures. If that fails, it has a note instead."""
        import torch

        needed = row.B * row.N * row.C * (TENSORS * PLACES * ITEM_BYTES[row.dtype] + COPIES * ITEM_BYTES["f32"])
        free = torch.cuda.mem_get_info()[0]
        if needed > free:
            note = f"the tensors need {needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free"
            return structs.replace(row, note=note)
        try:
            try:
                return self._time(row)
            except SharingFailed:  # use files from now on
                self._shared = False
                return self._time(row)
        except (GraderError, torch.OutOfMemoryError) as error:
            self.close()
            return structs.replace(row, note=str(error).splitlines()[0])
        finally:
            torch.cuda.empty_cache()

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.stop()
        self._child = None

    def _time(self, row: Row) -> Row:
        task, grid = self.task, self.task.grid
        assert grid is not None
        case = row.case(grid)
        call = bench.draw_on_gpu(task, case, row.dtype, keep_on=bench.GPU)
        inputs = sum(tensor.numel() * tensor.element_size() for tensor in call.tensors.values())
        sets, flush = bench.rotation(inputs, self.limits.l2_bytes)
        child = self._child = self._child or Child(self.runner, self.kernel.library, self.kernel.libsim)
        with bench.placed(call, self._shared) as buffers:
            _, allocated = bench.run_in_child(task, call, buffers, child, runs=1, sets=1, flush=0, warmup=1)
            rival = self._fastest_rival(call, inputs, sets, flush)
            if rival and (wrong := bench.difference(task, call, buffers.results(), rival.result)):
                raise GraderError(wrong)
            clocks: dict[str, bench.Clock] = {
                bench.OURS: lambda runs: bench.time_in_child(task, call, buffers, child, runs, sets, flush, PACE.warmup)
            }
            if rival:
                clocks[rival.name] = rival.clock
            times = in_turns(clocks, PACE)
            outputs = sum(place.bytes for place in buffers.outputs.values())
        ours = times[bench.OURS]
        at = percentiles(ours)
        if faster := bench.faster_than_possible(at["p50_us"], self.limits.floor_us(task, call)):
            raise GraderError(faster)
        mean = sum(ours) / len(ours)
        percent = 1e8 * (task.operations(call) or 0.0) / mean / self.limits.operations_per_second
        measured = structs.replace(
            row,
            runs=len(ours),
            mean_us=mean,
            p50_us=at["p50_us"],
            p99_us=at["p99_us"],
            tokens_per_second=1e6 * row.B * row.N / mean,
            memory_bytes=float(inputs + outputs + allocated),
            tensor_core_percent=percent if grid.tensor_cores else None,
        )
        if rival is None:
            return measured
        rival_us = percentiles(times[rival.name])["p50_us"]
        return structs.replace(
            measured,
            rival=rival.name,
            rival_p50_us=rival_us,
            times_as_fast=rival_us / at["p50_us"],
            rival_memory_bytes=rival.memory_bytes,
        )

    def _fastest_rival(self, call: Call, inputs: int, sets: int, flush: int) -> Rival | None:
        """Return the fastest of torch's functions that support a size, by a few runs of each; None if there is none."""
        import torch

        assert self.task.grid is not None
        baseline = self.task.torch_baseline
        functions = dict(self.task.grid.rivals) or ({"torch": baseline} if baseline else {})
        found: list[tuple[float, Rival]] = []
        for name, function in functions.items():
            try:
                with warnings.catch_warnings(action="ignore"):  # torch warns of each reason
                    rival = _rival(self.task, call, name, function, inputs, sets, flush)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:
                continue  # torch does not support the size with this backend
            found.append((min(rival.clock(3)), rival))
        return min(found, key=lambda pair: pair[0])[1] if found else None


def _rival(task: Exercise, call: Call, name: str, function: Any, inputs: int, sets: int, flush: int) -> Rival:
    """Call one of torch's functions once, and return it with its peak of memory."""
    import torch

    runs = [functools.partial(function, **a) for a in bench.torch_arguments(task, call, function, sets)]
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = runs[0]()
    peak = torch.cuda.max_memory_allocated() - before + inputs
    return Rival(name, lambda count: time_on_gpu(runs, count, flush, PACE), result, float(peak))


@contextmanager
def measuring(task: Exercise, path: Path) -> Iterator[Measurer]:
    """Return a context manager for a ``Measurer``, which has the GPU alone. Its child process ends with the context."""
    with turns.turn(uuid(), alone=True):
        measurer = Measurer(task, path)
        try:
            yield measurer
        finally:
            measurer.close()
