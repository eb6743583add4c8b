"""Runs a program in a separate process, and reads the simulator's report even if the program crashed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.execution.jail.programs import NO_LIMITS, build_program
from grader.execution.jail.running import bubblewrap, shared_libraries
from grader.execution.jail.staging import as_unprivileged, reachable
from grader.setup.errors import GraderError
from grader.simulator.report import Report
from grader.simulator.report_format import InvalidReport
from grader.simulator.symbolize import UNKNOWN, Location, symbolizer
from grader.verdict import Finding
from grader.verdict.causes import one_for_each_buffer
from grader.verdict.findings.launches import RefusedCall
from grader.verdict.findings.memory import LeakedBytes

BLOCK_SECONDS = 10.0
"""The CPU time in seconds after which the simulator stops a block, because it may be in an infinite loop."""
NOTE_SECONDS = 10.0
"""The seconds after which a program with all checks prints how to save time."""
_GRACE = 15.0
"""The seconds between SIGTERM and SIGKILL, in which a program writes its report."""
_INVALID_VALUE, _OUT_OF_MEMORY = 1, 2
"""CUDA's error codes."""
_HEAD = re.compile(
    r"signal (?P<signal>\d{1,3})\nstatus (?P<status>\d{1,3})\ntimeout (?P<timeout>[\d.e+]{1,20})\n"
    r"places(?P<places>(?: -?\d{1,19}){0,8})\nkernel (?P<kernel>[^\n]{0,400})\nrefused (?P<refused>[^\n]{0,200})\n"
)


@dataclass(frozen=True)
class Sample:
    """The limits of sampled checks: random blocks of the first launches of each kernel. None: all of them."""

    blocks: int | None = None
    """The number of blocks of each launch."""
    launches: int | None = None
    """The number of launches of each kernel."""
    seed: int | None = None
    """The seed that chooses the blocks; None: a new one, which the report names."""

    def settings(self) -> str:
        """Return the simulator's settings."""
        given = {"check_blocks": self.blocks, "check_launches": self.launches, "check_seed": self.seed}
        return "".join(f" {key}={value}" for key, value in given.items() if value is not None)


@dataclass
class Outcome:
    """The result of a program."""

    status: int
    """The exit status as a shell reports it: 128 plus the signal's number if a signal ended it."""
    seconds: float
    report: Report | None = None
    """The simulator's findings and counters; None on a GPU, or if the program left no report."""
    exit_status: int = 0
    """The exit status according to the report. It is the only one known if the grader did not start the program."""
    signal: int = 0
    place: Location = UNKNOWN
    """The source line that the program was executing when a signal ended it."""
    kernel: str = ""
    """The kernel that was running when a signal ended the program."""
    refused: str = ""
    """Why the simulator ended the program: a sentence, without a period, about an unsupported operation."""
    timed_out: float | None = None
    """The time limit in seconds, if it was exceeded."""
    checked: bool = True
    """True if the checks were enabled."""
    failed_allocation: Finding | None = None
    """The first allocation that failed for lack of device memory, if the program handled the error."""
    waits_for_unrecorded_events: list[Finding] = field(default_factory=list)
    """Waits for an event that was never recorded. CUDA permits them, so a program's result shows them as remarks."""
    leaked: int = 0
    """Bytes of device memory not freed. This is not a finding, because the system frees them."""

    @property
    def exit_code(self) -> int:
        """The program's own exit code, or 1 if it succeeded with findings."""
        return 1 if self.status == 0 and self.report and self.report.findings else self.status


def execute(
    program: Path,
    arguments: Sequence[str] = (),
    *,
    name: str = "",
    timeout: float | None = None,
    checks: bool = True,
    jail: str = "none",
    simulated: bool = True,
    workers: int = 1,
    explain: bool = False,
    same_value_races: bool = False,
    reverse: bool = False,
    sample: Sample | None = None,
    folders: Mapping[Path, Path] | None = None,
    output: int | None = None,
) -> Outcome:
    """Run a program to its end. It has the caller's input, output and working folder; in a sandbox it sees no files.

    ``jail`` is the tier of the sandbox: bwrap, landlock or none.
    ``folders`` maps paths inside the sandbox to folders that are visible there. The last one is the program's working
    folder and the only writable one. ``output`` is a descriptor to which the program prints; it then has no input.
    ``workers`` is the number of threads that simulate blocks. With ``explain``, the program reports on stderr which
    kernels were simulated by only one of these threads, and why. With ``same_value_races``, a race between writes
    of the same value is a finding, too. With ``reverse``, blocks and warps run in reverse order, on one thread.
    ``sample`` limits the checks.
    """
    with tempfile.TemporaryDirectory(prefix="grader-run-") as folder:
        report = Path(folder) / "report.txt"
        environment = dict(os.environ)
        if simulated:
            settings = f"checks={int(checks)} watchdog_seconds={max(BLOCK_SECONDS, timeout or 0):g}"
            settings += f" workers={workers} explain={int(explain)} same_value_races={int(same_value_races)}"
            settings += " schedule=reverse" if reverse else ""
            settings += f" note_seconds={NOTE_SECONDS if output is None else 0:g}"
            settings += sample.settings() if sample else ""
            environment |= {"GRADER_PROGRAM_REPORT": str(report), "GRADER_PROGRAM_SETTINGS": settings}
        argv = [name or str(program), *arguments]
        executable = str(program)
        if jail != "none":
            report.touch()
            report.chmod(0o666)
            report.parent.chmod(0o711)
            if jail == "bwrap":
                command = _in_bubblewrap(program, arguments, report, environment, folders or {})
            else:
                command, environment = _in_landlock(program, arguments, report, environment)
            argv = [*as_unprivileged(), *command]
            executable = argv[0]
        began = time.monotonic()
        sys.stdout.flush()
        try:
            stdin = None if output is None else subprocess.DEVNULL
            child = subprocess.Popen(
                argv, executable=executable, env=environment, stdin=stdin, stdout=output, stderr=output
            )
        except OSError as problem:
            raise GraderError(f"the program cannot be started: {problem.strerror}") from None
        timed_out = _wait(child, timeout)
        seconds = time.monotonic() - began
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
        outcome = Outcome(status, seconds, timed_out=timeout if timed_out else None, checked=checks)
        if simulated:
            _read(outcome, report, program)
        return outcome


