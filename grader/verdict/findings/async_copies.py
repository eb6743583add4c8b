"""Findings about asynchronous copies: cp.async, bulk and tensor copies (TMA), and the mbarriers that they signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict.findings.kind import Payload, payload_of, racecheck, synccheck
from grader.verdict.findings.sides import ENGINES, access, other_place, position, reader_and_writer, where

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class Swizzles(Payload, tag="Swizzles"):
    """The swizzles of a matrix descriptor and of a copy's tensor map, in bytes. 16 means no swizzle."""

    descriptor: int
    tensor_map: int


PAYLOADS = Swizzles


def _missing_proxy_fence(finding: Finding) -> str:
    reads, writes = reader_and_writer(finding)
    unseen = f"{access(writes)}{where(writes)}" if writes else "write"
    reader = ENGINES.get(reads.access, "a bulk copy")
    return f"{reader} reads {position(finding)}{where(reads)}, but may not see the {unseen}"


def _swizzle_differs(finding: Finding) -> str:
    def named(line: int) -> str:
        return "no swizzle" if line == 16 else f"a swizzle of {line} bytes"

    payload = payload_of(Swizzles, finding)
    product = f"{ENGINES.get(finding.access, 'a matrix product')}{where(finding)}"
    copy = f"the copy{other_place(finding)} that filled {position(finding)}"
    return (
        f"the matrix descriptor of {product} has {named(payload.descriptor)}, but the tensor map of {copy} has "
        f"{named(payload.tensor_map)}"
    )


KINDS = (
    racecheck(
        name="copy_not_awaited",
        title="asynchronous copy not awaited",
        text="on {position}: {both} are not ordered",
        why="The copy may still be running: the read gets old values, or the copy overwrites newer ones.",
        fix="For cp.async: commit the copy, wait for its group (cp.async.wait_group), then __syncthreads(), before "
        "any thread touches the destination. For a copy that completes on an mbarrier: each thread waits for the phase "
        "with the right parity (mbarrier_wait_parity). For a bulk store: cp_async_bulk_wait_group_read before its "
        "source is written again, and cp.async.bulk.wait_group before its destination is read.",
        look="the access to memory that is still being copied",
        sample_other="async write",
    ),
    racecheck(
        name="missing_proxy_fence",
        title="missing proxy fence",
        text=_missing_proxy_fence,
        why="The copy engine and the tensor cores read shared memory through the async proxy, which does not see "
        "ordinary writes without a fence.",
        fix="Each thread that wrote executes fence_proxy_async (PTX fence.proxy.async.shared::cta), and then waits at "
        "a barrier. The copy or the matrix product begins after this barrier.",
        look="the write without a proxy fence",
        sample_access="async read",
    ),
    synccheck(
        name="copy_at_exit",
        title="block ends during a bulk copy",
        text="the block ends while a bulk copy is still running{where}",
        why="The shared memory of a block that has ended may belong to another block.",
        fix="Before the threads return, wait for the mbarrier of a load (mbarrier_wait_parity), or for a store with "
        "cp_async_bulk_wait_group_read<0> (PTX cp.async.bulk.wait_group.read 0).",
        look="the bulk copy without a wait",
    ),
    synccheck(
        name="mbarrier_not_initialized",
        title="use of an uninitialized mbarrier",
        text="no thread has initialized this mbarrier{where}",
        why="The mbarrier's counts are whatever the shared memory held before: threads pass too early, or never.",
        fix="Let one thread call mbarrier_init (PTX mbarrier.init), then __syncthreads(), before any thread arrives "
        "or waits.",
        look="the use of the uninitialized mbarrier",
        stage="correct",
    ),
    synccheck(
        name="swizzle_differs",
        title="swizzle mismatch between tensor map and matrix descriptor",
        text=_swizzle_differs,
        why="The tensor cores read the elements of the tile in the wrong order.",
        fix="Use the same swizzle in the tensor map (CU_TENSOR_MAP_SWIZZLE_...) and in the matrix descriptor "
        "(make_smem_desc).",
        look="the descriptor with a different swizzle",
        other="the copy",
        sample=Swizzles(descriptor=64, tensor_map=128),
        sample_access="operand read",
        sample_other="async write",
        has_memory=True,
    ),
)
