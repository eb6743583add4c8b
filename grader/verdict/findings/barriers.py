"""Findings of synccheck about barriers of blocks and warps, about warp intrinsics, deadlocks and endless loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import words
from grader.verdict.findings.kind import Payload, payload_of, synccheck
from grader.verdict.findings.sides import place, where
from grader.verdict.record import Line, Record, Text

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class MbarrierPhase(Record, kw_only=True):
    """The current phase of an mbarrier, and the arrivals and bytes that are missing until it completes."""

    phase: int
    missing_arrivals: int
    expected_arrivals: int
    missing_bytes: int
    """The announced bytes that have not arrived yet; negative if more bytes arrived than were announced."""


class Waiting(Record, kw_only=True):
    """Threads of a block that wait at the same place."""

    threads: int
    first: int
    """The first of these threads, by its number in the block."""
    operation: Line
    """The operation at which they wait: ``__syncthreads``, ``mbarrier``, ``wgmma.mma_async``..."""
    site: int
    """A number for the call in the simulator's report. The reader of the report replaces it by file and line."""
    line: int
    file: Line = ""
    mbarrier: MbarrierPhase | None = None
    """The state of the mbarrier at which they wait, if they wait at one."""


class BlockedThreads(Payload, tag="BlockedThreads"):
    """The places where the threads of a deadlocked block wait, and the number of threads that have exited."""

    waits: list[Waiting]
    exited: int


class TwoOperations(Payload, tag="TwoOperations"):
    """The different operations that the two sides of a finding execute."""

    operation: Line
    other_operation: Line


class ExitedThreads(Payload, tag="ExitedThreads"):
    """The number of threads that exited before a barrier, and the number of threads of the block."""

    exited: int
    threads: int


class Mask(Payload, tag="Mask"):
    """The mask that was passed to a warp intrinsic."""

    mask: int


class Lane(Payload, tag="Lane"):
    """The number of a lane of the warp."""

    lane: int


class Reason(Payload, tag="Reason"):
    """An explanation from the simulator, or a text from the kernel, such as the condition of a failed assert."""

    reason: Text


class EndlessLoop(Payload, tag="EndlessLoop"):
    """A loop that the simulator stopped. ``reason`` explains why it cannot end, if the simulator knows."""

    reason: Text
    loop: Line = ""
    """The file and line where the loop begins: ``a.cu:12``."""


PAYLOADS = BlockedThreads | TwoOperations | ExitedThreads | Mask | Lane | Reason | EndlessLoop


def _deadlock(finding: Finding) -> str:
    payload = payload_of(BlockedThreads, finding)
    parts = [
        f"{words.count(waiting.threads, 'thread')} (first: {waiting.first}) "
        f"wait{'s' if waiting.threads == 1 else ''} at "
        f"{waiting.operation}, {waiting.file}:{waiting.line}{_phase(waiting.mbarrier)}"
        for waiting in payload.waits
    ]
    if payload.exited:
        parts.append(f"{payload.exited} exited")
    block = words.place(finding.block, None)
    return (f"in {block}, " if block else "") + ("; ".join(parts) or "no thread can continue")


def _phase(mbarrier: MbarrierPhase | None) -> str:
    if mbarrier is None:
        return ""
    count = words.count(abs(mbarrier.missing_bytes), "byte")
    missing = "more than announced" if mbarrier.missing_bytes < 0 else "missing"
    return (
        f" (phase {mbarrier.phase}, parity {mbarrier.phase & 1}: {mbarrier.missing_arrivals} of "
        f"{words.count(mbarrier.expected_arrivals, 'arrival')} missing, {count} {missing})"
    )


def _waits_at(finding: Finding, operation: str) -> bool:
    payload = finding.payload
    return isinstance(payload, BlockedThreads) and any(operation in waiting.operation for waiting in payload.waits)


def _deadlock_fix(finding: Finding) -> str:
    if _waits_at(finding, "mbarrier"):
        return (
            "A phase completes when (1) the number of threads given to `mbarrier_init` has arrived and (2) all "
            "announced bytes (mbarrier_arrive_expect_tx) have been copied. Compare both numbers with what the kernel "
            "does. Check the parity as well: a wait for the wrong parity waits for a later phase."
        )
    if _waits_at(finding, "wgmma"):
        return (
            "A warpgroup consists of four warps, and the number of its first warp is a multiple of 4. All 128 threads "
            "must execute the same wgmma instruction: assign whole warpgroups to each role of the kernel."
        )
    return (
        "Move the barrier or the intrinsic out of the condition. All threads of a block must reach the same "
        "__syncthreads(), all threads of a cluster must reach the same cluster barrier, and all lanes of a mask must "
        "execute the same intrinsic."
    )


def _sites_differ(finding: Finding) -> str:
    other = place(finding.other) if finding.other else "?"
    thread = words.place(finding.block, finding.thread)
    at = f"{place(finding)} and {other}" + (f", {thread}" if thread else "")
    return f"threads of one block wait at different barriers: {at}"


