"""The verdict: what a check found, as plain data. Reports are drawn from it; ``results.json`` is it, written down.

It holds facts and no sentences: those are made in ``grader/verdict/wording``, the same for every report.
``results.json`` has both, for readers who want to show it: its parts that are in ``WORDED`` have their ``text``, which
is not read back.

``results.schema.json`` beside this file describes the JSON. ``SCHEMA_VERSION`` counts like a release: the first number
changes when a reader must change, the second when something is added. Numbers that JSON cannot hold are written as the
texts "nan", "inf" and "-inf". Since 2.0 a finding and a wrong output are facts with a ``text``, in place of ready
sentences (``message``, ``advice``, ``diagnosis``); ``Stage.message`` is what stood in its ``text`` where it is not made
of the others. Since 2.1 the sides of a race between streams name their ``work`` and its ``stream``, times have mean,
minimum, maximum and standard deviation, and limits on them are ``time_bars``. Since 3.0 a finding has a typed
``payload`` in place of ``number``, ``total``, ``address``, ``elements`` and ``detail``.
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
"""Parts that ``results.json`` shows with a ``text`` too.

What reports say about them (``grader/verdict/wording/results.py``).
"""

STAGES = ("builds", "correct", "safe", "efficient", "fast")
"""The stages in order."""

Status = Literal["passed", "failed", "skipped", "error"]
"""What became of a stage. ``skipped``: not run, ``summary`` says why. ``error``: the grader could not judge it."""
PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
ERROR: Final = "error"

Sizes = dict[str, bool | int | float]
"""The sizes and options of a case, by name."""


class WorstElement(Record):
    """One element of an output that is far off."""

    index: list[int]
    expected: float
    actual: float
    error: float
    unwritten: bool = False
    """The kernel left the element as it was before the call."""
    block: list[int] | None = None
    """The block and the thread that wrote it last, where the simulator knows."""
    thread: list[int] | None = None


class Diagnosis(Record):
    """The diagnosis of a wrong output: all zeros, transposed, the tail not written..."""

    kind: Line
    """One of the kinds in ``grader/verdict/wording/outputs.py``."""
    values: dict[str, float] = field(default_factory=dict)
    """The numbers of its sentence, by name."""
    index: Index = field(default_factory=list)
    """The element that is meant, if one is."""
    name: Line = ""
    """The input that has to do with it, if one has; or several."""


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
    """The largest error in units of what is allowed at its place: 1 is just passing."""
    norm_error: float = 0.0
    """The norm of all errors relative to the norm of the reference."""
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
    """Empty when it passed. What the kernel wrote: wrong, unwritten (no_launch: no kernel
    was started), guard (outside its outputs), inputs (over them).
    How its process ended: crash, timeout, exit, output, oom, reply. What CUDA said: load, call, memory, launch, run.
    What its launcher threw: exception.
    What the simulator said: finding. Why it was not tried: after_timeouts, after_crashes."""
    reasons: list[Line] = field(default_factory=list)
    """What CUDA or the system said, or the names of the inputs or outputs that are meant."""
    outside: dict[str, int] = field(default_factory=dict)
    """For each output beside which something was written, how many elements past its end; negative before its start."""
    seconds: float = 0.0
    seed: int = 0
    outputs: list[OutputResult] = field(default_factory=list)
    printed: Text = ""
    """What the kernel printed, control characters removed, cut when long."""
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
    """What to do about it, where the grader knows."""


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
    """The stack frame of a thread, in local memory: arrays that are indexed by a variable, and what spills."""


class BarResult(Record):
    """One bar of the stage *efficient*."""

    expression: Line
    value: float
    passed: bool
    at_most: float | None = None
    at_least: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """The counters in the expression."""
    dtype: Line = ""
    """The dtype of the case that was counted, where there are several."""
    look: Line = ""
    """Where the task's author would look first when it is missed."""
    case: Line = ""
    """The case that was counted."""


class TimeBarResult(Record):
    """A time limit of the stage *fast*: for one problem size on one GPU."""

    name: Line
    """Of the size."""
    dtype: Line
    gpu: Line
    """Where it holds: ``H200``."""
    at_most_us: float
    status: Status
    """Skipped on any other GPU."""
    median_us: float
    here: Line
    """The GPU that the time was taken on."""
    look: Line = ""
    """Where the task's author would look first when it is missed."""


Unit = Literal["dram", "l2", "tensor", "special", "f16", "f32", "shared", "l1", "issue", "launches"]
"""Of a GPU, from the most special to the most general: ``grader/judge/timing/limiter.py`` says what each is."""


