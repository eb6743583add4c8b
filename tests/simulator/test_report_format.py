"""Tests of report parsing: invalid reports are refused, and accepted ones cause no errors in later code."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from grader.simulator import report_format
from grader.simulator.report import Report
from grader.simulator.report_format import InvalidReport, read
from grader.verdict.findings import KINDS
from grader.verdict.wording.findings import message, text
from tests.seeds import SEED
from tests.simulator.test_report import Run, built

SIDE = {"site": 1, "access": "read", "block": [0, 0, 0], "thread": [1, 0, 0]}
MEMORY = {
    "kind": "tensor",
    "name": "x",
    "dtype": "float32",
    "shape": [4],
    "id": 1,
    "bytes": 16,
    "element_bytes": 4,
    "offset": 16,
}
FINDING = {
    **SIDE,
    "check": "memcheck",
    "kind": "out_of_bounds",
    "kernel": "f",
    "count": 1,
    "bytes": 4,
    "payload": {"address": 64},
    "memory": MEMORY,
}
WHOLE = {"version": 1, "findings": [FINDING], "sites": [[1, 0, 64]], "modules": ["kernel.so"]}


def payload(kind: str) -> dict[str, Any]:
    """Return the sample payload of a kind of finding, as the simulator writes it."""
    sample = KINDS[kind].sample
    found: dict[str, Any] = msgspec.to_builtins(sample) if sample else {}
    found.pop("of", None)
    return found


def changed(path: str, value: Any) -> str:
    """Return the report with one value replaced, or removed if it is ``...``."""
    report = copy.deepcopy(WHOLE)
    *where, last = path.split(".")
    part: Any = report
    for step in where:
        part = part[int(step) if step.isdigit() else step]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return json.dumps(report)


def test_reports_of_libsim_are_read_completely() -> None:
    assert read(json.dumps(WHOLE)).findings[0].memory.shape == [4]
    assert read("") == read("{}") == report_format.Report()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("findings", None),
        ("findings.0.count", -1),
        ("findings.0.count", 1.5),
        ("findings.0.count", True),
        ("findings.0.count", "1"),
        ("findings.0.count", 1 << 64),
        ("findings.0.payload.address", 1 << 64),
        ("findings.0.payload.address", "64"),
        ("findings.0.payload.address", ...),
        ("findings.0.payload.surprise", 1),
        ("findings.0.payload", []),
        ("findings.0.bytes", float("nan")),
        ("findings.0.bytes", float("inf")),
        ("findings.0.payload", ...),
        ("findings.0.check", "tastecheck"),
        ("findings.0.kind", "leak" * 20),
        ("findings.0.check", "racecheck"),
        ("findings.0.kind", "a_kind_of_tomorrow"),
        ("findings.0.block", [0, 0]),
        ("findings.0.thread", [0, 0, -1]),
        ("findings.0.block", [0, 0, 1 << 32]),
        ("findings.0.surprise", 1),
        ("findings.0.memory.shape", [1] * 9),
        ("findings.0.memory.shape", [[[1]]]),
        ("findings.0.memory.offset", 1 << 63),
        ("sites", [[1, 1, 64]]),
        ("sites", [[1, 0]]),
        ("modules", ["x" * 5000]),
        ("version", 2),
    ],
)
def test_invalid_reports_are_refused(path: str, value: Any) -> None:
    with pytest.raises(InvalidReport):
        read(changed(path, value))


@pytest.mark.parametrize("kind", ["leak", "use_after_free", "uninitialized_read", "output_not_written", "within_warp"])
def test_a_finding_has_the_values_of_its_text(kind: str) -> None:
    report = copy.deepcopy(WHOLE)
    report["findings"][0] |= {"kind": kind, "check": KINDS[kind].check, "payload": payload(kind), "other": SIDE}
    read(json.dumps(report))
    del report["findings"][0]["memory"]
    with pytest.raises(InvalidReport, match="without its memory"):
        read(json.dumps(report))


@pytest.mark.parametrize("first", [["0"], [0.5], [1 << 64], 0, [0] * 17])
def test_elements_that_are_not_numbers(first: Any) -> None:
    report = copy.deepcopy(WHOLE)
    unwritten = {"missing": 1, "first": first}
    report["findings"][0] |= {"kind": "output_not_written", "check": "initcheck", "payload": unwritten}
    with pytest.raises(InvalidReport, match="output_not_written"):
        read(json.dumps(report))


def test_long_texts_of_a_payload_are_refused() -> None:
    report = copy.deepcopy(WHOLE)
    report["findings"][0] |= {"kind": "trap", "check": "fault", "payload": {"reason": "x" * 401}}
    with pytest.raises(InvalidReport, match="trap"):
        read(json.dumps(report))


@pytest.mark.parametrize(
    "text",
    [
        '{"dropped_findings": 1' + "0" * 5000 + "}",
        '{"dropped_findings": ²}',
        '{"dropped_findings": NaN}',
        '{"scratch_bytes": 1e5}',
        '{"traces": ' + "[" * 200_000,
        '{"unknown": ' + "[" * 200_000,
        '{"modules": ["\\ud800"]}',
        '{"version": 1',
        "{} {}",
        "null",
        "[]",
        "\ufffd",
    ],
    ids=range(12),
)
def test_texts_that_are_not_a_report(text: str) -> None:
    with pytest.raises(InvalidReport):
        read(text)


def test_control_characters_are_removed() -> None:
    report = copy.deepcopy(WHOLE)
    report["findings"][0]["kernel"] = report["findings"][0]["memory"]["name"] = "\x1b[2J\u0000x"
    report["modules"] = ["\x00"]
    whole = read(json.dumps(report))
    assert whole.findings[0].kernel == whole.findings[0].memory.name == "\ufffd[2J\ufffdx"
    assert whole.modules == ["\ufffd"]


# -- rendering of accepted reports --

NUMBERS = [0, 1, 2, 255, (1 << 32) - 1, (1 << 63) - 1]
TEXTS = ["", "read", "atomic", "tensor", "__shared__", "global", "0,1", "{site 1 line 2}", *sorted(KINDS)]


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and key of every number and text in a report."""
    for key, value in list(part.items() if isinstance(part, dict) else enumerate(part)):
        if isinstance(value, (dict, list)):
            yield from places(value)
        else:
            yield part, key


def test_accepted_reports_can_be_rendered() -> None:
    """Check that reports of real runs with a few changed or missing values are refused or rendered completely."""
    random = Random(SEED)
    refused = told = 0
    for _ in range(600):
        report = json.loads(random.choice(texts()))
        for holder, key in random.sample(list(places(report)), random.randint(1, 3)):
            if isinstance(holder, dict) and random.random() < 0.1:
                del holder[key]
            else:
                holder[key] = random.choice(NUMBERS if isinstance(holder[key], int) else TEXTS)
        try:
            whole = Report.from_json(json.dumps(report), built()[0].library, Path("findings.cu"))
        except InvalidReport:
            refused += 1
            continue
        told += 1
        assert all(text(finding) and message(finding) for finding in whole.findings)
        assert all(line.counters is not None for line in whole.lines)
    assert refused > 50 and told > 50


@cache
def texts() -> list[str]:
    """Return reports of real runs: findings of all checks, and counters."""
    calls: list[tuple[Any, ...]] = [
        ("past_end", (2, 4, 5), (2, 4, 5), 8, 5),
        ("unordered", (64,), 64),
        ("checkered", (4, 6), 4, 6),
        ("many_lines", (32,), 32),
    ]
    return [Run(*call).text for call in calls]
