"""The player's page: its data, its maximum size, and escaping of a kernel's text."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.report.notebook import play
from grader.report.player import page
from grader.report.player.encoding import KINDS, MOST_EVENTS, encode
from grader.setup.errors import GraderError
from grader.simulator.recording import Event
from grader.simulator.report_format import RecordedMemory
from grader.verdict.record import clean
from tests.report.player.recordings import FILE, kernel, record

SCRIPT = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(text: str) -> dict[str, Any]:
    (found,) = SCRIPT.findall(text)
    return json.loads(found)


def steps(data: dict[str, Any], kind: str) -> list[list[Any]]:
    return [event for event in data["events"] if data["kinds"][event[0]] == kind]


@pytest.mark.parametrize(
    ("declared", "size"),
    [("__align__(16) bf16", 2), ("const volatile half2", 2), ("double", 8), ("unsigned", 4), ("Row", 4)],
)
def test_the_element_type_of_a_shared_array(declared: str, size: int) -> None:
    recording, _, findings = record("strided", torch.zeros(256), torch.zeros(32))
    array = RecordedMemory(space="shared", name="tile", dtype="", element_bytes=0, start=0, bytes=64)
    data = encode(replace(recording, memories=[array], events=[]), f"__shared__ {declared} tile[8];", findings).data
    assert data["memories"][0]["element"] == size


def test_addresses_are_a_start_and_a_step() -> None:
    data = data_of(page.page(*record("strided", torch.zeros(256), torch.zeros(32))))
    (read,) = steps(data, "read")
    assert read[1:] == [0, -1, read[3], 0, 0, read[6], 4, [0, 32]]
    assert data["memories"][read[6] - 1]["name"] == "x"
    assert data["source"][read[3] - data["first_line"]].startswith("__global__ void strided")


def test_values_are_decoded_by_type() -> None:
    data = data_of(page.page(*record("conflicts", torch.zeros(32))))
    (write,) = steps(data, "write")[:1]
    assert write[9] == [1.5]  # stored once, because all lanes write the same value
    assert all(len(event) < 10 for event in steps(data, "read"))  # the values of reads follow from earlier writes
    data = data_of(page.page(*record("adds", torch.zeros(1, dtype=torch.int32))))
    assert sorted(value for event in steps(data, "atomic") for value in event[9]) == list(range(8, 72))


def test_a_finding_has_the_steps_of_its_two_sides() -> None:
    recording, source, findings = record("races", torch.arange(64.0))
    data = data_of(page.page(recording, source, findings))
    (finding,) = data["findings"]
    assert finding["text"].startswith("racecheck: ")
    write, read = sorted(data["kinds"][data["events"][step - 1][0]] for step in finding["steps"])[::-1]
    assert (write, read) == ("write", "read")
    assert "racecheck" in page.as_text(recording, findings)


def test_the_sides_of_a_race_are_two_accesses_without_a_barrier_between_them() -> None:
    """The steps name a write and the read that it races with, not a read that a barrier separates from the write."""
    recording, source, findings = record("rounds", torch.zeros(64))
    data = data_of(page.page(recording, source, findings))
    ((first, second),) = [finding["steps"] for finding in data["findings"]]
    kinds = [data["kinds"][event[0]] for event in data["events"]]
    assert {kinds[first - 1], kinds[second - 1]} == {"read", "write"}
    assert "barrier_complete" not in kinds[first - 1 : second] and "barrier_complete" in kinds[: first - 1]


def test_a_finding_of_another_block_is_not_shown() -> None:
    recording, source, findings = record("races", torch.arange(64.0))
    assert not data_of(page.page(replace(recording, index=[1, 0, 0]), source, findings))["findings"]


def test_5000_steps_of_128_threads_stay_under_two_megabytes() -> None:
    recording, source, findings = record("endless", torch.zeros(128), 500)
    assert len(recording.events) > MOST_EVENTS
    text = page.page(recording, source, findings)
    data = data_of(text)
    assert len(data["events"]) == MOST_EVENTS and len(text.encode()) < page.MOST_BYTES
    assert data["cut"] and data["left_out"] == len(recording.events) - MOST_EVENTS


def test_the_worst_addresses_and_values_stay_under_two_megabytes() -> None:
    recording, source, findings = record("conflicts", torch.zeros(32))
    memory = next(number for number, memory in enumerate(recording.memories) if memory.name == "square")
    start = recording.memories[memory].start
    lanes = list(range(32))
    scattered = [
        Event(
            "write",
            step % 4,
            lanes,
            recording.events[0].file,
            recording.events[0].line,
            memory,
            size=4,
            offsets=[start + 4 * ((lane * lane * (37 + step) + step * lane) % 1024) for lane in lanes],
            values=[bytes([step % 251, lane, 200, 66]) for lane in lanes],
        )
        for step in range(MOST_EVENTS)
    ]
    whole = replace(recording, events=scattered, threads=128)
    assert len(page.page(whole, source, findings).encode()) < page.MOST_BYTES
    small = page.frame(whole, source, findings, 300_000)
    assert 150_000 < len(small.encode()) < 300_000
    assert data_of(html.unescape(small))["cut"]


def test_hostile_text_stays_text() -> None:
    recording, _, findings = record("races", torch.arange(64.0))
    hostile = "</script><script>alert(1)</script><!-- \" & ' \u2028 ]]> <img src=x onerror=alert(2)>"
    source = "\n".join(f"{line} // {hostile}" for line in FILE.read_text().splitlines())
    named = replace(recording, kernel=hostile, memories=list(recording.memories))
    text = page.page(named, source, findings)
    assert "<script>alert" not in text and "<img" not in text
    assert data_of(text)["source"][0].endswith(clean(hostile, 1000)) and data_of(text)["kernel"] == hostile
    framed = page.frame(named, source, findings)
    assert framed.count("<iframe") == 1 and "<img" not in framed and "alert(1)</script>" not in framed
    assert data_of(html.unescape(framed.split('srcdoc="')[1].split('"></iframe>')[0]))["kernel"] == hostile


def test_the_page_sends_no_requests() -> None:
    text = page.page(*record("races", torch.arange(64.0)))
    assert not re.search(r"https?:|url\(|@import|<link|src=", text)
    assert "default-src 'none'" in text


def test_the_frame_lets_scripts_run_and_nothing_else() -> None:
    framed = page.frame(*record("races", torch.arange(64.0)))
    assert 'sandbox="allow-scripts"' in framed and framed.count("sandbox") == 1
    assert "width:100%;box-sizing:border-box" in framed, "without these styles the frame's right border is cut off"


def test_play_in_a_notebook(tmp_path: Path) -> None:
    out = torch.zeros(128)
    player = play(kernel().run_coalesced, torch.arange(128.0), out, block=(1, 0, 0))
    assert torch.equal(out, torch.arange(128.0))
    bundle = player._repr_mimebundle_()
    assert bundle["text/plain"].startswith("coalesced, block (1, 0, 0), step by step: 6 steps of 2 warps")
    assert len(bundle["text/html"]) < 60_000
    player.save(str(tmp_path / "player.html"))
    assert data_of((tmp_path / "player.html").read_text())["block"] == [1, 0, 0]
    with pytest.raises(GraderError, match="cannot write"):
        player.save(str(tmp_path))
    # `play` shows a finding without raising it. An ordinary call of the kernel raises it.
    assert play(kernel().run_races, torch.arange(64.0)).findings
    with pytest.raises(GraderError, match="racecheck"):
        kernel().run_races(torch.arange(64.0))


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((print,), {}, "must be a launcher"),
        ((0, 0), {"block": (0, 0)}, "does not name a block"),
        ((0, 0), {"launch": -1}, "does not name a block"),
        ((torch.zeros(128), torch.zeros(128)), {"block": (2, 0, 0)}, r"block \(2, 0, 0\) of launch 0 did not run"),
        ((torch.zeros(128), torch.zeros(128)), {"launch": 1}, "of launch 1 did not run"),
    ],
)
def test_play_says_what_is_wrong(arguments: Any, options: dict[str, Any], said: str) -> None:
    launcher = () if arguments[0] is print else (kernel().run_coalesced,)
    with pytest.raises(GraderError, match=said):
        play(*launcher, *arguments, **options)


def test_a_recording_in_which_nothing_happened() -> None:
    recording, source, _ = record("races", torch.arange(64.0))
    data = encode(replace(recording, events=[]), source).data
    assert data["events"] == [] and data["kinds"] == KINDS
    assert "0 steps" in page.as_text(replace(recording, events=[]))