def _exited(finding: Finding) -> str:
    payload = payload_of(ExitedThreads, finding)
    exited = f"{payload.exited} of {words.count(payload.threads, 'thread')} of the block"
    return f"{exited} exited before the barrier{where(finding)}"


def _endless(finding: Finding) -> str:
    payload = payload_of(EndlessLoop, finding)
    loop = f"the loop at {payload.loop} does not end" if payload.loop else "a loop does not end"
    reason = f" ({payload.reason})" if payload.reason else ""
    return f"{loop}{reason}; the thread was stopped{where(finding)}"


_OUT_OF_STEP = "Some threads pass the barrier before others have reached it, so later accesses may race."

KINDS = (
    synccheck(
        name="deadlock",
        title="deadlock",
        text=_deadlock,
        why="On a GPU the kernel never ends.",
        fix=_deadlock_fix,
        look="where threads are blocked",
        other="other threads wait here",
        stage="correct",
        sample=BlockedThreads(
            waits=[
                Waiting(threads=32, first=0, operation="__syncthreads", site=0, line=31, file="kernel.cu"),
                Waiting(
                    threads=96,
                    first=32,
                    operation="mbarrier",
                    site=0,
                    line=40,
                    file="kernel.cu",
                    mbarrier=MbarrierPhase(phase=3, missing_arrivals=1, expected_arrivals=2, missing_bytes=4096),
                ),
            ],
            exited=0,
        ),
    ),
    synccheck(
        name="barrier_sites_differ",
        title="divergent __syncthreads()",
        text=_sites_differ,
        why=_OUT_OF_STEP,
        fix="Move the barrier out of the branch, so that all threads of the block reach the same one.",
        look="the divergent barrier",
        other="the other barrier",
        sample=TwoOperations(operation="__syncthreads", other_operation="__syncthreads"),
        divergence=True,
    ),
    synccheck(
        name="barrier_after_exit",
        title="barrier after threads have exited",
        text=_exited,
        why="CUDA requires that all threads of a block reach __syncthreads() or grid.sync().",
        fix="Let all threads of the block reach the barrier: move it out of a branch, and guard the work instead of "
        "returning early (if (i < n) {{ ... }}).",
        look="the barrier that some threads never reach",
        sample=ExitedThreads(exited=24, threads=128),
        divergence=True,
    ),
    synccheck(
        name="own_lane_not_in_mask",
        title="warp intrinsic whose mask lacks the calling lane",
        text="a lane calls a warp intrinsic with the mask {mask:#010x}, which does not contain it{where}",
        why="The result is undefined.",
        fix="Pass a mask with exactly the lanes that execute the call: 0xffffffff if the whole warp executes it.",
        look="the warp intrinsic with a wrong mask",
        sample=Mask(mask=0xFFFF),
        divergence=True,
    ),
    synccheck(
        name="collectives_differ",
        title="divergent warp intrinsics",
        text="lanes of one mask are at different warp intrinsics ({operation} and {other_operation}){where}",
        why="Each intrinsic waits for lanes that execute the other one: on a GPU the result is undefined, or the "
        "kernel hangs.",
        fix="Let all lanes of the mask execute the same call: all of them must take the same branch.",
        look="the divergent warp intrinsic",
        other="the other lane is here",
        sample=TwoOperations(operation="__shfl_down_sync", other_operation="__syncwarp"),
        divergence=True,
    ),
    synccheck(
        name="shuffle_from_inactive_lane",
        title="shuffle from an inactive lane",
        text="a shuffle reads from lane {lane}, which does not take part: the value is undefined{where}",
        why="The lane gets an arbitrary value.",
        fix="Let all lanes of the warp execute the shuffle, with a neutral value where there is no data.",
        look="the shuffle",
        sample=Lane(lane=17),
    ),
    synccheck(
        name="barrier_threads_invalid",
        title="named barrier with a wrong number of threads",
        text="{reason}{where}",
        why="The barrier never completes, or completes too early.",
        fix="Pass bar_sync (PTX bar.sync) the number of threads that arrive at this barrier, a multiple of 32.",
        look="the named barrier",
        sample=Reason(reason="a named barrier takes a multiple of 32 threads"),
    ),
    synccheck(
        name="grid_sync_not_cooperative",
        title="grid barrier in an ordinary launch",
        text="{reason}{where}",
        why="Only a cooperative launch guarantees that all blocks are resident, so the barrier could wait forever.",
        fix="Launch the kernel with cudaLaunchCooperativeKernel.",
        look="the grid barrier",
        stage="correct",
        sample=Reason(reason="grid.sync() needs cudaLaunchCooperativeKernel"),
    ),
    synccheck(
        name="infinite_loop",
        title="endless loop",
        text=_endless,
        why="On a GPU the kernel never ends.",
        fix="Look at the condition of the loop, which never becomes false. If the thread waits for another block in "
        "this loop, that block may not have started: it may need to wait until a running block ends.",
        look="the loop that does not end",
        stage="correct",
        sample=EndlessLoop(reason="", loop="attention.cu:28"),
    ),
)