def _wait(child: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Wait until the program ends; return whether it had to be stopped because of the timeout.

    The program also receives Ctrl-C. It then writes its report and ends.
    """
    end = None if timeout is None else time.monotonic() + timeout
    asked = False
    while True:
        try:
            left = None if end is None else max(0.0, end - time.monotonic())
            child.wait(left)
            return asked and timeout is not None and child.returncode != 0
        except subprocess.TimeoutExpired:
            if asked:
                child.kill()
                child.wait()
                return True
            asked = True
            child.terminate()
            end = time.monotonic() + _GRACE
        except KeyboardInterrupt:
            end = time.monotonic() + _GRACE if end is None else end
            if asked:
                child.kill()


_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SETTINGS = ("GRADER_PROGRAM_REPORT", "GRADER_PROGRAM_SETTINGS")


def _in_bubblewrap(
    program: Path,
    arguments: Sequence[str],
    report: Path,
    environment: Mapping[str, str],
    folders: Mapping[Path, Path],
) -> list[str]:
    argv = bubblewrap({name: environment[name] for name in _SETTINGS})
    for file in (program, *shared_libraries(program)):
        argv += ["--ro-bind", str(reachable(file)), str(file)]
    work = list(folders)[-1] if folders else Path("/")
    for place, folder in folders.items():
        argv += ["--bind" if place == work else "--ro-bind", str(folder), str(place)]
    argv += ["--proc", "/proc", "--dev", "/dev", "--bind", str(report), str(report)]
    argv += ["--remount-ro", "/", "--chdir", str(work), "--", str(program)]
    return [*argv, *arguments]


def _in_landlock(
    program: Path, arguments: Sequence[str], report: Path, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment. The program's working folder is that of the report."""
    files = {file: reachable(file) for file in (program, *shared_libraries(program))}
    folders = dict.fromkeys(str(file.parent) for file in files.values())
    kept = {name: environment[name] for name in _SETTINGS} | {"LD_LIBRARY_PATH": ":".join(folders)}
    visible = [*map(str, files.values()), *_DEVICES, "/proc/self"]
    confine = [str(reachable(build_program("compile"))), str(report.parent), *NO_LIMITS, *visible]
    return [*confine, "--", str(files[program]), *arguments], kept


def _read(outcome: Outcome, report: Path, program: Path) -> None:
    """Read the program's report into its outcome."""
    try:
        text = report.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    head = _HEAD.match(text)
    if head is None:
        return
    outcome.signal, outcome.kernel, outcome.refused = int(head["signal"]), head["kernel"], head["refused"]
    outcome.exit_status, outcome.timed_out = int(head["status"]), outcome.timed_out or float(head["timeout"]) or None
    offsets = [int(offset) for offset in head["places"].split()]
    places = symbolizer(program).locate(offsets)
    outcome.place = next((places[offset] for offset in offsets if places[offset].line), UNKNOWN)
    try:
        outcome.report = Report.from_json(text[head.end() :], library=program)
    except InvalidReport as problem:
        raise GraderError(problem.message, "The program probably overwrote memory of the simulator.") from None
    leaks = [finding for finding in outcome.report.findings if finding.kind == "leak"]
    outcome.report.findings = [finding for finding in outcome.report.findings if finding.kind != "leak"]
    outcome.leaked = sum(leak.payload.bytes for leak in leaks if isinstance(leak.payload, LeakedBytes))
    outcome.waits_for_unrecorded_events = [f for f in outcome.report.findings if f.kind == "event_not_recorded"]
    outcome.report.findings = [f for f in outcome.report.findings if f.kind != "event_not_recorded"]
    outcome.report.findings = one_for_each_buffer(outcome.report.findings)
    full = [finding for finding in outcome.report.findings if _has_error(finding, _OUT_OF_MEMORY)]
    if full and not any(_uses_unallocated_pointer(finding) for finding in outcome.report.findings):
        outcome.failed_allocation = full[0]
        outcome.report.findings = [finding for finding in outcome.report.findings if finding not in full]


def _has_error(finding: Finding, error: int) -> bool:
    return isinstance(finding.payload, RefusedCall) and finding.payload.error == error


def _uses_unallocated_pointer(finding: Finding) -> bool:
    """Return whether the program used a pointer that was never allocated, because it ignored an allocation's error."""
    return finding.kind in ("null_pointer", "illegal_address") or _has_error(finding, _INVALID_VALUE)


def read_left_report(path: Path, program: Path) -> Outcome:
    """Return the outcome of a program that ``execute`` did not start, from the report that it wrote."""
    outcome = Outcome(0, 0.0)
    _read(outcome, path, program)
    outcome.status = 128 + outcome.signal if outcome.signal else 2 if outcome.refused else outcome.exit_status
    return outcome


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
