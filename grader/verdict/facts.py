"""The verdict of a check as plain data. Reports are rendered from it, and ``results.json`` stores it.

The records hold facts and no sentences. ``grader/verdict/wording`` makes the sentences, the same for every report.
``results.json`` has both: each part named in ``WORDED`` also has a ``text`` for display, which is ignored when the file
is read.

``results.schema.json`` beside this file describes the JSON. ``SCHEMA_VERSION`` has two numbers: the first changes when
readers must change, the second when something is added. Numbers that JSON cannot hold are written as the texts "nan",
"inf" and "-inf".

Changes by version: 2.0: findings and wrong outputs are facts with a ``text``, instead of the ready sentences
``message``, ``advice`` and ``diagnosis``; ``Stage.message`` has the part of the stage's former ``text`` that no other
field implies. 2.1: the sides of a race between streams have ``work`` and ``stream``; times have mean, minimum, maximum
and standard deviation; ``time_bars`` has the time limits. 3.0: a finding has a typed ``payload`` instead of ``number``,
``total``, ``address``, ``elements`` and ``detail``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import field

from grader.verdict import codec
from grader.verdict.finding import Finding, Index
from grader.verdict.record import Line, Record, Text

SCHEMA_VERSION = "3.0"
WORDED = ("Stage", "CaseResult", "OutputResult", "Finding", "BarResult", "TimeBarResult", "TimeBound")
"""The records that have a ``text`` in ``results.json``, written by ``grader/verdict/wording/results.py``."""

STAGES = ("builds", "correct", "safe", "efficient", "fast")
"""The stages in order."""

Status = Literal["passed", "failed", "skipped", "error"]
"""The status of a stage. ``skipped``: not run, ``summary`` has the reason. ``error``: the grader could not judge it."""
PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
ERROR: Final = "error"

Sizes = dict[str, bool | int | float]
"""The sizes and options of a case, by name."""


class WorstElement(Record):
    """One of the worst elements of a wrong output."""

    index: list[int]
    expected: float
    actual: float
    error: float
    unwritten: bool = False
    """True if the kernel did not change the element."""
    block: list[int] | None = None
    """The block and the thread that wrote it last, if the simulator knows them."""
    thread: list[int] | None = None


class Diagnosis(Record):
    """The diagnosis of a wrong output: all zeros, transposed, the tail not written..."""

    kind: Line
    """One of the kinds in ``grader/verdict/wording/outputs.py``."""
    values: dict[str, float] = field(default_factory=dict)
    """The numbers in its text, by name."""
    index: Index = field(default_factory=list)
    """The index of the element that the text names; empty if it names none."""
    name: Line = ""
    """The inputs that the text names; empty if it names none."""


class OutputResult(Record):
    """One output compared with the reference."""

    name: Line
    dtype: Line
    shape: list[int]
    passed: bool
    elements: int
    wrong: int = 0
    unwritten: int = 0
    max_error: float = 0.0
    """The largest absolute error."""
    max_ratio: float = 0.0
    """The largest error divided by the tolerance at its element: an element passes up to 1."""
    norm_error: float = 0.0
    """The norm of all errors, relative to the norm of the reference."""
    tolerance: float = 0.0
    norm_tolerance: float = 0.0
    diagnosis: Diagnosis | None = None
    worst: list[WorstElement] = field(default_factory=list)


class CaseResult(Record):
    """One case with one dtype."""

    name: Line
    dtype: Line
    status: Status
    dims: Sizes = field(default_factory=dict)
    problem: Line = ""
    """The reason for a failed case, one word; empty if it passed.

    About the data: wrong, unwritten, no_launch (no kernel was launched), guard (the kernel wrote outside its outputs),
    inputs (it wrote to an input). About the process: crash, timeout, exit, output, oom, reply. From CUDA: load, call,
    memory, launch, run. exception: the launcher threw one. finding: the simulator stopped the launch. Not run:
    after_timeouts, after_crashes.
    """
    reasons: list[Line] = field(default_factory=list)
    """The error messages of CUDA or the system; or the names of the inputs or outputs concerned."""
    outside: dict[str, int] = field(default_factory=dict)
    """For each output with a write outside of it, the distance in elements past its end; negative before its start."""
    seconds: float = 0.0
    seed: int = 0
    outputs: list[OutputResult] = field(default_factory=list)
    printed: Text = ""
    """The kernel's printed output, without control characters, truncated if long."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Return whether it passed."""
        return self.status == PASSED


