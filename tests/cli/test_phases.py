"""The steps that ``tests.cli.phases`` times exist, and are restored."""

from __future__ import annotations

from grader.judge import fast
from grader.judge.timing import machine
from tests.cli.phases import Steps


def test_steps_are_timed_and_restored() -> None:
    functions, steps = (machine._driver, fast.verify), Steps()
    with steps.measured():
        assert fast.verify is not functions[1]
        machine._driver()
        machine._driver()
    assert (machine._driver, fast.verify) == functions
    assert steps.calls == {"driver's version": 2} and steps.seconds["driver's version"] > 0
