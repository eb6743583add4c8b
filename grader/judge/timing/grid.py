"""``grader bench --grid`` times attention for a grid of lengths N, widths C, heads H and batches B.

Each size is timed with a causal mask and without one, beside the fastest of torch's functions for it, in turns. The
result is a CSV file. Each row is written when it is measured, small sizes first. A stopped run can be resumed: rows
that are in the file are not measured again. A size that cannot be measured has a row with the reason. Examples are a
pair of C and H whose head_dim the kernel does not support, and a size that exceeds the GPU's memory.

The file has one row for each size, with these columns:

- ``gpu``, ``exercise`` and ``dtype`` name what was timed: bf16 if the exercise has it. ``source`` is a digest of the
  kernel file's code (``grader/judge/timing/sources.py``), and ``nvcc_flags`` are the flags with which nvcc built it.
- ``N`` is the sequence length, ``C`` the width of the model (all heads side by side), ``H`` the number of heads, ``B``
  the number of sequences, and ``head_dim`` the width of a head. ``causal`` is True if a query sees only earlier keys.
- ``runs`` is the number of timed runs. Each starts with a cold L2 cache. Launch overhead is not included
  (``grader/judge/timing/bench.py``).
- ``mean_us``, ``p50_us`` and ``p99_us`` are the latency of the whole batch in microseconds.
- ``tokens_per_second`` is B N divided by the mean latency.
- ``memory_bytes`` is the measured device memory of a call: its inputs and outputs, and what the launcher allocates
  (``run_in_child`` in ``grader/judge/timing/bench.py``).
- ``tensor_core_percent`` is for kernels on tensor cores: the FLOP/s of the formula as a share of the peak at the GPU's
  highest clock (``grader/judge/timing/floor.py``). It is not a hardware counter, such as Nsight Compute's
  sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed.
- ``rival`` is the fastest of torch's functions at this size. ``rival_p50_us`` is its median latency in the same run,
  and ``times_as_fast`` is the rival's median divided by the kernel's. ``rival_memory_bytes`` is the peak of torch's
  allocator during its call, with the inputs.
- ``note`` is the reason for missing figures.
"""

from __future__ import annotations

import csv
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import structs

from grader.course import course_root
from grader.course.task import Case, Exercise, Grid
from grader.execution.build.build import NVCC_FLAGS
from grader.judge.timing.sources import digest
from grader.setup.errors import GraderError

LENGTHS = (1024, 2048, 4096, 8192)
WIDTHS = (512, 768, 1024, 2048)
HEADS = (8, 12, 16, 32)
BATCHES = (1, 8, 32)


class Row(msgspec.Struct):
    """A row of the CSV file, without figures until the size is measured. The module's docstring describes the columns.

    N and B are 0 if all sizes with this pair of C and H are skipped.
    """

    gpu: str
    exercise: str
    source: str
    nvcc_flags: str
    dtype: str
    N: int
    C: int
    H: int
    B: int
    head_dim: int
    causal: bool
    runs: int | None = None
    mean_us: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    tokens_per_second: float | None = None
    memory_bytes: float | None = None
    tensor_core_percent: float | None = None
    rival: str | None = None
    rival_p50_us: float | None = None
    times_as_fast: float | None = None
    rival_memory_bytes: float | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """A key that identifies the measurement: the GPU, the kernel's version, nvcc's flags, and the size."""
        size = self.N, self.C, self.H, self.B, self.causal
        return tuple(map(str, (self.gpu, self.exercise, self.source, self.nvcc_flags, self.dtype, *size)))

    def case(self, grid: Grid) -> Case:
        """Return the case of the exercise at this size."""
        name = f"N {self.N}, C {self.C}, H {self.H}, B {self.B}{', causal' * self.causal}"
        return Case(name, **grid.dims(self.B, self.H, self.N, self.head_dim, self.causal))


COLUMNS = list(Row.__struct_fields__)


def plan(task: Exercise, gpu: str, source: str) -> list[Row]:
    """Return all rows of an exercise: first the pairs of C and H that are skipped, then the sizes, fastest first."""
    if task.grid is None:
        raise GraderError(f"{task.name} has no grid of sizes", "A grid of sizes needs `grid=` in tasks.py.")
    allowed = task.grid.head_dims
    left_out, measured = [], []
    for width, heads in itertools.product(WIDTHS, HEADS):
        head_dim, rest = divmod(width, heads)
        shape = 0, width, heads, 0, 0 if rest else head_dim, False
        pair = Row(gpu, task.name, source, NVCC_FLAGS, task.dtypes[-1], *shape)
        if rest:
            pair.note = f"{width} is not a multiple of {heads}"
        elif head_dim not in allowed:
            pair.note = f"the kernel does not support head_dim {head_dim}, only {', '.join(map(str, allowed))}"
        if pair.note:
            left_out.append(pair)
        else:
            sizes = itertools.product(LENGTHS, BATCHES, (False, True))
            measured += [structs.replace(pair, N=n, B=b, causal=causal) for n, b, causal in sizes]
    return left_out + sorted(measured, key=lambda row: (row.B * row.C * row.N**2, row.B, row.H, row.causal))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file that ``run_grid`` wrote, except a truncated last line. A missing file has no rows."""
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            if next(reader, COLUMNS) != COLUMNS:
                raise GraderError(f"{path} does not have the columns of a grid", "Name another file with --csv.")
            rows = [dict(zip(COLUMNS, (cell or None for cell in line))) for line in reader if len(line) == len(COLUMNS)]
            return [msgspec.convert({**row, "note": row["note"] or ""}, Row, strict=False) for row in rows]
    except (OSError, ValueError, UnicodeDecodeError, csv.Error) as error:
        raise GraderError(f"{path} cannot be read: {error}", "Name another file with --csv.") from error


def run_grid(
    every: Iterable[Row],
    path: Path,
    measure: Callable[[Row], Row],
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Row | None]:
    """Measure the rows that are not in the file, append them to it, and yield them.

    Yield None for a row that is in the file. After ``minutes``, start no more rows. A size that fails gets a note; a
    later run tries it again.
    """
    began = clock()
    known = {row.key for row in read_rows(path) if row.mean_us is not None or not row.N}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                writer.writerow(COLUMNS)
            if not whole:  # the previous run was stopped while it wrote a line
                file.write("\n")
            for planned in every:
                if planned.key in known:
                    yield None
                    continue
                if clock() - began > 60 * minutes:
                    return
                row = planned if planned.note else measure(planned)
                cells = structs.astuple(row)
                writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])
                file.flush()
                yield row
    except OSError as error:
        raise GraderError(f"{path} cannot be written: {error.strerror}", "Name another file with --csv.") from error


def source_of(path: Path) -> str:
    """Return a digest of a kernel file's code, by which its versions are told apart."""
    try:
        return digest(path, course_root() / "lessons")
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}") from error