class Diagnostic(Record):
    """One message of a compiler."""

    severity: Line
    message: Text
    file: Line = ""
    line: int = 0
    column: int = 0
    source_line: Line = ""
    advice: Text = ""
    """The fix, if the grader knows one."""


class KernelResources(Record):
    """The resources of one kernel, from nvcc."""

    kernel: Line
    architecture: Line
    registers: int
    spill_bytes: int = 0
    static_shared_bytes: int = 0
    constant_bytes: int = 0
    occupancy: float | None = None
    limited_by: Line = ""
    threads: int | None = None
    gpu: Line = ""
    dynamic_shared_bytes: int = 0
    stack_bytes: int = 0
    """The stack frame of a thread in local memory: spilled registers, and arrays indexed by a variable."""


class BarResult(Record):
    """One bar of the stage *efficient*."""

    expression: Line
    value: float
    passed: bool
    at_most: float | None = None
    at_least: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """The values of the counters in the expression."""
    dtype: Line = ""
    """The dtype of the counted case; empty if there is only one."""
    look: Line = ""
    """The task author's hint for a missed bar."""
    case: Line = ""
    """The counted case."""


class TimeBarResult(Record):
    """A time limit of the stage *fast*: for one problem size on one GPU."""

    name: Line
    """The name of the problem size."""
    dtype: Line
    gpu: Line
    """The GPU for which the limit holds: ``H200``."""
    at_most_us: float
    status: Status
    """``skipped`` if the time was measured on another GPU."""
    median_us: float
    here: Line
    """The GPU on which the time was measured."""
    look: Line = ""
    """The task author's hint for a missed limit."""


Unit = Literal["dram", "l2", "tensor", "special", "f16", "f32", "shared", "l1", "issue", "launches"]
"""The units of a GPU, most specialized first. ``grader/judge/timing/limiter.py`` describes each."""


class UnitTime(Record):
    """The work of one unit of a GPU, and a lower bound on its time."""

    unit: Unit
    work: float
    """A number of bytes, operations, wavefronts, warp instructions or launches."""
    microseconds: float


NEARLY = 0.9
"""A unit that takes at least this share of the longest time also counts as the limit."""


class TimeBound(Record):
    """A lower bound on a GPU's time for the work that the simulator counted in one case. It is not a prediction."""

    gpu: Line
    case: Line
    dtype: Line
    dims: Sizes
    units: list[UnitTime]
    arithmetic: bool
    """True if operations on CUDA cores were counted."""
    blocks: int
    """The blocks of the kernel with the most blocks; 0 if the grid would differ on this GPU."""
    multiprocessors: int
    """The number of SMs of the GPU."""

    @property
    def microseconds(self) -> float:
        """The longest of the units' times."""
        return max((unit.microseconds for unit in self.units), default=0.0)

    @property
    def limiter(self) -> UnitTime | None:
        """The unit that takes longest, launches excluded; among nearly equal ones the most specialized."""
        units = [unit for unit in self.units if unit.unit != "launches"]
        longest = max((unit.microseconds for unit in units), default=0.0)
        return next((unit for unit in units if unit.microseconds >= NEARLY * longest), None)


class SourceLine(Record):
    """The counters of one source line, by name."""

    file: Line
    line: int
    source: Line
    counters: dict[str, float] = field(default_factory=dict)


