"""Readers of a submission in the grader's process: no text makes them fail, and their work is linear in its size.

This is the short form of ``python -m tests.attacks.fuzz``. Work is measured in executed lines of Python and in bytes,
not in seconds.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest

from grader.setup.errors import GraderError
from grader.simulator.report import Report
from grader.simulator.report_format import InvalidReport
from grader.verdict.findings import KINDS
from grader.verdict.wording import findings as words
from tests.attacks import fuzz
from tests.attacks.growing import FRONT_END

FEW, MANY = 100, 800


def _read(family: Callable[[int], str], n: int) -> None:
    with contextlib.suppress(GraderError):
        fuzz.front_end(family(n))


def lines_run(call: Callable[[], None]) -> int:
    """Return the number of Python lines that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def memory_used(call: Callable[[], None]) -> int:
    """Return the peak memory in bytes that Python allocates during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FRONT_END)
def test_work_is_linear_in_the_text(name: str) -> None:
    family = FRONT_END[name]
    _read(family, 2)  # fill the caches
    few, many = (lines_run(lambda n=n: _read(family, n)) for n in (FEW, MANY))  # type: ignore[misc]
    assert many < 1.5 * MANY / FEW * max(few, 10_000)
    few, many = (memory_used(lambda n=n: _read(family, n)) for n in (FEW, MANY))  # type: ignore[misc]
    assert many < 1.5 * MANY / FEW * max(few, 1 << 20)


def test_forged_findings_have_texts() -> None:
    draw, shown = random.Random(5), 0
    for _ in range(1500):
        data = json.loads(fuzz.seeds("report")[1])
        for finding in data["findings"]:
            kind = draw.choice([*KINDS.values()])
            finding["kind"] = draw.choice([*[kind.name] * 20, "no such kind"])
            finding["check"] = draw.choice([*[kind.check] * 20, "memcheck", "fault", "report"])
            finding["other"] = draw.choice([None, {"site": 1, "access": draw.choice(["read", "", "async write"])}])
            finding["memory"] = draw.choice([None, finding["memory"]])
            finding["payload"] = msgspec.to_builtins(kind.sample) if kind.sample else {}
            finding["payload"].pop("of", None)
            for name, value in finding["payload"].items():
                number = isinstance(value, int)
                values = (
                    [0, 7, 1 << 63, (1 << 64) - 1] if number else ["", "1,2", "{site 1 line 3}", "\u00b2", "a" * 300]
                )
                finding["payload"][name] = draw.choice([value, value, draw.choice(values)])
        try:
            report = Report.from_json(json.dumps(data), "no_library.so", "kernel.cu")
        except InvalidReport:
            continue
        shown += 1
        assert all(words.text(finding) and words.title(finding) for finding in report.findings)
    assert shown > 300


@pytest.mark.parametrize("name", fuzz.READERS)
def test_no_text_makes_a_reader_fail(name: str) -> None:
    tried = fuzz.Tried()
    texts = fuzz.changed(name, random.Random(f"{name} 0"))
    for _ in range(25):
        fuzz.attempt(fuzz.READERS[name], next(texts)[:4096], tried)
    fuzz.try_drawn(name, 10, 0, tried)
    assert tried.inputs >= 30
    assert not tried.crashes


def test_the_record_has_no_failures() -> None:
    data = json.loads(fuzz.RECORD.read_text())
    again = "run `python -m tests.attacks.fuzz --minutes 30 --seed 1 --out tests/attacks/fuzz.json`"
    assert data["minutes"] >= 30 and set(data["readers"]) == set(fuzz.READERS), again
    assert data["allowed"]["us_per_byte"] <= fuzz.SECONDS_PER_BYTE * 1e6 and data["allowed"]["seconds"] <= fuzz.SECONDS
    assert data["allowed"]["memory_per_byte"] <= fuzz.MEMORY_PER_BYTE and data["allowed"]["memory"] <= fuzz.MEMORY
    for name, tried in data["readers"].items():
        assert not tried["crashes"] and not tried["too_much"] and tried["inputs"] >= 2000, f"{name}: {again}"
        assert tried["most_seconds"] <= fuzz.seconds_allowed(tried["most_seconds_of"]), name
    assert fuzz.show(data) == 0
    data["readers"]["answer"]["crashes"].append("ValueError of ...")
    assert fuzz.show(data) == 1
