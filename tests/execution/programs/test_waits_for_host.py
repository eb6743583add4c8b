"""A kernel that waits for the host while it runs gets a different message from a kernel that hangs by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.execution.programs.execute import execute
from grader.execution.programs.results import ending
from tests.execution.programs.running import KERNELS, built, line_of, without_findings

FILE = KERNELS / "waits_for_host.cu"


@pytest.mark.parametrize(
    ("how", "kernel", "line"),
    [
        ("w", "until_the_host_writes", "// waits for the host"),
        ("wp", "until_the_host_writes", "// waits for the host"),
        ("a", "until_the_host_adds", "// also waits for the host"),
        ("ap", "until_the_host_adds", "// also waits for the host"),
        ("s", "sleep_until_the_host_writes", "// sleeps until the host writes"),
    ],
)
def test_a_kernel_that_waits_for_the_host_is_refused_and_not_accused(
    program: Path, how: str, kernel: str, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = without_findings(program, how)
    assert outcome.exit_code == 2 and capfd.readouterr().out == "begins\n"
    assert ending(outcome).startswith(
        f"The program was stopped at {FILE.name}:{line_of(line, FILE)} in {kernel}: "
        "the kernel waits for the host while it runs, which is not simulated."
    )


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("d", "// waits for the host"),
        ("l", "// this thread holds the lock"),
        ("m", "// no code writes 2"),
        ("t", "// no code writes 2 here"),
    ],
)
def test_a_kernel_that_hangs_by_itself_is_a_finding(
    program: Path, how: str, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = execute(program, [how])
    assert outcome.report is not None and outcome.refused == ""
    assert [(f.kind, f.line) for f in outcome.report.findings if f.check == "synccheck"] == [
        ("infinite_loop", line_of(line, FILE))
    ]
    assert outcome.exit_code == 1 and capfd.readouterr().out == "begins\nends\n"


def test_the_command_says_so(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["run", str(FILE), "--json", str(tmp_path / "out.json"), "--", "w"]) == 2
    assert "the kernel waits for the host while it runs" in " ".join(capfd.readouterr().err.split())


@pytest.fixture(scope="module")
def unchecked() -> Path:
    return built(FILE, checks=False)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("w", "// waits for the host"),
        ("wp", "// waits for the host"),
        ("a", "// also waits for the host"),
        ("s", "// sleeps until the host writes"),
    ],
)
def test_without_checks_it_is_refused_too(
    unchecked: Path, how: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.execution.programs.execute.BLOCK_SECONDS", 1.0)
    outcome = without_findings(unchecked, how, checks=False)
    assert outcome.refused == "the kernel waits for the host while it runs"
    assert outcome.exit_code == 2 and outcome.place.line == line_of(line, FILE)


@pytest.mark.parametrize("how", ["d", "e", "o"], ids=["device memory", "past the end", "prints"])
def test_without_checks_a_kernel_that_hangs_by_itself_is_a_finding(
    unchecked: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the watchdog ends the kernel, also if it interrupts printing threads, which take a lock."""
    monkeypatch.setattr("grader.execution.programs.execute.BLOCK_SECONDS", 1.0)
    outcome = execute(unchecked, [how], checks=False)
    assert outcome.report is not None and outcome.refused == ""
    assert [finding.kind for finding in outcome.report.findings] == ["infinite_loop"]


def test_skipped_checks_are_named(unchecked: Path) -> None:
    outcome = execute(unchecked, ["a"], checks=False)
    assert "The checks were disabled for 1 launch." in ending(outcome)
    stopped = replace(outcome, refused="", timed_out=2.0)
    assert "Run it without --no-checks: the checks report a kernel that waits for the host." in ending(stopped)
