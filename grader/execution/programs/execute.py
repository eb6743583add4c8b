"""A program in a process of its own, and what the simulator says when it has ended, however it ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.execution.jail.running import BWRAP_BASE, bubblewrap, no_more_namespaces, shared_libraries
from grader.execution.jail.staging import as_nobody, reachable
from grader.setup.errors import GraderError
from grader.simulator.report import Report
from grader.simulator.report_format import MadeUp
from grader.simulator.symbolize import UNKNOWN, Location, symbolizer
from grader.verdict import Finding
from grader.verdict.findings.launches import RefusedCall
from grader.verdict.findings.memory import LeakedBytes

BLOCK_SECONDS = 10.0
"""Of CPU time without the end of a block: the simulator's own limit for an infinite loop."""
_GRACE = 15.0
"""Seconds that a program has for its report once it was asked to end."""
_INVALID_VALUE, _OUT_OF_MEMORY = 1, 2
"""CUDA's errors."""
_HEAD = re.compile(r"signal (\d{1,3})\nplace (-?\d{1,19})\nkernel ([^\n]{0,400})\nrefused ([^\n]{0,200})\n")


@dataclass
class Outcome:
    """How a program ended."""

    status: int
    """As a shell has it: 128 and the signal's number where one ended it."""
    seconds: float
    report: Report | None = None
    """What the simulator found and counted; None on a GPU, and where the program left nothing."""
    signal: int = 0
    place: Location = UNKNOWN
    """Where the program was when a signal came."""
    kernel: str = ""
    """That was running then."""
    refused: str = ""
    """What the program does that is not simulated, where that ended it: a sentence without its end."""
    timed_out: float | None = None
    """After so many seconds."""
    checked: bool = True
    """Whether the checks looked on."""
    found_no_room: Finding | None = None
    """The first call that asked for more memory than the device had left, where the program took the error for an answer."""
    leaked: int = 0
    """Bytes of device memory that were still allocated: no finding, as the system frees what an ended program had."""

    @property
    def exit_code(self) -> int:
        """The program's own, and 1 where it ended well but there are findings."""
        return 1 if self.status == 0 and self.report and self.report.findings else self.status


def execute(
    program: Path,
    arguments: Sequence[str] = (),
    *,
    name: str = "",
    timeout: float | None = None,
    checks: bool = True,
    jail: bool = False,
    simulated: bool = True,
    workers: int = 1,
    explain: bool = False,
    folders: Mapping[Path, Path] | None = None,
    output: int | None = None,
) -> Outcome:
    """Run a program to its end, with the caller's input, output and working folder; in a jail it sees no files.

    ``folders``: what it sees in a jail all the same, by the names that it sees. It works in the last of them, which it
    may write. ``output``: a descriptor for all that it prints; it then has no input. ``workers``: threads that run
    blocks. With ``explain`` the program says on stderr which kernels had only one, and why.
    """
    with tempfile.TemporaryDirectory(prefix="grader-run-") as folder:
        report = Path(folder) / "report.txt"
        environment = dict(os.environ)
        if simulated:
            settings = f"checks={int(checks)} watchdog_seconds={max(BLOCK_SECONDS, timeout or 0):g}"
            settings += f" workers={workers} explain={int(explain)}"
            environment |= {"GRADER_PROGRAM_REPORT": str(report), "GRADER_PROGRAM_SETTINGS": settings}
        argv = [name or str(program), *arguments]
        executable = str(program)
        if jail:
            report.touch()
            report.chmod(0o666)
            report.parent.chmod(0o711)
            argv = [*as_nobody(), *_jailed(program, arguments, report, environment, folders or {})]
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
    """Until it has ended; whether it had to be stopped. Ctrl-C goes to the program, too: its report is waited for."""
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


def _jailed(
    program: Path,
    arguments: Sequence[str],
    report: Path,
    environment: Mapping[str, str],
    folders: Mapping[Path, Path],
) -> list[str]:
    argv = [bubblewrap(), *BWRAP_BASE, *no_more_namespaces()]
    for name in ("GRADER_PROGRAM_REPORT", "GRADER_PROGRAM_SETTINGS"):
        argv += ["--setenv", name, environment[name]]
    for file in (program, *shared_libraries(program)):
        argv += ["--ro-bind", str(reachable(file)), str(file)]
    work = list(folders)[-1] if folders else Path("/")
    for place, folder in folders.items():
        argv += ["--bind" if place == work else "--ro-bind", str(folder), str(place)]
    argv += ["--proc", "/proc", "--dev", "/dev", "--bind", str(report), str(report)]
    argv += ["--remount-ro", "/", "--chdir", str(work), "--", str(program)]
    return [*argv, *arguments]


def _read(outcome: Outcome, report: Path, program: Path) -> None:
    """Read a program's report into its outcome."""
    try:
        text = report.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    head = _HEAD.match(text)
    if head is None:
        return
    outcome.signal, outcome.kernel, outcome.refused = int(head[1]), head[3], head[4]
    if offset := int(head[2]):
        outcome.place = symbolizer(program).locate([offset])[offset]
    try:
        outcome.report = Report.from_json(text[head.end() :], library=program)
    except MadeUp as problem:
        raise GraderError(problem.message, "The program wrote over the simulator's memory.") from None
    leaks = [finding for finding in outcome.report.findings if finding.kind == "leak"]
    outcome.report.findings = [finding for finding in outcome.report.findings if finding.kind != "leak"]
    outcome.leaked = sum(leak.payload.bytes for leak in leaks if isinstance(leak.payload, LeakedBytes))
    full = [finding for finding in outcome.report.findings if _of(finding, _OUT_OF_MEMORY)]
    if full and not any(_uses_nothing(finding) for finding in outcome.report.findings):
        outcome.found_no_room = full[0]
        outcome.report.findings = [finding for finding in outcome.report.findings if finding not in full]


def _of(finding: Finding, error: int) -> bool:
    return isinstance(finding.payload, RefusedCall) and finding.payload.error == error


def _uses_nothing(finding: Finding) -> bool:
    """Return whether an error follows from a pointer without memory, so that no code has checked the allocation's error."""
    return finding.kind in ("null_pointer", "illegal_address") or _of(finding, _INVALID_VALUE)


def read_left_report(path: Path, program: Path) -> Outcome:
    """Return the report that a program wrote by itself."""
    outcome = Outcome(0, 0.0)
    _read(outcome, path, program)
    outcome.status = 128 + outcome.signal if outcome.signal else 2 if outcome.refused else 0
    return outcome


def signal_name(number: int) -> str:
    """``SIGSEGV`` and its like."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
