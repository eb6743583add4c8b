"""Replies of a hostile child process: each fails with a clear message, without a traceback, and never passes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch

from grader.course.task import Case, Input
from grader.execution.runner.answers import (
    MOST_BYTES,
    Done,
    Ended,
    Malformed,
    Ok,
    Refused,
    Writers,
    parse,
    parse_times,
    why_failed,
)
from grader.execution.runner.buffers import MOST_REPORT, prepare
from grader.execution.runner.client import Child
from grader.execution.runner.program import SOURCE, build_runner
from grader.judge.cases import plan, run_case
from grader.verdict import CaseResult
from tests.execution.runner.test_runner import exercise


@pytest.mark.parametrize(
    ("request_", "packet", "answer"),
    [
        ("load", "ok", Ok()),
        ("load", "error no\x1b[2Jsymbol", Refused("no\ufffd[2Jsymbol")),
        ("call", "error ", Refused("no reason given")),
        ("call", "done 0\n", Done(0)),
        ("time", "done -7", Done(-7)),
        ("run", "done 9\nremark launch a: b\nremark changed x\n", Done(9, (("launch", "a: b"), ("changed", "x")))),
        ("time", "done 0\nremark allocated 2097152\n", Done(0, (("allocated", "2097152"),))),
        ("call", "done 0\nremark report\n", Done(0, report_cut=True)),
        ("writer", "writer\n1 2 3 4 5 6\nunknown\n", Writers((([1, 2, 3], [4, 5, 6]), None))),
    ],
)
def test_valid_replies(request_: str, packet: str, answer: object) -> None:
    assert parse(packet.encode(), request_) == answer


HOSTILE = {
    "nothing": b"",
    "another word": b"fine",
    "done without a code": b"done",
    "superscript digits": "done ²".encode(),
    "digits of another script": "done ٣".encode(),
    "a huge code": b"done 1" + b"0" * 5000,
    "an exit code that is no whole number": b"done 1e3",
    "words after the code": b"done 0 0",
    "an unknown remark": b"done 0\nremark whatever x",
    "an amount of memory that is no number": b"done 0\nremark allocated -1",
    "half a remark": b"done 0\nremar",
    "no text": b"done 0\n\xff\xfe",
    "half a character": "done 0\nremark run ä".encode()[:-1],
    "more bytes than a runner ever sends": b"done 0\n" + b"remark run x\n" * 10_000,
    "several megabytes": b"done 0\n" + b"remark run x\n" * 500_000,
    "a null byte": b"done 0\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_replies(name: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse(HOSTILE[name], "call")
    assert len(str(raised.value)) < 200 and str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("request_", "packet"),
    [
        ("load", b"done 0"),
        ("call", b"ok"),
        ("call", b"writer\n"),
        ("writer", b"done 0"),
        ("awake", b"error x"),
        ("writer", "writer\n1 2 3 4 5 ²".encode()),
        ("writer", b"writer\n1 2 3 4 5 6 7"),
        ("writer", b"writer\n-1 2 3 4 5 6"),
        ("writer", b"writer\n1 2 3 4 5 1" + b"0" * 5000),
    ],
)
def test_an_answer_to_another_request(request_: str, packet: bytes) -> None:
    with pytest.raises(Malformed):
        parse(packet, request_)


def test_every_reply_except_done_is_a_failure() -> None:
    assert why_failed(Done(0)) == "" and why_failed(Done(0, (("changed", "x"),))) == ""
    for answer in (Done(9), Done(0, (("memory", "x"),)), Refused("x"), Ended("crash", "x"), Ok(), Writers(())):
        assert why_failed(answer)


@pytest.mark.parametrize("name", [name for name, packet in HOSTILE.items() if 0 < len(packet) < 1_000_000])
def test_a_hostile_answer_fails_its_case(libraries: tuple[Path, Path], name: str) -> None:
    """A case with a right output but a forged reply fails. The next case runs in a new process."""
    packet = torch.tensor(list(HOSTILE[name]), dtype=torch.float32)
    with Child(build_runner(), libraries[1], libraries[0]) as child:
        results = [case_of(child, launcher, packet) for launcher in ("answer", "double_it")]
    assert (results[0].status, results[0].problem) == ("failed", "reply"), results[0].reasons
    assert "that the runner never sends" in results[0].reasons[0]
    assert results[1].passed, results[1].reasons


def case_of(child: Child, launcher: str, x: torch.Tensor) -> CaseResult:
    given = {"x": Input("n", lambda *arguments: x.clone())}
    task = exercise(launcher, inputs=given, cases=[Case("some", n=len(x))], timeout=5.0)
    (run,) = plan(task, task.runs(), seed=1)
    run_case(task, run, child)
    return run.result


@pytest.mark.parametrize("line", [b"nan", b"inf", b"1e400", "²".encode(), b"\xff", b"1" * 5000 + b".000", b"1.5 x"])
def test_impossible_times(line: bytes) -> None:
    assert parse_times(b"1.500\n0.125\n") == [1.5, 0.125]
    with pytest.raises(Malformed):
        parse_times(b"1.500\n" + line)


def test_a_report_of_any_size() -> None:
    task = exercise("double_it")
    with prepare(task.call(task.cases[0], "f32", 1)) as buffers:
        os.ftruncate(buffers.report_file, 1 << 40)
        assert buffers.report() == b""
        os.ftruncate(buffers.report_file, MOST_REPORT)
        assert len(buffers.report()) == MOST_REPORT


def test_the_length_of_replies_is_limited() -> None:
    wire = (SOURCE / "wire.h").read_text()
    assert re.search(rf"char bytes\[{MOST_BYTES}\];", wire)


def test_the_list_of_requests_is_complete() -> None:
    """Check that the list of requests has exactly one item for each request that the runner accepts."""
    requests = (SOURCE / "protocol.h").read_text().partition("lines of arguments")[0]
    taken = re.findall(r'strncmp\(text, "(\w+)', (SOURCE / "runner.cpp").read_text())
    assert re.findall(r"^// - (\w+)", requests, re.MULTILINE) == taken
