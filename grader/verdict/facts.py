"""The verdict of a check as data. Reports are rendered from it, and ``results.json`` stores it.

The records contain facts, not sentences. ``grader/verdict/wording`` makes the sentences, which are the same in every
report. ``results.json`` contains both: each record that is named in ``WORDED`` also has a ``text`` for display, which
is ignored when the file is read.

``results.schema.json`` beside this file describes the JSON. ``SCHEMA_VERSION`` has two numbers: the first changes when
readers must change, the second when something is added. Numbers that JSON cannot hold are written as the texts "nan",
"inf" and "-inf".

These are the changes by version:

- 2.0: Findings and wrong outputs are facts with a ``text``, instead of the ready sentences ``message``, ``advice`` and
  ``diagnosis``. ``Stage.message`` replaces ``Stage.text``, and has only what no other field of the stage contains.
- 2.1: The sides of a race between streams have ``work`` and ``stream``. Times have mean, minimum, maximum and standard
  deviation. ``time_bars`` has the time limits.
- 3.0: A finding has a typed ``payload`` instead of ``number``, ``total``, ``address``, ``elements`` and ``detail``.
- 3.1: A time limit on another GPU has ``share_of_roofline``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import field

from grader.verdict import codec
from grader.verdict.finding import Finding, Index
from grader.verdict.record import Line, Record, Text

SCHEMA_VERSION = "3.1"
WORDED = ("Stage", "CaseResult", "OutputResult", "Finding", "BarResult", "TimeBarResult", "TimeBound")
"""The records that have a ``text`` in ``results.json``. ``grader/verdict/wording/results.py`` writes it."""

STAGES = ("builds", "correct", "safe", "efficient", "fast")
"""The names of the stages, in the order in which they run."""

Status = Literal["passed", "failed", "skipped", "error"]
"""The status of a stage, a case or a time limit.

``skipped``: it was not run or not judged; a stage's ``summary`` has the reason. ``error``: the grader could not judge.
"""
PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
ERROR: Final = "error"

Sizes = dict[str, bool | int | float]
"""The sizes and options of a case, by their names."""


class WorstElement(Record):
    """An element of a wrong output that has one of the largest errors."""

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
    """The pattern of the errors in a wrong output, such as: all zeros, transposed, or the tail not written."""

    kind: Line
    """One of the kinds in ``grader/verdict/wording/outputs.py``."""
    values: dict[str, float] = field(default_factory=dict)
    """The numbers in the diagnosis's text, by name."""
    index: Index = field(default_factory=list)
    """The index of the element that the text mentions; empty if it mentions none."""
    name: Line = ""
    """The names of the inputs, or the output, that the text mentions; empty if it mentions none."""


class OutputResult(Record):
    """The comparison of an output with the reference."""

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
    """The largest ratio of an element's error to the error that is allowed there. Up to 1, the element is right."""
    norm_error: float = 0.0
    """The norm of all errors, relative to the norm of the reference."""
    tolerance: float = 0.0
    norm_tolerance: float = 0.0
    diagnosis: Diagnosis | None = None
    worst: list[WorstElement] = field(default_factory=list)


class CaseResult(Record):
    """The result of one case with one dtype, or of one case of a Python file."""

    name: Line
    dtype: Line
    """Empty for a Python file."""
    status: Status
    dims: Sizes = field(default_factory=dict)
    problem: Line = ""
    """The reason why the case failed, in one word; empty if it passed.

    The data are wrong: wrong, unwritten, no_launch (no kernel was launched), guard (the kernel wrote outside its
    outputs), inputs (the kernel wrote to an input). The process ended: crash, timeout, exit, output (it printed too
    much), oom (out of memory), reply (it sent an invalid answer). CUDA reported an error: load, call, memory, launch,
    run. The launcher threw an exception: exception. The simulator stopped the launch: finding. The case was not run:
    after_timeouts, after_crashes. An operation of a Python file has a wrong outcome: operations.
    """
    reasons: list[Line] = field(default_factory=list)
    """The error messages of CUDA or the system, or the names of the inputs or outputs that the problem is about.

    For a Python file: what is wrong, then the lines of code that repeat it.
    """
    outside: dict[str, int] = field(default_factory=dict)
    """For each output that the kernel wrote outside of, the distance in elements past its end.

    The distance is negative for a write before the start.
    """
    seconds: float = 0.0
    seed: int = 0
    outputs: list[OutputResult] = field(default_factory=list)
    printed: Text = ""
    """The text that the kernel printed, without control characters, and truncated if it is long."""
    findings: list[Finding] = field(default_factory=list)
    special_values: list[Line] = field(default_factory=list)
    """The names of the inputs whose values the case chooses itself, such as large scores."""
    special_offsets: list[Line] = field(default_factory=list)
    """The names of the tensors that the case places at an unaligned address."""

    @property
    def passed(self) -> bool:
        """Return whether the case passed."""
        return self.status == PASSED


class Diagnostic(Record):
    """A message of a compiler."""

    severity: Line
    message: Text
    file: Line = ""
    line: int = 0
    column: int = 0
    source_line: Line = ""
    advice: Text = ""
    """How to fix the error, if the grader knows it."""


class KernelResources(Record):
    """The resources of a kernel, as nvcc reports them."""

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
    """The size of a thread's stack frame in local memory: spilled registers, and arrays indexed by a variable."""


class BarResult(Record):
    """The result of a bar of the stage *efficient*: the value of an expression over counters, and its limits."""

    expression: Line
    value: float
    passed: bool
    at_most: float | None = None
    at_least: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """The values of the names in the expression."""
    dtype: Line = ""
    """The dtype of the case; empty if the case has only one."""
    look: Line = ""
    """The task author's hint for a learner whose kernel misses the bar."""
    case: Line = ""
    """The name of the case whose counters are used."""


