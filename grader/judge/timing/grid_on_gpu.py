"""Measures the points of a grid (``grader/judge/timing/grid.py``) on this machine's GPU."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
from grader.judge.timing.grid import Figures, Point, Row, row_of, source_of
from grader.judge.timing.machine import gpu_name
from grader.setup.errors import GraderError

TENSORS, COPIES = 4, 3
"""The tensors that take memory: q, k, v and out, and the f32 copies of one tensor while it is drawn."""


class Measurer:
    """Times a kernel file at one point after the other, in a child process that is restarted after a crash."""

    def __init__(self, task: Exercise, path: Path) -> None:
        arch = gpu_architecture(task.architecture)
        self.task, self.gpu, self.source = task, gpu_name(), source_of(path)
        self.limits: Limits = limits_of_gpu()
        self.kernel: BuiltKernel = compile_kernel(path, "cuda", checks=False, arch=arch)
        for dtype in task.dtypes:
            require_launcher(self.kernel.launchers, parse_prototype(task.prototype(dtype)), path.name)
        self.runner = build_runner("cuda", arch)
        self._child: Child | None = None

    def key(self, point: Point) -> tuple[str, ...]:
        """Return the key of a point's row."""
        return self._row(point, None, "").key

    def measure(self, point: Point) -> Row:
        """Time the kernel at a point and return the row. If that fails, the row has a note instead of figures."""
        import torch

        if point.note:
            return self._row(point, None, point.note)
        needed = point.B * point.N * point.C * (TENSORS * ITEM_BYTES[point.dtype] + COPIES * ITEM_BYTES["f32"])
        free = torch.cuda.mem_get_info()[0]
        if needed > free:
            return self._row(
                point, None, f"the tensors need {needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free"
            )
        try:
            return self._row(point, self._time(point), "")
        except (GraderError, torch.OutOfMemoryError) as error:
            self.close()
            return self._row(point, None, str(error).splitlines()[0])
        finally:
            torch.cuda.empty_cache()

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.stop()
        self._child = None

    def _time(self, point: Point) -> Figures:
        assert self.task.grid is not None
        case = point.case(self.task.grid)
        seed = self.task.case_seed(secrets.randbits(48), case, point.dtype)
        call = draw_on_gpu(self.task, case, point.dtype, seed)
        inputs = sum(tensor.numel() * tensor.element_size() for tensor in call.tensors.values())
        sets, flush = rotation(inputs, self.limits.l2_bytes)
        if self._child is None:
            self._child = Child(self.runner, self.kernel.library, self.kernel.libsim)
        with prepare(call, quick=True) as buffers:
            first = time_in_child(self.task, call, buffers, self._child, 3, sets, flush)
            runs = THOROUGH.runs_for(min(first))
            times = time_in_child(self.task, call, buffers, self._child, runs, sets, flush)
            outputs = sum(place.bytes for place in buffers.outputs.values())
        mean = sum(times) / len(times)
        at = percentiles(times)
        if faster := faster_than_possible(at["p50_us"], self.limits.floor_us(self.task, call)):
            raise GraderError(faster)
        flops = self.task.operations(call) or 0.0
        return Figures(len(times), mean, at["p50_us"], at["p99_us"], inputs + outputs, flops / (mean * 1e-6))

    def _row(self, point: Point, figures: Figures | None, note: str) -> Row:
        grid = self.task.grid
        peak, tensor_cores = self.limits.operations_per_second, grid is not None and grid.tensor_cores
        return row_of(point, self.gpu, self.source, figures, peak, tensor_cores, note)


@contextmanager
def measuring(task: Exercise, path: Path) -> Iterator[Measurer]:
    """Return a context manager for a ``Measurer``. Its child process ends with the context."""
    measurer = Measurer(task, path)
    try:
        yield measurer
    finally:
        measurer.close()
