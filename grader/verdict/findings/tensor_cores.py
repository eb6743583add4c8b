"""Findings about tensor cores: wgmma, tcgen05, the registers of accumulators, and tensor memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import words
from grader.verdict.findings.kind import FindingKind, Payload, payload_of
from grader.verdict.findings.sides import ENGINES, access, other_place, place, position, reader_and_writer, where
from grader.verdict.record import Line

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class TensorCell(Payload, tag="TensorCell"):
    """A cell of tensor memory, the operation that uses it, and the earlier operation that used it (may be empty)."""

    lane: int
    column: int
    operation: Line
    earlier: Line


class TensorColumn(Payload, tag="TensorColumn"):
    """A column of tensor memory, and the operation that may still use it."""

    column: int
    operation: Line


class TensorColumns(Payload, tag="TensorColumns"):
    """A number of columns of tensor memory."""

    columns: int


class TensorInstruction(Payload, tag="TensorInstruction"):
    """The name of an operation on tensor memory, such as ``tcgen05.mma``."""

    operation: Line


PAYLOADS = TensorCell | TensorColumn | TensorColumns | TensorInstruction


def _cell(finding: Finding) -> str:
    payload = payload_of(TensorCell, finding)
    return f"lane {payload.lane}, column {payload.column} of tensor memory"


def _now(finding: Finding) -> str:
    return f"{payload_of(TensorCell, finding).operation}{where(finding)}"


def _before(finding: Finding) -> str:
    return f"{payload_of(TensorCell, finding).earlier}{other_place(finding)}"


def _operands(finding: Finding) -> str:
    reads, writes = reader_and_writer(finding)
    what = f"{access(writes)} to {position(finding)}{where(writes)}" if writes else f"write to {position(finding)}"
    return f"{what}, which the {ENGINES.get(reads.access, 'product')}{where(reads)} may still be reading"


def _accumulator(finding: Finding) -> str:
    return (
        f"{access(finding)} of an accumulator{where(finding)} before wgmma_wait_group has waited for the "
        f"wgmma (wgmma.mma_async){other_place(finding)}"
    )


def _wgmma_fence(finding: Finding) -> str:
    if finding.other is None:
        return (
            "there is no wgmma_fence between the threads' writes to the accumulators and the wgmma "
            f"(wgmma.mma_async){where(finding)}"
        )
    return (
        f"there is no wgmma_fence between the {finding.other.access or 'access'} of an accumulator at "
        f"{place(finding.other)} "
        f"and the wgmma (wgmma.mma_async){where(finding)} that uses it"
    )


def _load(finding: Finding) -> str:
    return (
        f"{access(finding)} of a register{where(finding)} that the tcgen05.ld{other_place(finding)} has not filled "
        "yet: there is no tcgen05_wait_ld (tcgen05.wait::ld) between the two"
    )


def _freed(finding: Finding) -> str:
    payload = payload_of(TensorColumn, finding)
    return (
        f"column {payload.column} of tensor memory is freed{where(finding)} while the "
        f"{payload.operation}{other_place(finding)} may still be running"
    )


_SAMPLE = TensorCell(lane=32, column=64, operation="tcgen05.ld", earlier="tcgen05.mma")
_OLD_VALUES = "The operation reads old values, or overwrites values that are still needed."
_FENCES = "A barrier or an mbarrier alone does not order tcgen05 instructions of different threads."

KINDS = (
    FindingKind(
        name="operands_not_awaited",
        check="racecheck",
        title="overwriting operands of a running matrix product",
        text=_operands,
        why="The tensor cores read their operands in shared memory until the product has been waited for.",
        fix="After the products: wgmma_commit_group, then wgmma_wait_group (tcgen05: tcgen05_commit, then a wait for "
        "its "
        "mbarrier), then a barrier or an arrival at an mbarrier. Only then overwrite the tiles.",
        look="the write to operands that are still read",
        sample_access="operand read",
        sample_other="write",
        has_memory=True,
        has_other=True,
        names_places=True,
    ),
    FindingKind(
        name="accumulator_not_awaited",
        check="synccheck",
        title="use of accumulators of a running wgmma",
        text=_accumulator,
        why="The registers hold partial sums until the wgmma has completed.",
        fix="Call wgmma_commit_group, then wgmma_wait_group (PTX wgmma.wait_group), then use the accumulators. In "
        "between no "
        "code may read or write them.",
        look="the access to an accumulator",
        other="the product",
        sample_access="read",
        names_places=True,
    ),
    FindingKind(
        name="missing_wgmma_fence",
        check="synccheck",
        title="missing wgmma fence",
        text=_wgmma_fence,
        why="The tensor cores may read the registers before the thread's own writes to them.",
        fix="Call wgmma_fence (PTX wgmma.fence.sync.aligned) before the first wgmma, and again wherever threads have "
        "read or "
        "written accumulators (or A in registers) since.",
        look="the wgmma without a fence before it",
        other="the last access before the wgmma",
        names_places=True,
    ),
    FindingKind(
        name="wgmma_at_exit",
        check="synccheck",
        title="block ends during a wgmma",
        text="the block ends before a warp has waited for this wgmma (wgmma.mma_async)",
        why="The results are lost, and the operands in shared memory may belong to another block by then.",
        fix="Call wgmma_commit_group, then wgmma_wait_group<0> (PTX wgmma.wait_group.sync.aligned 0), before the "
        "threads return.",
        look="the wgmma without a wait",
    ),
    FindingKind(
        name="tensor_product_not_awaited",
        check="synccheck",
        title="tcgen05.mma not awaited",
        text=lambda f: (
            f"{_now(f)} uses {_cell(f)}, which the {_before(f)} may not have finished: there was no wait for the "
            "mbarrier of its tcgen05_commit"
        ),
        why=_OLD_VALUES,
        fix="The thread that issued tcgen05.mma calls tcgen05_commit with an mbarrier. A thread that reads the "
        "accumulators first waits for the phase of that mbarrier, then calls tcgen05_fence_after_thread_sync, and then "
        "tcgen05_ld.",
        look="the use of unfinished accumulators",
        other="the product",
        payload=TensorCell,
        sample=_SAMPLE,
        names_places=True,
    ),
    FindingKind(
        name="tensor_transfer_not_awaited",
        check="synccheck",
        title="tcgen05.ld or tcgen05.st not awaited",
        text=lambda f: (
            f"{_now(f)} uses {_cell(f)}, which the {_before(f)} may not have finished: its warp has not waited for it"
        ),
        why=_OLD_VALUES,
        fix="Call tcgen05_wait_ld (PTX tcgen05.wait::ld) or tcgen05.wait::st, then tcgen05_fence_before_thread_sync, "
        "then arrive at a barrier, before "
        "other threads use those columns.",
        look="the use of tensor memory during a transfer",
        other="the load or store",
        payload=TensorCell,
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier="tcgen05.st"),
        names_places=True,
    ),
    FindingKind(
        name="tensor_memory_race",
        check="synccheck",
        title="race on tensor memory",
        text=lambda f: f"on {_cell(f).removesuffix(' of tensor memory')}: {_now(f)} and {_before(f)} are not ordered",
        why=_OLD_VALUES,
        fix="After its operation, the first warp calls tcgen05_wait_ld (PTX tcgen05.wait::ld) or tcgen05.wait::st, "
        "then tcgen05_fence_before_thread_sync, and arrives at a barrier. The other warp waits at the barrier, and "
        "then calls tcgen05_fence_after_thread_sync.",
        look="the race on tensor memory",
        other="the other operation",
        payload=TensorCell,
        sample=_SAMPLE,
        names_places=True,
    ),
    FindingKind(
        name="missing_tensor_fence_after",
        check="synccheck",
        title="missing tcgen05.fence::after_thread_sync",
        text=lambda f: (
            f"{_now(f)} uses {_cell(f)} after {_before(f)}, without tcgen05_fence_after_thread_sync "
            "(tcgen05.fence::after_thread_sync) after the wait"
        ),
        why=_FENCES,
        fix="Call tcgen05_fence_after_thread_sync after the wait or the barrier, before the next tcgen05 instruction.",
        look="the tcgen05 instruction without a fence before it",
        other="the earlier operation",
        payload=TensorCell,
        sample=_SAMPLE,
        names_places=True,
    ),
    FindingKind(
        name="missing_tensor_fence_before",
        check="synccheck",
        title="missing tcgen05.fence::before_thread_sync",
        text=lambda f: (
            f"{_now(f)} uses {_cell(f)} after {_before(f)}, without tcgen05_fence_before_thread_sync "
            "(tcgen05.fence::before_thread_sync) before the barrier"
        ),
        why=_FENCES,
        fix="Call tcgen05_fence_before_thread_sync after the earlier operation, before its thread arrives at the "
        "barrier.",
        look="the unordered tcgen05 instruction",
        other="the earlier operation",
        payload=TensorCell,
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier="tcgen05.ld"),
        names_places=True,
    ),
    FindingKind(
        name="tensor_memory_uninitialized",
        check="initcheck",
        title="read of uninitialized tensor memory",
        text=lambda f: f"{_now(f)} reads {_cell(f)}, which was never written",
        why="Tensor memory holds whatever the last block left there.",
        fix="Let the first product of a tile overwrite the accumulators: its operand enable-input-d is false. Copy "
        "scale factors to the lanes of all four warps before a block-scaled product (tcgen05.cp.32x128b.warpx4).",
        look="the read of tensor memory that was never written",
        payload=TensorCell,
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier=""),
        names_places=True,
    ),
    FindingKind(
        name="tensor_load_not_awaited",
        check="synccheck",
        title="use of a register before tcgen05.wait::ld",
        text=_load,
        why="The register still holds its old value.",
        fix="Call tcgen05_wait_ld after tcgen05_ld. In between no code may read or write its registers.",
        look="the use of a register that is not loaded yet",
        other="the load",
        sample_access="read",
        names_places=True,
    ),
    FindingKind(
        name="tensor_memory_freed_in_use",
        check="synccheck",
        title="tensor memory freed while in use",
        text=_freed,
        why="Another block may allocate the columns, and both then write them.",
        fix="All warps that use the columns wait for their operations and meet at a barrier, before one warp calls "
        "tcgen05_dealloc.",
        look="the deallocation of tensor memory",
        other="the operation that may still be running",
        payload=TensorColumn,
        sample=TensorColumn(column=64, operation="tcgen05.mma"),
        names_places=True,
    ),
    FindingKind(
        name="tensor_memory_not_freed",
        check="synccheck",
        title="tensor memory not freed",
        text=lambda f: (
            f"the block ends without tcgen05_dealloc (tcgen05.dealloc) for "
            f"{words.count(payload_of(TensorColumns, f).columns, 'column')} of tensor memory"
        ),
        why="No other block of this SM can allocate the columns: a block that tries to do so waits forever.",
        fix="The warp that allocated them calls tcgen05_dealloc with the same address and number of columns before "
        "the block "
        "ends.",
        look="the allocation of tensor memory that is never freed",
        payload=TensorColumns,
        sample=TensorColumns(columns=128),
    ),
    FindingKind(
        name="tensor_product_at_exit",
        check="synccheck",
        title="block ends during a tcgen05 operation",
        text=lambda f: (
            f"the block ends before any thread has waited for this {payload_of(TensorInstruction, f).operation}"
        ),
        why="The results are lost, and the operands in shared memory may belong to another block by then.",
        fix="Call tcgen05_commit with an mbarrier, and wait for its phase, before the threads return.",
        look="the tcgen05 operation without a wait",
        payload=TensorInstruction,
        sample=TensorInstruction(operation="tcgen05.mma"),
    ),
)