class TimeBarResult(Record):
    """The result of a time limit of the stage *fast*, which is for one problem size on one GPU."""

    name: Line
    """The name of the problem size."""
    dtype: Line
    gpu: Line
    """The GPU for which the limit is, such as ``H200``."""
    at_most_us: float
    status: Status
    """``skipped`` if the time was measured on another GPU."""
    median_us: float
    here: Line
    """The GPU on which the time was measured."""
    look: Line = ""
    """The task author's hint for a learner whose kernel misses the limit."""
    share_of_roofline: float | None = None
    """The minimum share of this GPU's roofline that gives ``at_most_us``; None if the limit is for this GPU itself."""


Unit = Literal["dram", "l2", "tensor", "special", "f16", "f32", "shared", "l1", "issue", "launches"]
"""The units of a GPU that may limit a kernel, the most specialized first.

``grader/judge/timing/limiter.py`` describes each unit.
"""


class UnitTime(Record):
    """The work of one unit of a GPU, and a lower bound on the time that it takes."""

    unit: Unit
    work: float
    """The amount of work: bytes, operations, wavefronts, warp instructions or launches, depending on the unit."""
    microseconds: float


NEARLY = 0.9
"""Units that take at least this share of the longest time are regarded as equally slow."""


class TimeBound(Record):
    """A lower bound on the time that a GPU needs for the work that the simulator counted in one case.

    It does not predict the time, which is usually longer.
    """

    gpu: Line
    case: Line
    dtype: Line
    dims: Sizes
    units: list[UnitTime]
    arithmetic: bool
    """True if operations on CUDA cores were counted."""
    blocks: int
    """The largest number of blocks of a kernel; 0 if the grid may be different on this GPU."""
    multiprocessors: int
    """The number of SMs of the GPU."""

    @property
    def microseconds(self) -> float:
        """The bound: the longest of the units' times."""
        return max((unit.microseconds for unit in self.units), default=0.0)

    @property
    def limiter(self) -> UnitTime | None:
        """The unit that takes longest, except launches. Of several equally slow units, it is the most specialized."""
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
    """The measured times of a kernel at one size. ``clock`` tells whether a GPU or the simulator ran it."""

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
    """The mean. It and the next three fields are None in files of schema versions before 2.1."""
    minimum_us: float | None = None
    maximum_us: float | None = None
    deviation_us: float | None = None
    """The sample standard deviation (n - 1 in the denominator); None for a single run."""
    bytes: float = 0.0
    flops: float | None = None
    gigabytes_per_second: float | None = None
    gigaflops_per_second: float | None = None
    percent_of_copy: float | None = None
    """The kernel's bandwidth in percent of the bandwidth of a large copy."""
    copy_us: float | None = None
    """The time of a device-to-device copy of the same size: it moves ``bytes`` in all, from a cold cache."""
    percent_of_roofline: float | None = None
    torch_eager_us: float | None = None
    torch_compile_us: float | None = None
    torch_ratio: float | None = None
    """The time of eager or compiled torch, whichever is faster, divided by the kernel's time."""
    verified_us: float | None = None
    """The time that the grader's process measured (``grader.judge.timing.verified``).

    The kernel's own process measured the times above, and could manipulate them.
    """
    verified_error_us: float | None = None
    """The standard error of ``verified_us``."""
    note: Text = ""


class Stage(Record):
    """The result of one stage of a check. Lists that the stage does not use are empty."""

    name: Line
    status: Status = SKIPPED
    summary: Line = ""
    """One line: the reason why the stage failed or was skipped, or what passed.

    It is empty if ``grader/verdict/wording/stages.py`` can make it from the other fields.
    """
    seconds: float = 0.0
    message: Text = ""
    """The compiler's message, or the reason why the grader could not continue."""
    note: Text = ""
    """A remark, for example that requested information is missing, and why."""
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
    """The lower bound on the kernel's time, for the stage *efficient*."""

    @property
    def passed(self) -> bool:
        """Return whether the stage passed."""
        return self.status == PASSED


class Verdict(Record):
    """The result of ``grader check`` for one file."""

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
    """The points that the file earned: all of ``points``, or 0."""
    stages: list[Stage] = field(default_factory=list)
    seconds: float = 0.0
    started: Line = ""
    """The date and time when the check started, in UTC and ISO 8601."""
    isolation: Line = "none"
    """The kind of sandbox in which the kernel was compiled and run: bwrap, landlock, or none."""
    isolation_note: Text = ""
    versions: dict[str, Line] = field(default_factory=dict)
    command: Text = ""
    source_sha256: Line = ""
    schema_version: Line = SCHEMA_VERSION

    def stage(self, name: str) -> Stage | None:
        """Return the stage named ``name``; None if the verdict does not have it."""
        return next((stage for stage in self.stages if stage.name == name), None)

    @property
    def failed_stage(self) -> Stage | None:
        """The first stage that failed or had an error."""
        return next((stage for stage in self.stages if stage.status in (FAILED, ERROR)), None)

    @property
    def exit_code(self) -> int:
        """The exit code of ``grader check``: 0 if the file passed, 1 if it failed, 2 if it could not be graded."""
        if any(stage.status == ERROR for stage in self.stages):
            return 2
        return 0 if self.passed else 1

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as lists, dicts, texts and numbers."""
        return codec.plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "this") -> Verdict:
        """Create a verdict from the result of ``to_dict``. Fields that this version does not know are ignored."""
        codec.check_version(data, SCHEMA_VERSION)
        return codec.decode(cls, data, where)

    @classmethod
    def load(cls, path: str | Path) -> Verdict:
        """Read a ``results.json``."""
        return cls.from_dict(codec.read(path), str(path))
