"""Findings about tensor cores: wgmma, tcgen05, the registers of accumulators, and tensor memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import words
from grader.verdict.findings.kind import Payload, initcheck, payload_of, racecheck, synccheck
from grader.verdict.findings.sides import ENGINES, access, place, position, reader_and_writer, where
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


def _operands(finding: Finding) -> str:
    reads, writes = reader_and_writer(finding)
    what = f"{access(writes)} to {position(finding)}{where(writes)}" if writes else f"write to {position(finding)}"
    return f"{what}, which the {ENGINES.get(reads.access, 'product')}{where(reads)} may still be reading"


def _wgmma_fence(finding: Finding) -> str:
    wgmma = f"the wgmma (wgmma.mma_async){where(finding)}"
    if finding.other is None:
        return f"there is no wgmma_fence between the threads' writes to the accumulators and {wgmma}"
    earlier = f"the {finding.other.access or 'access'} of an accumulator at {place(finding.other)}"
    return f"there is no wgmma_fence between {earlier} and {wgmma} that uses it"


_USE = "{operation}{where} uses lane {lane}, column {column} of tensor memory"
_EARLIER = "the {earlier}{other}"
_SAMPLE = TensorCell(lane=32, column=64, operation="tcgen05.ld", earlier="tcgen05.mma")
_OLD_VALUES = "The operation reads old values, or overwrites values that are still needed."
_FENCES = "A barrier or an mbarrier alone does not order tcgen05 instructions of different threads."

KINDS = (
    racecheck(
        name="operands_not_awaited",
        title="overwriting operands of a running matrix product",
        text=_operands,
        why="The tensor cores read their operands in shared memory until the product has been waited for.",
        fix="After the products: wgmma_commit_group, then wgmma_wait_group (tcgen05: tcgen05_commit, then a wait for "
        "its mbarrier), then a barrier or an arrival at an mbarrier. Only then overwrite the tiles.",
        look="the write to operands that are still read",
        sample_access="operand read",
    ),
    synccheck(
        name="accumulator_not_awaited",
        title="use of accumulators of a running wgmma",
        text="{access} of an accumulator{where} before wgmma_wait_group has waited for the wgmma "
        "(wgmma.mma_async){other}",
        why="The registers hold partial sums until the wgmma has completed.",
        fix="Call wgmma_commit_group, then wgmma_wait_group (PTX wgmma.wait_group), then use the accumulators. In "
        "between no code may read or write them.",
        look="the access to an accumulator",
        other="the product",
        sample_access="read",
    ),
    synccheck(
        name="missing_wgmma_fence",
        title="missing wgmma fence",
        text=_wgmma_fence,
        why="The tensor cores may read the registers before the thread's own writes to them.",
        fix="Call wgmma_fence (PTX wgmma.fence.sync.aligned) before the first wgmma, and again wherever threads have "
        "read or written accumulators (or A in registers) since.",
        look="the wgmma without a fence before it",
        other="the last access before the wgmma",
    ),
    synccheck(
        name="wgmma_at_exit",
        title="block ends during a wgmma",
        text="the block ends before a warp has waited for this wgmma (wgmma.mma_async){where}",
        why="The results are lost, and the operands in shared memory may belong to another block by then.",
        fix="Call wgmma_commit_group, then wgmma_wait_group<0> (PTX wgmma.wait_group.sync.aligned 0), before the "
        "threads return.",
        look="the wgmma without a wait",
    ),
    synccheck(
        name="tensor_product_not_awaited",
        title="tcgen05.mma not awaited",
        text=f"{_USE}, which {_EARLIER} may not have finished: there was no wait for the mbarrier of its "
        "tcgen05_commit",
        why=_OLD_VALUES,
        fix="The thread that issued tcgen05.mma calls tcgen05_commit with an mbarrier. A thread that reads the "
        "accumulators first waits for the phase of that mbarrier, then calls tcgen05_fence_after_thread_sync, and then "
        "tcgen05_ld.",
        look="the use of unfinished accumulators",
        other="the product",
        sample=_SAMPLE,
    ),
    synccheck(
        name="tensor_transfer_not_awaited",
        title="tcgen05.ld or tcgen05.st not awaited",
        text=f"{_USE}, which {_EARLIER} may not have finished: its warp has not waited for it",
        why=_OLD_VALUES,
        fix="Call tcgen05_wait_ld (PTX tcgen05.wait::ld) or tcgen05.wait::st, then tcgen05_fence_before_thread_sync, "
        "then arrive at a barrier, before other threads use those columns.",
        look="the use of tensor memory during a transfer",
        other="the load or store",
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier="tcgen05.st"),
    ),
    synccheck(
        name="tensor_memory_race",
        title="race on tensor memory",
        text="on lane {lane}, column {column}: {operation}{where} and {earlier}{other} are not ordered",
        why=_OLD_VALUES,
        fix="After its operation, the first warp calls tcgen05_wait_ld (PTX tcgen05.wait::ld) or tcgen05.wait::st, "
        "then tcgen05_fence_before_thread_sync, and arrives at a barrier. The other warp waits at the barrier, and "
        "then calls tcgen05_fence_after_thread_sync.",
        look="the race on tensor memory",
        other="the other operation",
        sample=_SAMPLE,
    ),
    synccheck(
        name="missing_tensor_fence_after",
        title="missing tcgen05.fence::after_thread_sync",
        text=f"{_USE} after {{earlier}}{{other}}, without tcgen05_fence_after_thread_sync "
        "(tcgen05.fence::after_thread_sync) after the wait",
        why=_FENCES,
        fix="Call tcgen05_fence_after_thread_sync after the wait or the barrier, before the next tcgen05 instruction.",
        look="the tcgen05 instruction without a fence before it",
        other="the earlier operation",
        sample=_SAMPLE,
    ),
    synccheck(
        name="missing_tensor_fence_before",
        title="missing tcgen05.fence::before_thread_sync",
        text=f"{_USE} after {{earlier}}{{other}}, without tcgen05_fence_before_thread_sync "
        "(tcgen05.fence::before_thread_sync) before the barrier",
        why=_FENCES,
        fix="Call tcgen05_fence_before_thread_sync after the earlier operation, before its thread arrives at the "
        "barrier.",
        look="the unordered tcgen05 instruction",
        other="the earlier operation",
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier="tcgen05.ld"),
    ),
    initcheck(
        name="tensor_memory_uninitialized",
        title="read of uninitialized tensor memory",
        text="{operation}{where} reads lane {lane}, column {column} of tensor memory, which was never written",
        why="Tensor memory holds whatever the last block left there.",
        fix="Let the first product of a tile overwrite the accumulators: its operand enable-input-d is false. Copy "
        "scale factors to the lanes of all four warps before a block-scaled product (tcgen05.cp.32x128b.warpx4).",
        look="the read of tensor memory that was never written",
        sample=TensorCell(lane=0, column=0, operation="tcgen05.mma", earlier=""),
    ),
    synccheck(
        name="tensor_load_not_awaited",
        title="use of a register before tcgen05.wait::ld",
        text="{access} of a register{where} that the tcgen05.ld{other} has not filled yet: there is no tcgen05_wait_ld "
        "(tcgen05.wait::ld) between the two",
        why="The register still holds its old value.",
        fix="Call tcgen05_wait_ld after tcgen05_ld. In between no code may read or write its registers.",
        look="the use of a register that is not loaded yet",
        other="the load",
        sample_access="read",
    ),
    synccheck(
        name="tensor_memory_freed_in_use",
        title="tensor memory freed while in use",
        text="column {column} of tensor memory is freed{where} while the {operation}{other} may still be running",
        why="Another block may allocate the columns, and both then write them.",
        fix="All warps that use the columns wait for their operations and meet at a barrier, before one warp calls "
        "tcgen05_dealloc.",
        look="the deallocation of tensor memory",
        other="the operation that may still be running",
        sample=TensorColumn(column=64, operation="tcgen05.mma"),
    ),
    synccheck(
        name="tensor_memory_not_freed",
        title="tensor memory not freed",
        text=lambda f: (
            f"the block ends without tcgen05_dealloc (tcgen05.dealloc) for "
            f"{words.count(payload_of(TensorColumns, f).columns, 'column')} of tensor memory{where(f)}"
        ),
        why="No other block of this SM can allocate the columns: a block that tries to do so waits forever.",
        fix="The warp that allocated them calls tcgen05_dealloc with the same address and number of columns before "
        "the block ends.",
        look="the allocation of tensor memory that is never freed",
        sample=TensorColumns(columns=128),
    ),
    synccheck(
        name="tensor_product_at_exit",
        title="block ends during a tcgen05 operation",
        text="the block ends before any thread has waited for this {operation}{where}",
        why="The results are lost, and the operands in shared memory may belong to another block by then.",
        fix="Call tcgen05_commit with an mbarrier, and wait for its phase, before the threads return.",
        look="the tcgen05 operation without a wait",
        sample=TensorInstruction(operation="tcgen05.mma"),
    ),
)
