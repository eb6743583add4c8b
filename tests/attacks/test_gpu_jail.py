"""The jail for kernels on a real GPU, tested without a GPU: its limits are applied to the simulator's runner.

Access to devices and driver files needs a GPU: ``python -m tests.gpu.jail``.
"""

from __future__ import annotations

import pytest

from grader.execution.jail.running import NO_JAIL, Jail
from grader.execution.runner import canary, tiers
from grader.execution.runner.program import build_runner
from grader.report.terminal import as_text
from tests.attacks.conftest import HERE, REACHES_OUTSIDE, Judge


@pytest.fixture
def on_gpu(tier: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of the tier for kernels on a GPU."""
    monkeypatch.setattr(tiers, "in_force", lambda arch=None: tiers.InForce(Jail(tier, gpu=True)))
    return tier


def test_the_jail_contains_the_canary(tier: str) -> None:
    assert canary.escapes(Jail(tier, gpu=True), tiers._secrets(), build_runner()) == []


def test_without_a_jail_the_canary_reports_its_access() -> None:
    could = canary.escapes(NO_JAIL, tiers._secrets(), build_runner())
    for what in ("read ", "write ", "change the rights of ", "change the time of ", "connect to ", "send to "):
        assert any(line.startswith(what) for line in could), (what, could)
    assert {"connect", "signal the grader", "start a process", "make a file in memory"} <= set(could)


def test_an_honest_kernel_passes(on_gpu: str, judged: Judge) -> None:
    verdict = judged(HERE / "controls/honest.cu")
    assert verdict.passed and verdict.isolation == on_gpu, as_text(verdict)
    assert "a sandbox with access to the GPU" in verdict.isolation_note


@pytest.mark.parametrize("name", REACHES_OUTSIDE)
def test_attacks_on_the_outside_are_contained(on_gpu: str, judged: Judge, name: str) -> None:
    verdict = judged(HERE / "run" / f"{name}.cu")
    assert verdict.stage("builds").passed and not verdict.passed, as_text(verdict)