class Timing(Record):
    """One measured time. ``clock`` names the clock: a GPU's, or that of the simulator's host."""

    name: Line
    dtype: Line
    clock: Line
    dims: Sizes = field(default_factory=dict)
    runs: int = 0
    median_us: float = 0.0
    p50_us: float = 0.0
    p90_us: float = 0.0
    p95_us: float = 0.0
    p99_us: float = 0.0
    mean_us: float | None = None
    """The mean. Like the next three fields, None in files of versions before 2.1."""
    minimum_us: float | None = None
    maximum_us: float | None = None
    deviation_us: float | None = None
    """The sample standard deviation (n - 1 in the denominator); None for a single run."""
    bytes: float = 0.0
    flops: float | None = None
    gigabytes_per_second: float | None = None
    gigaflops_per_second: float | None = None
    percent_of_copy: float | None = None
    """The kernel's bandwidth as a share of that of one large copy. ``copy_us`` has the time of a copy of the same size.
    """
    copy_us: float | None = None
    """The time of a device-to-device copy that moves ``bytes`` in all, from a cold cache, in the same run."""
    percent_of_roofline: float | None = None
    torch_eager_us: float | None = None
    torch_compile_us: float | None = None
    torch_ratio: float | None = None
    """The speedup over the faster of eager and compiled torch: above 1 the kernel is faster."""
    verified_us: float | None = None
    """The time by the grader's own clock (``grader.judge.timing.verified``).

    The kernel's own process measured the times above.
    """
    verified_error_us: float | None = None
    """The standard error of ``verified_us``."""
    note: Text = ""


class Stage(Record):
    """One stage of a check. Only the lists that the stage uses are filled."""

    name: Line
    status: Status = SKIPPED
    summary: Line = ""
    """One line: the reason for a failed or skipped stage, or what passed.

    Empty if the other fields determine it; ``grader/verdict/wording/stages.py`` then makes it.
    """
    seconds: float = 0.0
    message: Text = ""
    """The compiler's message, or the reason why the grader could not continue."""
    note: Text = ""
    """Requested information that is missing, and the reason."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    resources: list[KernelResources] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    runs: int = 0
    """The number of runs that the simulator checked, for the stage *safe*."""
    bars: list[BarResult] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    lines: list[SourceLine] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    time_bars: list[TimeBarResult] = field(default_factory=list)
    bound: TimeBound | None = None
    """The lower bound on the time, for the stage *efficient* if details were requested."""

    @property
    def passed(self) -> bool:
        """Return whether it passed."""
        return self.status == PASSED


class Verdict(Record):
    """The outcome of ``grader check`` for one file."""

    exercise: Line
    title: Line
    file: Line
    device: Line
    seed: int
    """The seed of the inputs; 0 if it is hidden from the student."""
    kind: Line = "implement"
    points: int = 10
    passed: bool = False
    score: float = 0.0
    """The points earned: all or none."""
    stages: list[Stage] = field(default_factory=list)
    seconds: float = 0.0
    started: Line = ""
    """Date and time in UTC, ISO 8601."""
    isolation: Line = "none"
    """The jail that the kernel was compiled and run in: bwrap, landlock, or none."""
    isolation_note: Text = ""
    versions: dict[str, Line] = field(default_factory=dict)
    command: Text = ""
    source_sha256: Line = ""
    schema_version: Line = SCHEMA_VERSION

    def stage(self, name: str) -> Stage | None:
        """Return the stage of that name, if it exists."""
        return next((stage for stage in self.stages if stage.name == name), None)

    @property
    def failed_stage(self) -> Stage | None:
        """The first stage that failed or had an error."""
        return next((stage for stage in self.stages if stage.status in (FAILED, ERROR)), None)

    @property
    def exit_code(self) -> int:
        """The exit code of ``grader check``: 0 passed, 1 failed, 2 could not grade."""
        if any(stage.status == ERROR for stage in self.stages):
            return 2
        return 0 if self.passed else 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dicts, texts and numbers."""
        return codec.plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "this") -> Verdict:
        """Create a verdict from the data of ``to_dict``. Fields unknown to this version are ignored."""
        codec.check_version(data, SCHEMA_VERSION)
        return codec.decode(cls, data, where)

    @classmethod
    def load(cls, path: str | Path) -> Verdict:
        """Read a ``results.json``."""
        return cls.from_dict(codec.read(path), str(path))