class UnitTime(Record):
    """The work of one unit of a GPU, and a lower bound on its time."""

    unit: Unit
    work: float
    """Bytes, operations, wavefronts, instructions of warps, or launches."""
    microseconds: float


NEARLY = 0.9
"""A unit that needs this share of the longest time is as good a reason for it."""


class TimeBound(Record):
    """How long a GPU needs at least for what the simulator counted in one case. A bound, never a prediction."""

    gpu: Line
    case: Line
    dtype: Line
    dims: Sizes
    units: list[UnitTime]
    arithmetic: bool
    """Whether operations on CUDA cores were counted."""
    blocks: int
    """Of the kernel with the most; 0 where the grid would be another one on this GPU."""
    multiprocessors: int
    """Of the GPU."""

    @property
    def microseconds(self) -> float:
        """The longest of all."""
        return max((unit.microseconds for unit in self.units), default=0.0)

    @property
    def limiter(self) -> UnitTime | None:
        """The unit that takes longest, launching apart; of nearly equal ones the most special."""
        units = [unit for unit in self.units if unit.unit != "launches"]
        longest = max((unit.microseconds for unit in units), default=0.0)
        return next((unit for unit in units if unit.microseconds >= NEARLY * longest), None)


class SourceLine(Record):
    """The counters of one source line; ``counters`` holds what the simulator counted, by name."""

    file: Line
    line: int
    source: Line
    counters: dict[str, float] = field(default_factory=dict)


class Timing(Record):
    """One measurement of time. ``clock`` says whose: a GPU, or the simulator's host (never a GPU's time)."""

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
    """This and the next three of the same runs; None in what was kept before they were."""
    minimum_us: float | None = None
    maximum_us: float | None = None
    deviation_us: float | None = None
    """Standard deviation, with one less than the number of runs below the sum; None of a single run."""
    bytes: float = 0.0
    flops: float | None = None
    gigabytes_per_second: float | None = None
    gigaflops_per_second: float | None = None
    percent_of_copy: float | None = None
    """Of the rate of one large copy.

    ``copy_us`` compares with a copy of this size, which takes its time to start as well.
    """
    copy_us: float | None = None
    """The time of a device-to-device copy that moves ``bytes`` in all, as cold as the kernel and in the same run."""
    percent_of_roofline: float | None = None
    torch_eager_us: float | None = None
    torch_compile_us: float | None = None
    torch_ratio: float | None = None
    """How many times as fast as the best of torch: above 1 is faster."""
    verified_us: float | None = None
    """By the grader's own clock (``grader.judge.timing.verified``).

    The times above are taken in the kernel's own process.
    """
    verified_error_us: float | None = None
    """Standard error of that."""
    note: Text = ""


class Stage(Record):
    """One stage of a check. Only the lists that belong to it are filled."""

    name: Line
    status: Status = SKIPPED
    summary: Line = ""
    """One line: why it failed or was skipped, or what passed.

    Where the facts below say it, ``grader/verdict/wording/stages.py`` does.
    """
    seconds: float = 0.0
    message: Text = ""
    """What the compiler said, or who could not go on."""
    note: Text = ""
    """What could not be shown, and why, though it was asked for."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    resources: list[KernelResources] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    runs: int = 0
    """Of *safe*: that the simulator watched."""
    bars: list[BarResult] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    lines: list[SourceLine] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    time_bars: list[TimeBarResult] = field(default_factory=list)
    bound: TimeBound | None = None
    """Of *efficient*, where details were asked for."""

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
    """Of the inputs; 0 where it is kept from the student."""
    kind: Line = "implement"
    points: int = 10
    passed: bool = False
    score: float = 0.0
    """Points earned: all or none."""
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
        """The first stage that did not pass, skipped ones apart."""
        return next((stage for stage in self.stages if stage.status in (FAILED, ERROR)), None)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 could not grade."""
        if any(stage.status == ERROR for stage in self.stages):
            return 2
        return 0 if self.passed else 1

    def to_dict(self) -> dict[str, Any]:
        """As plain lists, dicts, texts and numbers."""
        return codec.plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "this") -> Verdict:
        """Return the verdict of ``to_dict``'s data; fields that this version does not know are ignored."""
        codec.check_version(data, SCHEMA_VERSION)
        return codec.decode(cls, data, where)

    @classmethod
    def load(cls, path: str | Path) -> Verdict:
        """Read a ``results.json``."""
        return cls.from_dict(codec.read(path), str(path))
