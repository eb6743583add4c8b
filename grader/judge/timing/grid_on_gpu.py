"""Measures the sizes of a grid (``grader/judge/timing/grid.py``) on this machine's GPU."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from grader.course.task import Exercise
from grader.execution.build.build import BuiltKernel, compile_kernel
from grader.execution.runner.buffers import prepare
from grader.execution.runner.client import Child
from grader.execution.runner.gpu import gpu_architecture
from grader.execution.runner.program import build_runner
from grader.frontend.dtypes import ITEM_BYTES
from grader.frontend.prototype import parse_prototype, require_launcher
from grader.judge.timing.bench import draw_on_gpu, faster_than_possible, rotation, time_in_child
from grader.judge.timing.events import THOROUGH, percentiles
from grader.judge.timing.floor import Limits, limits_of_gpu
from grader.judge.timing.grid import Row, plan, source_of
from grader.judge.timing.machine import gpu_name
from grader.setup.errors import GraderError

TENSORS, COPIES = 4, 3
"""The tensors that take memory: q, k, v and out, and the f32 copies of one tensor while it is drawn."""


class Measurer:
    """Times a kernel file at one size after the other, in a child process that is restarted after a crash."""

    def __init__(self, task: Exercise, path: Path) -> None:
        arch = gpu_architecture(task.architecture)
        self.task = task
        self.plan = plan(task, gpu_name(), source_of(path))
        self.limits: Limits = limits_of_gpu()
        self.kernel: BuiltKernel = compile_kernel(path, "cuda", checks=False, arch=arch)
        for dtype in task.dtypes:
            require_launcher(self.kernel.launchers, parse_prototype(task.prototype(dtype)), path.name)
        self.runner = build_runner("cuda", arch)
        self._child: Child | None = None

    def measure(self, row: Row) -> Row:
        """Time the kernel at a size and return the row with its figures. If that fails, it has a note instead."""
        import torch

        needed = row.B * row.N * row.C * (TENSORS * ITEM_BYTES[row.dtype] + COPIES * ITEM_BYTES["f32"])
        free = torch.cuda.mem_get_info()[0]
        if needed > free:
            note = f"the tensors need {needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free"
            return structs.replace(row, note=note)
        try:
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
        grid = self.task.grid
        assert grid is not None
        case = row.case(grid)
        seed = self.task.case_seed(secrets.randbits(48), case, row.dtype)
        call = draw_on_gpu(self.task, case, row.dtype, seed)
        inputs = sum(tensor.numel() * tensor.element_size() for tensor in call.tensors.values())
        sets, flush = rotation(inputs, self.limits.l2_bytes)
        if self._child is None:
            self._child = Child(self.runner, self.kernel.library, self.kernel.libsim)
        with prepare(call, quick=True) as buffers:
            first = time_in_child(self.task, call, buffers, self._child, 3, sets, flush)
            runs = THOROUGH.runs_for(min(first))
            times = time_in_child(self.task, call, buffers, self._child, runs, sets, flush)
            outputs = sum(place.bytes for place in buffers.outputs.values())
        at = percentiles(times)
        if faster := faster_than_possible(at["p50_us"], self.limits.floor_us(self.task, call)):
            raise GraderError(faster)
        mean = sum(times) / len(times)
        percent = 1e8 * (self.task.operations(call) or 0.0) / mean / self.limits.operations_per_second
        return structs.replace(
            row,
            runs=len(times),
            mean_us=mean,
            p50_us=at["p50_us"],
            p99_us=at["p99_us"],
            tokens_per_second=1e6 * row.B * row.N / mean,
            memory_bytes=float(inputs + outputs),
            tensor_core_percent=percent if grid.tensor_cores else None,
        )


@contextmanager
def measuring(task: Exercise, path: Path) -> Iterator[Measurer]:
    """Return a context manager for a ``Measurer``. Its child process ends with the context."""
    measurer = Measurer(task, path)
    try:
        yield measurer
    finally:
        measurer.close()
