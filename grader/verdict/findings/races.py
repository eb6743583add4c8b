"""Findings of racecheck: two unordered accesses to the same memory, at least one of them a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict.findings.kind import FindingKind, Payload
from grader.verdict.findings.sides import both, position
from grader.verdict.record import Line

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class NearbyAtomic(Payload, tag="NearbyAtomic"):
    """The place of an atomic operation in the same kernel; empty if there is none, or if it is a side itself."""

    atomic: Line = ""


PAYLOADS = NearbyAtomic


def _race(finding: Finding) -> str:
    return f"on {position(finding)}: {both(finding)} are not ordered"


def _accesses(finding: Finding) -> set[str]:
    return {side.access for side in (finding, finding.other) if side is not None}


_WHY = "The result depends on which thread comes first, and changes from run to run."

_BEFORE_A_COPY = (
    "Wait until all threads have finished with the memory before the copy overwrites it: __syncthreads(), or an "
    "arrival at "
    "an mbarrier for which the copying thread waits."
)
_ANOTHER_WAY = "give each block its own place, or split the work into two launches."


def _or_copy(fix: str) -> FixOfRace:
    return lambda finding: _BEFORE_A_COPY if "async write" in _accesses(finding) else fix


def _between_blocks_fix(finding: Finding) -> str:
    accesses = _accesses(finding)
    if "async write" in accesses:
        return _BEFORE_A_COPY
    if "atomic" in accesses and len(accesses) > 1:
        return (
            "Make the other access atomic as well, or split the work into two launches. If the atomic operation "
            "signals that "
            "a block has finished, put a __threadfence() before it, and another between it and the other access."
        )
    payload = finding.payload
    if "atomic" not in accesses and isinstance(payload, NearbyAtomic) and payload.atomic:
        return (
            f"The atomic operation at {payload.atomic} orders only itself. If it signals that the data is ready, put a "
            "__threadfence() between the write and the atomic operation, and another between the atomic operation and "
            "the read. If another thread of the block does the write or the read, add `__syncthreads()` as well. If it "
            f"is no signal: {_ANOTHER_WAY}"
        )
    return f"Blocks of one launch run in any order: use atomics, {_ANOTHER_WAY}"


def _between_streams_fix(finding: Finding) -> str:
    if finding.other and finding.stream is finding.other.stream is None:
        return (
            "Name the first node among the dependencies of the second when you add it to the graph, or call "
            "cudaGraphAddDependencies."
        )
    return (
        "Call cudaEventRecord(event, first) after the first operation and cudaStreamWaitEvent(second, event) before "
        "the "
        "second, or cudaStreamSynchronize(first) between them. Join streams of the launcher's own to the stream that "
        "it "
        "was given."
    )


def _between_streams_why(finding: Finding) -> str:
    if finding.other and finding.stream is finding.other.stream is None:
        return (
            "No path of dependencies leads from one node of the graph to the other, so they may run at the same time."
        )
    return (
        "Work in two streams may run at the same time. A stream made with cudaStreamNonBlocking does not wait for the "
        "default stream either."
    )


if TYPE_CHECKING:
    from collections.abc import Callable

    FixOfRace = Callable[[Finding], str]

KINDS = (
    FindingKind(
        name="within_warp",
        check="racecheck",
        title="race within a warp",
        text=_race,
        why=f"The lanes of a warp do not run in lockstep. {_WHY}",
        fix=_or_copy("Put __syncwarp() between the two accesses."),
        look="the race within a warp",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
        distance=1,
    ),
    FindingKind(
        name="within_block",
        check="racecheck",
        title="race between warps of a block",
        text=_race,
        why=_WHY,
        fix=_or_copy(
            "Put __syncthreads() between the two accesses, where all threads of the block reach it. In a loop, put one "
            "also between the last access of an iteration and the first access of the next."
        ),
        look="the race between warps",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
        distance=2,
    ),
    FindingKind(
        name="within_cluster",
        check="racecheck",
        title="race between blocks of a cluster",
        text=_race,
        why=_WHY,
        fix=_or_copy(
            "Put cluster.sync() (llmk::cluster_sync, PTX barrier.cluster.arrive and barrier.cluster.wait) between "
            "the two "
            "accesses, or let one thread arrive at an mbarrier for which the other waits."
        ),
        look="the race between blocks of a cluster",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
        distance=3,
    ),
    FindingKind(
        name="between_blocks",
        check="racecheck",
        title="race between blocks",
        text=_race,
        why=f"Nothing orders two blocks within a launch. {_WHY}",
        fix=_between_blocks_fix,
        look="the race between blocks",
        payload=NearbyAtomic,
        sample=NearbyAtomic(atomic="sum.cu:40"),
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
        distance=4,
    ),
    FindingKind(
        name="between_grids",
        check="racecheck",
        title="race between kernels under programmatic dependent launch",
        text=_race,
        why="With cudaLaunchAttributeProgrammaticStreamSerialization this kernel may begin before the one before it "
        "has ended.",
        fix="Call cudaGridDependencySynchronize() (PTX griddepcontrol.wait) before the first access to memory that the "
        "earlier kernel reads or writes.",
        look="the race with the kernel before",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
    ),
    FindingKind(
        name="between_streams",
        check="racecheck",
        title="race between streams",
        text=_race,
        why=_between_streams_why,
        fix=_between_streams_fix,
        look="the race between streams",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
    ),
    FindingKind(
        name="with_host",
        check="racecheck",
        title="race between the host and the device",
        text=_race,
        why="A launch and an asynchronous copy return before the work is done.",
        fix="Call cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize before host code touches the "
        "memory.",
        look="the race with host code",
        sample_access="read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
    ),
)
