"""Findings of racecheck: two unordered accesses to the same memory, at least one of them a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict.findings.kind import Payload, racecheck
from grader.verdict.record import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.verdict.finding import Finding

    FixOfRace = Callable[[Finding], str]


class NearbyAtomic(Payload, tag="NearbyAtomic"):
    """Facts by which the fix of a race is chosen."""

    atomic: Line = ""
    """The file and line of an atomic operation that the kernel may use to order the two accesses.

    For a race within a block, it is set only if the operation seems to take a lock. It is empty if there is no such
    operation, or if one of the two accesses is atomic itself.
    """
    block: bool = False
    """True for a race within a warp whose line also has a race between warps: ``__syncthreads()`` fixes both."""


PAYLOADS = NearbyAtomic


_RACE = "on {position}: {both} are not ordered"


def _accesses(finding: Finding) -> set[str]:
    return {side.access for side in (finding, finding.other) if side is not None}


_WHY = "The result depends on which thread comes first, and changes from run to run."

_BEFORE_A_COPY = (
    "Wait until all threads have finished with the memory before the copy overwrites it: __syncthreads(), or an "
    "arrival at an mbarrier for which the copying thread waits."
)
_ANOTHER_WAY = "give each block its own bytes, or split the work into two launches."


_SYNCTHREADS = (
    "Put __syncthreads() between the two accesses, where all threads of the block reach it. In a loop, put one also "
    "between the last access of an iteration and the first access of the next."
)
_BLOCK_SCOPE = (
    "An atomic operation of block scope is atomic only for the threads of its block: drop the suffix _block, or use "
    "cuda::thread_scope_device (PTX .gpu) where other blocks access the same memory."
)


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _fix(barrier: str) -> FixOfRace:
    """Return a function that chooses the fix of a race: ``barrier``, unless a copy or a lock needs another fix."""

    def fix(finding: Finding) -> str:
        accesses, nearby = _accesses(finding), _nearby(finding)
        if "async write" in accesses:
            return _BEFORE_A_COPY
        if accesses == {"atomic"}:
            return _BLOCK_SCOPE
        if accesses == {"atomic", "volatile write"}:
            return f"Make the write atomic as well, by atomicExch() for example, or order both: {_lower(barrier)}"
        if nearby.block:
            return _SYNCTHREADS
        if nearby.atomic:
            return (
                f"If the atomic operation at {nearby.atomic} takes a lock, put __threadfence_block() after it, and "
                "before the lock is released. A barrier would not work there: threads that wait for the lock do not "
                f"reach it. If the atomic operation takes no lock: {_lower(barrier)}"
            )
        return barrier

    return fix


def _nearby(finding: Finding) -> NearbyAtomic:
    return finding.payload if isinstance(finding.payload, NearbyAtomic) else NearbyAtomic()


def _why(otherwise: str) -> Callable[[Finding], str]:
    """Return a function that returns the consequence of a race: ``otherwise``, unless an access is volatile."""

    def why(finding: Finding) -> str:
        if any(access.startswith("volatile") for access in _accesses(finding)):
            return f"volatile makes each access reach memory, but orders nothing and makes nothing atomic. {_WHY}"
        return _WHY if _nearby(finding).block else otherwise

    return why


def _between_blocks_fix(finding: Finding) -> str:
    accesses = _accesses(finding)
    if "async write" in accesses:
        return _BEFORE_A_COPY
    if accesses == {"atomic"}:
        return _BLOCK_SCOPE
    if "atomic" in accesses:
        return (
            "Make the other access atomic as well, or split the work into two launches. If the atomic operation "
            "signals that a block has finished, put a __threadfence() before the signal, and another between the "
            "signal and the other access."
        )
    if nearby := _nearby(finding).atomic:
        return (
            f"The atomic operation at {nearby} does not order other accesses. If it signals that the data is ready, "
            "put a __threadfence() between the write and the atomic operation, and another between the atomic "
            "operation and the read. If another thread of the block does the write or the read, add `__syncthreads()` "
            f"as well. If the atomic operation is no signal: {_ANOTHER_WAY}"
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
        "the second, or cudaStreamSynchronize(first) between them. Before a function returns, join the streams that "
        "it created to the stream that it was given."
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


KINDS = (
    racecheck(
        name="within_warp",
        title="race within a warp",
        text=_RACE,
        why=_why(f"The lanes of a warp do not run in lockstep. {_WHY}"),
        fix=_fix("Put __syncwarp() between the two accesses."),
        look="the race within a warp",
        sample=NearbyAtomic(),
        distance=1,
    ),
    racecheck(
        name="within_block",
        title="race between warps of a block",
        text=_RACE,
        why=_why(_WHY),
        fix=_fix(_SYNCTHREADS),
        look="the race between warps",
        sample=NearbyAtomic(),
        distance=2,
    ),
    racecheck(
        name="within_cluster",
        title="race between blocks of a cluster",
        text=_RACE,
        why=_WHY,
        fix=_fix(
            "Put cluster.sync() (PTX barrier.cluster.arrive and barrier.cluster.wait) between the two accesses, or let "
            "one thread arrive at an mbarrier for which the other waits."
        ),
        look="the race between blocks of a cluster",
        distance=3,
    ),
    racecheck(
        name="between_blocks",
        title="race between blocks",
        text=_RACE,
        why=_why(f"Nothing orders two blocks within a launch. {_WHY}"),
        fix=_between_blocks_fix,
        look="the race between blocks",
        sample=NearbyAtomic(atomic="sum.cu:40"),
        distance=4,
    ),
    racecheck(
        name="read_only_load",
        title="read-only load of memory that the kernel writes",
        text="on {position}: {both}",
        why="The cache of __ldg and ld.global.nc does not see writes of the running kernel, even after a barrier or a "
        "fence. The load may return the old value.",
        fix="Use an ordinary load, or write the memory in another launch.",
        look="the read-only load",
    ),
    racecheck(
        name="between_grids",
        title="race between kernels under programmatic dependent launch",
        text=_RACE,
        why="With cudaLaunchAttributeProgrammaticStreamSerialization this kernel may begin before the previous kernel "
        "has ended.",
        fix="Call cudaGridDependencySynchronize() (PTX griddepcontrol.wait) before the first access to memory that the "
        "earlier kernel reads or writes.",
        look="the race with the previous kernel",
    ),
    racecheck(
        name="between_streams",
        title="race between streams",
        text=_RACE,
        why=_between_streams_why,
        fix=_between_streams_fix,
        look="the race between streams",
    ),
    racecheck(
        name="with_host",
        title="race between the host and the device",
        text=_RACE,
        why="A launch and an asynchronous copy return before the work is done.",
        fix="Call cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize before host code touches the "
        "memory.",
        look="the race with host code",
    ),
)
