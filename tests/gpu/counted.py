"""The kernels whose counters are compared with Nsight Compute's, each with a fixed input.

They are the solutions on the case of the stage *efficient*, in every dtype of that case; the skeletons of *optimize*
exercises; the transposes and matrix products of day 4's lesson, which have all kinds of bank conflicts; and copies by
cp.async to rows that begin at and between sectors of shared memory.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from grader.course import Course, Entry, course_root
from grader.course.task import Case, Exercise, torch_dtype
from grader.execution.build.build import build, compile_directly, plan_kernel
from grader.execution.runner.gpu import gpu_architecture
from grader.frontend.toolchain.gpus import runs
from tests.gpu.launch_solutions import on_gpu

SEED = 1
DAY4 = {
    "transpose.cu": [f"transpose_{version}" for version in (1, 2, 3)],
    "linear.cu": [f"linear_{version}" for version in (1, 2, 3, 4)],
    "linear_wmma.cu": ["linear_wmma"],
}
ASYNC_COPIES = {
    "cg, side by side": (True, 0, 0),
    "cg, padded rows": (True, 16, 0),
    "cg, from half a sector on": (True, 0, 16),
    "ca, padded rows": (False, 16, 0),
}
"""Copies by cp.async: whether they bypass L1, the bytes between rows in shared memory, and the first row's offset."""


@dataclass
class Counted:
    """A call to count: the kernel file, its launcher, and its arguments on the CPU."""

    name: str
    file: Path
    launcher: str
    arguments: list[Any]
    offsets: list[int]
    architecture: str = "sm_80"
    """The oldest GPU architecture that can run it."""

    def call(self, kernel: Any, device: str) -> None:
        """Copy the arguments, including outputs, to ``device`` and call the launcher."""
        arguments = [
            on_gpu(value, offset) if device == "cuda" and hasattr(value, "numel") else value
            for value, offset in zip(self.arguments, self.offsets)
        ]
        getattr(kernel, self.launcher)(*arguments)


def counted(names: list[str]) -> Iterator[Counted]:
    """Yield the calls of kernels of the course whose name contains one of ``names`` (default: all)."""
    yield from _named(names, _exercises(), _lesson())


def compared(names: list[str]) -> Iterator[Counted]:
    """Yield the same calls, and those of single access patterns."""
    yield from _named(names, _exercises(), _lesson(), _async_copies())


def _named(names: list[str], *calls: Iterator[Counted]) -> Iterator[Counted]:
    for item in chain(*calls):
        if not names or any(part in item.name for part in names):
            yield item


T = TypeVar("T", Counted, Entry)


def runnable(items: Iterable[T]) -> Iterator[T]:
    """Yield the calls or exercises that this machine's GPU can run, and print the names of the others."""
    here = gpu_architecture()
    for item in items:
        if runs(here, item.architecture):
            yield item
        else:
            print(f"{item.name} needs {item.architecture}: left out on {here}", file=sys.stderr)


def replace_rows(path: Path, rows: list[dict[str, Any]], files: Iterable[Path]) -> tuple[str, ...]:
    """Add to ``rows`` what a record has of other kernels, in the record's order; return the names of ``files``."""
    new = {(row["name"], row.get("size")): row for row in rows}
    kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    rows[:] = [new.pop((row["name"], row.get("size")), row) for row in kept] + list(new.values())
    return tuple({file.relative_to(course_root()).as_posix() for file in files})


def build_ahead(files: Iterable[Path]) -> None:
    """Compile all files with nvcc in parallel, so that ``load_kernel`` finds them in the cache."""

    def one(file: Path) -> None:
        build(plan_kernel(file, "cuda", arch=gpu_architecture()), compile_directly)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, sorted(set(files))))


def _exercises() -> Iterator[Counted]:
    for entry in Course().exercises:
        exercise = entry.load()
        case = exercise.efficient
        if case is None:
            continue
        files = (
            {"": entry.solution, " (as given)": entry.skeleton} if entry.kind == "optimize" else {"": entry.solution}
        )
        for dtype in case.dtypes or exercise.dtypes:
            for what, file in files.items():
                yield of_case(entry, exercise, case, dtype, file, f"{entry.name} {dtype}{what}")


def of_case(entry: Entry, exercise: Exercise, case: Case, dtype: str, file: Path, name: str) -> Counted:
    """Return a call for one case of an exercise, always with the same input."""
    import torch

    call = exercise.call(case, dtype, exercise.case_seed(SEED, case, dtype))
    tensors = dict(call.tensors)
    for output, shape in call.output_shapes.items():
        if output not in tensors:
            tensors[output] = torch.zeros(shape, dtype=torch_dtype(call.output_dtypes[output]))
    parameters = [p for p in exercise.parameters(dtype) if not p.is_stream]
    return Counted(
        name,
        file,
        exercise.launcher(dtype),
        [tensors[p.name] if p.is_pointer else call.scalars[p.name] for p in parameters],
        [case.offsets.get(p.name, 0) for p in parameters],
        entry.architecture,
    )


def _lesson() -> Iterator[Counted]:
    import torch

    generator = torch.Generator().manual_seed(SEED)
    x, weight = torch.randn(128, 64, generator=generator), torch.randn(96, 64, generator=generator)
    bias, out = torch.randn(96, generator=generator), torch.zeros(128, 96)
    for file, launchers in DAY4.items():
        for launcher in launchers:
            arguments: list[Any] = [x, weight, bias, out, 128, 64, 96]
            if file == "transpose.cu":
                arguments = [x, torch.zeros(64, 128), 128, 64]
            elif file == "linear_wmma.cu":
                arguments = [x.half(), weight.half(), out, 128, 64, 96]
            path = course_root() / "lessons" / "day04_linear" / file
            yield Counted(f"lesson day04_linear/{launcher}", path, launcher, arguments, [0] * len(arguments))


def _async_copies() -> Iterator[Counted]:
    import torch

    path = course_root() / "tests" / "simulator" / "kernels" / "async_copies.cu"
    for name, pattern in ASYNC_COPIES.items():
        arguments = [torch.ones(32768), torch.zeros(128), *pattern]
        yield Counted(f"pattern async_copies/{name}", path, "copy_rows_of_all_lengths", arguments, [0] * len(arguments))
