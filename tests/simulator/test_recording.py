"""Tests of recordings of kernels with known steps: each thread's accesses, their addresses, and waits."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import load_kernel
from grader.execution.in_process.kernel import Kernel
from grader.setup.errors import GraderError
from grader.simulator.recording import Event, Recording
from grader.simulator.report import Report
from grader.simulator.report_format import InvalidReport, read

FILE = Path(__file__).parent / "kernels/recorded.cu"
Record = Callable[..., Report]


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return load_kernel(FILE)


@pytest.fixture
def record(kernel: Kernel) -> Record:
    def run(name: str, *arguments: Any, block: tuple[int, int, int] = (0, 0, 0)) -> Report:
        kernel._simulator.configure(schedule="forward", workers="1")  # other tests may have changed these settings
        with kernel.recording(block):
            getattr(kernel, f"run_{name}")(*arguments)
        return kernel.report

    return run


def recorded(report: Report) -> Recording:
    assert report.recording is not None
    return report.recording


def of(recording: Recording, kind: str, memory: str = "") -> list[Event]:
    """Return the recorded events of a kind that access the named memory."""
    return [
        event
        for event in recording.events
        if event.kind == kind and (not memory or recording.memories[event.memory].name == memory)
    ]


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(FILE.read_text().splitlines(), 1) if text in line)


def floats(event: Event) -> list[float]:
    return [struct.unpack("<f", value)[0] for value in event.values if value is not None]


ALL = list(range(32))


def test_coalesced_and_strided_addresses(record: Record) -> None:
    recording = recorded(record("coalesced", torch.zeros(128), torch.zeros(128), block=(1, 0, 0)))
    assert (recording.kernel, recording.index, recording.grid, recording.threads) == (
        "coalesced",
        [1, 0, 0],
        [2, 1, 1],
        64,
    )
    (first, second) = of(recording, "read", "x")
    assert first.lanes == second.lanes == ALL and (first.warp, second.warp) == (0, 1)
    assert first.offsets == [256 + 4 * lane for lane in ALL] and first.size == 4
    assert second.offsets == [384 + 4 * lane for lane in ALL]
    assert first.line == line_of("out[i] = x[i];") and first.file == str(FILE)
    recording = recorded(record("strided", torch.zeros(256), torch.zeros(32)))
    assert [event.offsets for event in of(recording, "read", "x")] == [[32 * lane for lane in ALL]]


def test_shapes_and_memories(record: Record) -> None:
    x, out = torch.zeros(129)[1:], torch.zeros(192)  # a slice: unlike an allocation, it is not aligned to 256 bytes
    recording = recorded(record("coalesced", x, out, block=(1, 0, 0)))
    assert recording.block == [64, 1, 1]
    for memory, tensor in zip(recording.memories, (x, out)):
        described = (memory.space, memory.element_bytes, memory.start, memory.bytes)
        assert described == ("global", 4, 4 * int(tensor.storage_offset()), 4 * tensor.numel()), memory.name
    recording = recorded(record("plane", out, block=(1, 2, 0)))
    assert (recording.grid, recording.block, recording.index) == ([2, 3, 1], [16, 2, 1], [1, 2, 0])
    assert [event.offsets for event in of(recording, "write")] == [[4 * (5 * 32 + lane) for lane in ALL]]


def test_values_of_elements_written_twice_and_of_structures(record: Record) -> None:
    recording = recorded(record("settles", torch.zeros(32)))
    assert [floats(event) for event in of(recording, "write", "part")] == [[1.0] * 32, [2.0] * 32]
    pieces = of(recording, "write", "pairs")
    held = {
        offset: value for event in pieces for offset, value in zip(event.offsets, event.values) if value is not None
    }
    start = next(m.start for m in recording.memories if m.name == "pairs")
    assert sum(map(len, held.values())) == 32 * 32
    for offset, value in held.items():
        wanted = 3.0 if (offset - start) % 32 < 16 else 4.0
        assert set(struct.unpack(f"<{len(value) // 4}f", value)) == {wanted}


def test_requests_are_those_that_are_counted(record: Record) -> None:
    """Compare recorded accesses with the requests that the counters count, lane by lane."""
    for name, size in (("conflicts", 32), ("waits", 96), ("diverges", 128), ("shuffles", 64)):
        report = record(name, torch.zeros(size))
        events = [e for e in recorded(report).events if e.kind in ("read", "write")]
        for line in report.lines:
            own = [event for event in events if event.line == line.line]
            assert len(own) == line.requests + line.shared_requests, (name, line.line)
            assert sum(len(event.lanes) for event in own) == line.accesses


def test_bank_conflict_and_values(record: Record) -> None:
    recording = recorded(record("conflicts", torch.zeros(32)))
    (write,) = of(recording, "write", "square")
    (read,) = of(recording, "read", "square")
    start = recording.memories[write.memory].start
    assert [offset - start for offset in write.offsets] == [128 * lane for lane in ALL] and start % 128 == 0
    assert floats(write) == floats(read) == [1.5] * 32
    assert recording.shared_bytes == 4096


def test_waits_at_a_barrier(record: Record) -> None:
    recording = recorded(record("waits", torch.zeros(96)))
    kinds = [(event.kind, event.warp) for event in recording.events]
    done = kinds.index(("barrier_complete", -1))
    arrivals = [event for event in recording.events[:done] if event.kind == "barrier_wait"]
    assert sorted(event.warp for event in arrivals) == [0, 1, 2]
    barrier = line_of("if (threadIdx.x < 32) part") + 1
    assert {(len(event.lanes), event.name, event.line) for event in arrivals} == {(32, "__syncthreads", barrier)}
    # Warps without work arrive before warp 0 has finished its work. No thread reads before all have arrived.
    assert kinds.index(("barrier_wait", 1)) < kinds.index(("barrier_wait", 0))
    assert kinds.index(("barrier_wait", 0)) > kinds.index(("write", 0))
    reads = [
        i
        for i, event in enumerate(recording.events)
        if event.kind == "read" and recording.memories[event.memory].name == "part"
    ]
    assert len(reads) == 3 and min(reads) > done
    assert [event.lanes for event in of(recording, "thread_exit")] == [ALL] * 3


def test_both_sides_of_a_race(record: Record) -> None:
    report = record("races", torch.arange(64.0))
    (finding,) = report.findings
    assert finding.kind == "within_block" and finding.other is not None and finding.memory is not None
    recording = recorded(report)
    start = next(m.start for m in recording.memories if m.name == "part")
    for side, kind in ((finding, "write"), (finding.other, "read")):
        assert side.thread is not None and side.memory is not None
        warp, lane = divmod(side.thread[0], 32)
        (event,) = [e for e in of(recording, kind, "part") if e.warp == warp and e.line == side.line]
        assert event.offsets[event.lanes.index(lane)] - start == side.memory.offset
    # Warp 0 ran first, before warp 1 wrote its part. The recording contains the old values, which warp 0 read.
    first = of(recording, "read", "part")[0]
    assert first.warp == 0 and first.values[0] == b"\xff" * 4


def test_lanes_of_both_sides_of_a_branch(record: Record) -> None:
    recording = recorded(record("diverges", torch.zeros(128)))
    masks = [event.lanes for event in of(recording, "write", "out")]
    trips = [[lane for lane in ALL if lane % 4 > k] for k in range(3)]
    assert masks == [ALL[:8], ALL[8:], *trips, ALL]
    # Lanes that exit the loop early wait for the others at the warp's barrier.
    waiting = [event for event in of(recording, "warp_wait") if event.name == "__syncwarp"]
    assert [event.lanes for event in waiting] == [ALL[0:8:4], ALL[8::4], ALL[1::4], ALL[2::4]]
    (meeting,) = of(recording, "warp_sync")
    assert meeting.lanes == ALL and meeting.name == "__syncwarp"


def test_shuffles_of_all_and_of_some_lanes(record: Record) -> None:
    recording = recorded(record("shuffles", torch.zeros(64)))
    assert [(event.name, event.lanes) for event in of(recording, "warp_sync")] == [
        ("__shfl_xor_sync", ALL),
        ("__shfl_xor_sync", ALL[16:]),
    ]
    # The lower half exits before the upper half synchronizes again, so the two halves write in two requests.
    assert [event.lanes for event in of(recording, "write", "out")] == [ALL[16:], ALL[:16], ALL[16:]]


def test_asynchronous_copies_and_when_they_arrive(record: Record) -> None:
    x = torch.arange(256.0)
    recording = recorded(record("copies", x, torch.zeros(64)))
    what = [
        event.kind
        for event in recording.events
        if event.kind not in ("warp_sync", "warp_wait", "read", "write", "thread_exit")
    ]
    once = ["async_read", "async_write", "cp_async_commit"]
    assert what == [*once, *once, "cp_async_wait", "copy_complete", "cp_async_wait", "copy_complete"]
    assert [event.number for event in of(recording, "cp_async_wait")] == [1, 0]
    start = next(m.start for m in recording.memories if m.name == "stage")
    for k, event in enumerate(of(recording, "copy_complete")):
        assert [offset - start for offset in event.offsets] == [
            512 * k + 16 * lane for lane in ALL
        ] and event.size == 16
        assert (event.file, event.line) == ("", 0), "an asynchronous copy must have no source line"
        held = b"".join(value for value in event.values if value is not None)
        assert struct.unpack("<128f", held) == tuple(x[128 * k : 128 * k + 128].tolist())


def test_atomic_operations_leave_their_results(record: Record) -> None:
    recording = recorded(record("adds", torch.zeros(1, dtype=torch.int32)))
    sums = [struct.unpack("<i", value)[0] for e in of(recording, "atomic") for value in e.values if value is not None]
    assert sorted(sums) == list(range(8, 72))


def test_deadlocked_threads(record: Record) -> None:
    report = record("hangs", torch.zeros(64))
    assert [finding.kind for finding in report.findings if finding.check == "synccheck"] == ["deadlock"]
    (stuck,) = of(recorded(report), "blocked")
    assert (stuck.warp, stuck.lanes, stuck.name) == (0, ALL, "bar.sync")
    assert stuck.line == line_of("bar.sync 1, 64")
    assert [event.warp for event in of(recorded(report), "thread_exit")] == [1]


def test_a_long_recording_is_cut_at_a_point_that_all_threads_reached(record: Record) -> None:
    recording = recorded(record("endless", torch.zeros(128), 2000))
    assert recording.cut
    done = len(of(recording, "barrier_complete"))
    assert 400 < done < 2000
    for warp in range(4):
        own = [event for event in recording.events if event.warp == warp]
        assert all(event.lanes == ALL for event in own)
        assert sum(event.kind == "write" for event in own) in (done, done + 1)
    assert not recorded(record("endless", torch.zeros(128), 100)).cut


def test_a_warp_is_cut_at_a_point_that_its_lanes_reached(record: Record) -> None:
    recording = recorded(record("apart", torch.zeros(96), 2000))
    assert recording.cut
    writes = [sum(event.kind == "write" and event.warp == warp for event in recording.events) for warp in range(3)]
    assert 400 < writes[0] < 2000 and writes[1:] == [3, 3]
    assert all(event.lanes == ALL for event in recording.events)


def test_nothing_is_recorded_without_a_request(kernel: Kernel) -> None:
    kernel.run_coalesced(torch.zeros(128), torch.zeros(128))
    assert kernel.report.recording is None
    with kernel.recording((2, 0, 0)):  # no such block
        kernel.run_coalesced(torch.zeros(128), torch.zeros(128))
    assert kernel.report.recording is None


def test_a_recording_changes_no_counter_and_no_finding(kernel: Kernel, record: Record) -> None:
    for name, size in (("waits", 96), ("diverges", 128), ("conflicts", 32), ("shuffles", 64)):
        getattr(kernel, f"run_{name}")(torch.zeros(size))
        plain = kernel.report
        watched = record(name, torch.zeros(size))
        assert (watched.lines, watched.findings, watched.totals) == (plain.lines, plain.findings, plain.totals)


def test_only_the_simulator_with_checks_records() -> None:
    unchecked = load_kernel(FILE, checks=False)
    with pytest.raises(GraderError, match="cannot be recorded"), unchecked.recording():
        pass


HONEST = {
    "kernel": "f", "launch": 0, "grid": [1, 1, 1], "block": [32, 1, 1], "index": [0, 0, 0], "threads": 32,
    "shared_bytes": 0, "cut": 0, "names": [], "memories": [], "events": [[20, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"events": [[99, 0, 0, 0, 0, 0, 0, 0, 0, 0]]},
        {"events": [[0, 0, 0, 1, 0, 4, 0, 0, 0, 0]]},
        {"events": [[18, 32, 0, 0, 0, 0, 0, 0, 0, 0]]},
        {"events": [[0, 0, 0, 0, 0, 4, 0, 1, 1 << 64, 0]]},
        {"events": [[0, 0, 0]]},
        {"events": [[20, 65535, 0, 0, 0, 0, 0, 0, 0, 0]]},
        {"threads": 4096},
        {"names": ["x" * 65]},
        {"more": 1},
    ],
)
def test_a_forged_recording_is_refused(change: dict[str, Any]) -> None:
    assert read(json.dumps({"recording": HONEST})).recording is not None
    with pytest.raises(InvalidReport):
        read(json.dumps({"recording": HONEST | change}))
