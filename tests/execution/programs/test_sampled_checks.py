"""Sampled checks: some blocks of some launches run with checks, the others without; the results stay the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.execution.programs.execute import Outcome, Sample, execute
from grader.execution.programs.results import ending
from grader.verdict import Finding
from tests.execution.programs.running import KERNELS

FILE = KERNELS / "sampled.cu"
BLOCKS, SEED = 64, 7
ORDERLY = ("sum", "chain", "grid", "clusters", "pairs", "copies", "atomics")
"""Correct programs whose blocks depend on each other, or on an earlier launch."""


def findings(outcome: Outcome) -> list[Finding]:
    assert outcome.report is not None
    return outcome.report.findings


def block_of(finding: Finding) -> int:
    assert finding.block is not None
    return finding.block[0]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ORDERLY)
def test_results_are_the_same_and_nothing_is_found_in_a_correct_program(
    program: Path, how: str, workers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert findings(execute(program, [how], workers=workers)) == []
    expected = capfd.readouterr().out
    for seed in range(3):
        outcome = execute(program, [how], workers=workers, sample=Sample(8, seed=seed))
        assert outcome.status == 0 and findings(outcome) == []
        assert capfd.readouterr().out == expected
        assert outcome.report is not None and outcome.report.sample is not None
        assert outcome.report.sample.checked_blocks == 8 * outcome.report.sample.checked_launches


@pytest.mark.parametrize("workers", [1, 2])
def test_a_race_in_a_checked_block_is_found_and_in_another_block_it_is_not(program: Path, workers: int) -> None:
    [finding] = findings(execute(program, ["shift", "-1"], workers=workers, sample=Sample(1, seed=SEED)))
    checked = block_of(finding)
    assert finding.kind == "within_block"
    for bad, found in ((checked, 1), ((checked + 1) % BLOCKS, 0)):
        assert len(findings(execute(program, ["shift", str(bad)], workers=workers))) == 1
        outcome = execute(program, ["shift", str(bad)], workers=workers, sample=Sample(1, seed=SEED))
        assert len(findings(outcome)) == found


def test_a_race_between_two_checked_blocks_is_found(program: Path) -> None:
    for blocks, kinds in ((1, []), (2, ["between_blocks"]), (BLOCKS, ["between_blocks"])):
        outcome = execute(program, ["overwrite"], workers=2, sample=Sample(blocks, seed=SEED))
        assert [finding.kind for finding in findings(outcome)] == kinds


def test_uninitialized_memory_is_found_before_blocks_without_checks_may_have_written_it(program: Path) -> None:
    [finding] = findings(execute(program, ["unwritten"], sample=Sample(2, seed=SEED)))
    assert finding.kind == "uninitialized_read"


def test_the_seed_chooses_the_blocks(program: Path) -> None:
    def blocks(seed: int | None) -> tuple[int, int]:
        outcome = execute(program, ["shift", "-1"], sample=Sample(1, seed=seed))
        assert outcome.report is not None and outcome.report.sample is not None
        return block_of(outcome.report.findings[0]), outcome.report.sample.seed

    chosen = [blocks(seed) for seed in range(4)]
    assert len({block for block, _ in chosen}) > 1
    assert chosen == [blocks(seed) for seed in range(4)]
    block, seed = blocks(None)
    assert (block, seed) == blocks(seed)


def test_only_the_first_launches_of_each_kernel_are_checked(program: Path) -> None:
    outcome = execute(program, ["launches", "1"], sample=Sample(launches=1))
    assert findings(outcome) == []
    assert ending(outcome).startswith(
        "The program ended with status 0. There are no findings in 8 launches. Only 2 of 8 launches were checked."
    )
    assert len(findings(execute(program, ["launches", "1"], sample=Sample(launches=2)))) == 1
    assert len(findings(execute(program, ["launches", "0"], sample=Sample(launches=1)))) == 1


def test_grader_run_says_what_was_checked(capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--check-blocks", "8", "--check-launches", "3", "--seed", "7", "--workers", "1"]
    assert run(["run", str(FILE), *options, "--", "launches", "9"]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "Checked 48 of 384 blocks in 6 of 8 launches, seed 7." in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--check-blocks", "0"], "invalid value for '--check-blocks': 0 is not"),
        (["--check-launches", "many"], "invalid value for '--check-launches': 'many' is not"),
        (["--check-blocks", "8", "--no-checks"], "--check-blocks and --check-launches need checks"),
        (["--seed", "8"], "--seed chooses the blocks of --check-blocks"),
        (["--check-blocks", "8", "--seed", "-1"], "invalid value for '--seed': -1 is not"),
    ],
)
def test_impossible_options_are_refused(options: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(FILE), *options]) == 2
    assert said in " ".join(capfd.readouterr().err.split())


def test_variables_do_the_same_for_a_program_built_by_grader_nvcc(tmp_path: Path) -> None:
    built = tmp_path / "program"
    assert run(["nvcc", str(FILE), "-o", str(built)]) == 0

    def started(**variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([built, "launches", "9"], capture_output=True, text=True, env={**os.environ, **variables})

    done = started(GRADER_CHECK_BLOCKS="8", GRADER_CHECK_LAUNCHES="3", GRADER_SEED="7")
    assert done.returncode == 0
    assert "Checked 48 of 384 blocks in 6 of 8 launches, seed 7." in " ".join(done.stderr.split())
    for name, needed in (
        ("GRADER_CHECK_BLOCKS", "a number of blocks, at least 1"),
        ("GRADER_CHECK_LAUNCHES", "a number of launches, at least 1"),
        ("GRADER_SEED", "a number from 0 to 4294967295"),
    ):
        done = started(**{name: "-1"})
        assert done.returncode == 2 and done.stderr == f"error: {name}=-1: set it to {needed}\n"
