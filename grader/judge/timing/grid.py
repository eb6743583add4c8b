"""``grader bench --grid`` times attention for a grid of lengths N, widths C, heads H and batches B.

The result is a CSV file. Each row is written when it is measured, small sizes first. A stopped run can be resumed: rows
that are in the file are not measured again. A size that cannot be measured has a row with the reason. Examples are a
pair of C and H whose head_dim the kernel does not support, and a size that exceeds the GPU's memory.

The file has one row for each size and dtype, with these columns:

- ``gpu``, ``exercise`` and ``dtype`` name what was timed. ``source`` is the start of the kernel file's SHA-256.
- ``N`` is the sequence length, ``C`` the width of the model (all heads side by side), ``H`` the number of heads, ``B``
  the number of sequences, and ``head_dim`` the width of a head.
- ``runs`` is the number of timed runs. Each starts with a cold L2 cache. Launch overhead is not included
  (``grader/judge/timing/bench.py``).
- ``mean_us``, ``p50_us`` and ``p99_us`` are the latency of the whole batch in microseconds.
- ``tokens_per_second`` is B N divided by the mean latency.
- ``memory_bytes`` is the size of the kernel's tensors, including working memory.
- ``tensor_core_percent`` is for kernels on tensor cores: the FLOP/s of the formula as a share of the peak at the GPU's
  highest clock (``grader/judge/timing/floor.py``). It is not a hardware counter, such as Nsight Compute's
  sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed.
- ``note`` is the reason for missing figures.
"""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from grader.course.task import Case, Exercise, Grid
from grader.setup.errors import GraderError

LENGTHS = (1024, 2048, 4096, 8192)
WIDTHS = (512, 768, 1024, 2048)
HEADS = (8, 12, 16, 32)
BATCHES = (1, 4, 8, 16, 32)


@dataclass(frozen=True)
class Point:
    """One size in one dtype. N and B are 0 if all sizes with this pair of C and H are skipped."""

    exercise: str
    dtype: str
    N: int
    C: int
    H: int
    B: int
    note: str = ""
    """The reason why the size is not measured; empty otherwise."""

    @property
    def head_dim(self) -> int:
        """The width of a head; 0 if C is not a multiple of H."""
        return self.C // self.H if self.C % self.H == 0 else 0

    def case(self, grid: Grid) -> Case:
        """Return the case of the exercise at this size."""
        name = f"N {self.N}, C {self.C}, H {self.H}, B {self.B}"
        return Case(name, **grid.dims(self.B, self.H, self.N, self.head_dim))


@dataclass(frozen=True)
class Figures:
    """The figures that are measured for one size."""

    runs: int
    mean_us: float
    p50_us: float
    p99_us: float
    memory_bytes: float
    flops_per_second: float


@dataclass
class Row:
    """A row of the CSV file. The docstring of this module describes the columns."""

    gpu: str
    exercise: str
    source: str
    dtype: str
    N: int
    C: int
    H: int
    B: int
    head_dim: int
    runs: int | None = None
    mean_us: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    tokens_per_second: float | None = None
    memory_bytes: float | None = None
    tensor_core_percent: float | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """A key that identifies the measurement: the GPU, the kernel's version, and the size."""
        return tuple(map(str, (self.gpu, self.exercise, self.source, self.dtype, self.N, self.C, self.H, self.B)))


COLUMNS = [column.name for column in fields(Row)]


def points(task: Exercise) -> list[Point]:
    """Return all points of an exercise: first the pairs of C and H that are skipped, then the sizes, fastest first."""
    if task.grid is None:
        raise GraderError(f"{task.name} has no grid of sizes", "A grid of sizes needs `grid=` in tasks.py.")
    allowed = task.grid.head_dims
    left_out, measured = [], []
    for dtype in task.dtypes:
        for width in WIDTHS:
            for heads in HEADS:
                pair = Point(task.name, dtype, 0, width, heads, 0)
                if not pair.head_dim:
                    left_out.append(
                        Point(task.name, dtype, 0, width, heads, 0, f"{width} is not a multiple of {heads}")
                    )
                elif pair.head_dim not in allowed:
                    note = f"the kernel does not support head_dim {pair.head_dim}, only {', '.join(map(str, allowed))}"
                    left_out.append(Point(task.name, dtype, 0, width, heads, 0, note))
                else:
                    measured += [Point(task.name, dtype, n, width, heads, b) for n in LENGTHS for b in BATCHES]
    return left_out + sorted(measured, key=lambda point: (point.B * point.C * point.N**2, point.B, point.H))


def row_of(
    point: Point, gpu: str, source: str, figures: Figures | None, peak: float, tensor_cores: bool, note: str
) -> Row:
    """Return the row for a point. ``peak`` is the operations per second of the GPU's tensor cores."""
    row = Row(gpu, point.exercise, source, point.dtype, point.N, point.C, point.H, point.B, point.head_dim, note=note)
    if figures is not None:
        row.runs, row.memory_bytes = figures.runs, figures.memory_bytes
        row.mean_us, row.p50_us, row.p99_us = figures.mean_us, figures.p50_us, figures.p99_us
        row.tokens_per_second = 1e6 * point.B * point.N / figures.mean_us
        row.tensor_core_percent = 100 * figures.flops_per_second / peak if tensor_cores else None
    return row


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file that ``run_grid`` wrote, except a truncated last line. A missing file has no rows."""
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            if next(reader, COLUMNS) != COLUMNS:
                raise GraderError(f"{path} does not have the columns of a grid", "Name another file with --csv.")
            return [_row(line) for line in reader if len(line) == len(COLUMNS)]
    except (OSError, ValueError, UnicodeDecodeError, csv.Error) as error:
        raise GraderError(f"{path} cannot be read: {error}", "Name another file with --csv.") from error


def _row(cells: Sequence[str]) -> Row:
    values: dict[str, str | int | float | None] = dict(zip(COLUMNS, cells))
    for name in COLUMNS:
        cell = str(values[name])
        if name in ("N", "C", "H", "B", "head_dim"):
            values[name] = int(cell)
        elif name not in ("gpu", "exercise", "source", "dtype", "note"):
            values[name] = None if not cell else int(cell) if name == "runs" else float(cell)
    return Row(**values)  # type: ignore[arg-type]


def run_grid(
    every: Iterable[Point],
    path: Path,
    measure: Callable[[Point], Row],
    key: Callable[[Point], tuple[str, ...]],
    minutes: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Row | None]:
    """Measure the points that are not in the file, append their rows to it, and yield the rows.

    Yield None for a point that is in the file. After ``minutes``, start no more points. A size that fails gets a row
    with a note; a later run tries it again.
    """
    began = clock()
    known = {row.key for row in read_rows(path) if row.mean_us is not None or not row.N}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            if not whole:  # the previous run was stopped while it wrote a line
                file.write("\n")
            for point in every:
                if key(point) in known:
                    yield None
                    continue
                if clock() - began > 60 * minutes:
                    return
                row = measure(point)
                writer.writerow({name: _cell(value) for name, value in asdict(row).items()})
                file.flush()
                yield row
    except OSError as error:
        raise GraderError(f"{path} cannot be written: {error.strerror}", "Name another file with --csv.") from error


def _cell(value: str | int | float | None) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def source_of(path: Path) -> str:
    """Return a hash of a kernel file, by which its versions are told apart."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}") from error
