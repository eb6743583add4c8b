"""Findings in words: what happened, to which memory, where, what the other thread did, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grader.verdict.finding import Finding, Memory, Side
from grader.verdict.wording import words

# -- where, and in which memory --


def place(side: Side) -> str:
    """``flash_attention.cu:31``, or ``flash_attention.cu:31 (in llmk/reduce.cuh:20)``."""
    text = f"{Path(side.file).name}:{side.line}" if side.line else Path(side.file).name
    return f"{text} (in {side.inside})" if side.inside else text


def where(side: Side) -> str:
    """`` at flash_attention.cu:31, block (3, 0, 0) thread (17, 0, 0)``, as far as it is known."""
    text = f" at {place(side)}" if side.line else ""
    who = words.place(side.block, side.thread)
    return f"{text}, {who}" if who else text


def work(side: Side) -> str:
    """`` by scale in stream 1``, `` by cudaMemcpyAsync in the default stream``; empty where streams do not matter."""
    if not side.work:
        return ""
    stream = "" if side.stream is None else f" in stream {side.stream}" if side.stream else " in the default stream"
    return f" by {side.work}{stream}"


def memory_name(memory: Memory) -> str:
    """``k[2, 4, 65, 64] (float32)``, ``the shared array tile (4,096 bytes)``..."""
    size = words.count(memory.bytes, "byte")
    match memory.kind:
        case "tensor":
            return f"{memory.name}{words.position(memory.shape)}" + (f" ({memory.dtype})" if memory.dtype else "")
        case "__shared__":
            return f"the shared array {memory.name} ({size})"
        case "dynamic shared":
            return f"the dynamic shared memory ({size})"
        case "local":
            return f"the local array {memory.name} ({size})"
        case "host":
            return f"the host's own memory ({size})"
        case "__device__" | "__constant__":
            return f"the {memory.kind} variable {memory.name} ({size})"
    return f"memory from {memory.kind} ({size})"


def position(side: Side) -> str:
    """``x[2, 5] of x[4, 64] (float32)``, ``element 33 (byte 132) of the shared array tile (4,096 bytes)``."""
    memory = side.memory
    if memory is None:
        return "device memory"
    if memory.index is not None:
        return f"{memory.name}{words.position(memory.index)} of {memory_name(memory)}"
    if side.bytes in (2, 4, 8, 16) and memory.offset % side.bytes == 0:
        return f"element {memory.offset // side.bytes:,} (byte {memory.offset:,}) of {memory_name(memory)}"
    return f"byte {memory.offset:,} of {memory_name(memory)}"


def distance(memory: Memory, access_bytes: int) -> str:
    """``0 bytes past the end of k[...]``: how far outside the memory an access begins, or by how much it sticks out."""
    offset, size, name = memory.offset, memory.bytes, memory_name(memory)
    if offset >= size:
        return f"{words.count(offset - size, 'byte')} past the end of {name}"
    if offset >= 0:
        return f"of which {words.count(offset + access_bytes - size, 'byte')} are past the end of {name}"
    return f"{words.count(-offset, 'byte')} before the start of {name}"


def access(side: Side) -> str:
    """``4-byte read``."""
    names = {
        "atomic": "atomic operation",
        "async read": "asynchronous copy's read",
        "async write": "asynchronous copy's write",
        "operand read": "read by wgmma.mma_async",
        "tensor operand read": "read by tcgen05",
    }
    name = names.get(side.access, side.access) or "access"
    if side.access in ("allocation", "free"):
        return name
    return f"{side.bytes}-byte {name}" if side.bytes else "access"


# Who reads operands in shared memory.
_PRODUCTS = {"operand read": "wgmma.mma_async", "tensor operand read": "tcgen05.mma or cp"}


def an_access(side: Side) -> str:
    """``a 4-byte read``, ``an 8-byte read``."""
    said = access(side)
    return f"{'an' if said[0] in '8aeiou' else 'a'} {said}"


# -- what happened --


def _out_of_bounds(finding: Finding) -> str:
    if finding.memory is None:
        return f"{access(finding)} in shared memory, outside of every array"
    return f"{access(finding)}, {distance(finding.memory, finding.bytes)}"


def _misaligned(finding: Finding) -> str:
    at = f" at {position(finding)}" if finding.memory else ""
    return f"misaligned {access(finding)}{at}: the address is no multiple of {finding.bytes or 16}"


def _output_not_written(finding: Finding) -> str:
    places = ", ".join(map(words.position, finding.elements)) + (
        ", ..." if finding.number > len(finding.elements) else ""
    )
    of = f"{finding.number:,} of {words.count(finding.total, 'element')}" + (
        f" of {memory_name(finding.memory)}" if finding.memory else ""
    )
    return f"{of} {'was' if finding.number == 1 else 'were'} never written: {places}"


def _race(finding: Finding) -> str:
    def said(side: Side) -> str:
        return f"{access(side)}{work(side)}{where(side)}"

    other = f" and {said(finding.other)}" if finding.other else ""
    return f"race on {position(finding)}: {said(finding)}{other} are not ordered"


def _reader_and_writer(finding: Finding) -> tuple[Side, Side | None]:
    """The sides of a finding about an asynchronous read and a write; they come in the order of the source."""
    if finding.other is not None and finding.other.access in ("async read", *_PRODUCTS):
        return finding.other, finding
    return finding, finding.other


def _missing_proxy_fence(finding: Finding) -> str:
    reads, writes = _reader_and_writer(finding)
    unseen = f"{access(writes)}{where(writes)}" if writes else "write"
    reader = _PRODUCTS.get(reads.access, "a bulk copy")
    return (
        f"{reader} reads {position(finding)}{where(reads)}, but may not see the {unseen}: "
        "no fence.proxy.async stands between them"
    )


def _operands_not_awaited(finding: Finding) -> str:
    reads, writes = _reader_and_writer(finding)
    what = f"{access(writes)} to {position(finding)}{where(writes)}" if writes else f"write to {position(finding)}"
    return f"{what}, which the {_PRODUCTS.get(reads.access, 'product')}{where(reads)} may still be reading"


def _accumulator_not_awaited(finding: Finding) -> str:
    product = f"{where(finding.other)}" if finding.other else ""
    return (
        f"{access(finding)} of an accumulator{where(finding)}, which the wgmma.mma_async{product} has not given back: "
        "no wgmma.wait_group has waited for it"
    )


def _missing_wgmma_fence(finding: Finding) -> str:
    if finding.other is None:
        return (
            f"no wgmma.fence stands between what threads wrote to accumulators and the wgmma.mma_async{where(finding)}"
        )
    return (
        f"no wgmma.fence stands between the {finding.other.access or 'access'} of an accumulator at {place(finding.other)} "
        f"and the wgmma.mma_async{where(finding)} that uses it"
    )


def _tensor_sides(finding: Finding) -> tuple[str, str, str]:
    """Of an operation on tensor memory: its name and place, the cell, and the earlier operation's name and place."""
    name, _, before = finding.detail.partition(" | ")
    cell = f"lane {finding.address >> 16}, column {finding.address & 0xFFFF} of tensor memory"
    return f"{name}{where(finding)}", cell, f"{before}{where(finding.other)}" if finding.other else before


def _tensor_product_not_awaited(finding: Finding) -> str:
    now, cell, before = _tensor_sides(finding)
    return (
        f"{now} uses {cell}, where the {before} may not be complete: no wait for an mbarrier on which it was committed"
    )


def _tensor_transfer_not_awaited(finding: Finding) -> str:
    now, cell, before = _tensor_sides(finding)
    return f"{now} uses {cell}, where the {before} may not be complete: its warp has not waited for it"


def _tensor_memory_race(finding: Finding) -> str:
    now, cell, before = _tensor_sides(finding)
    return f"race on {cell}: {now} and {before} are not ordered"


def _missing_tensor_fence(which: str, where_it_belongs: str) -> Callable[[Finding], str]:
    def said(finding: Finding) -> str:
        now, cell, before = _tensor_sides(finding)
        return f"{now} uses {cell} after {before}, and no tcgen05.fence::{which}_thread_sync {where_it_belongs}"

    return said


_missing_fence_after = _missing_tensor_fence("after", "stands between what it waited for and this")
_missing_fence_before = _missing_tensor_fence("before", "stands between that and what this waited for")


def _tensor_memory_uninitialized(finding: Finding) -> str:
    now, cell, _ = _tensor_sides(finding)
    return f"{now} reads {cell}, which was never written"


def _tensor_load_not_awaited(finding: Finding) -> str:
    load = where(finding.other) if finding.other else ""
    return f"{access(finding)} of a register{where(finding)} that the tcgen05.ld{load} has yet to fill: no tcgen05.wait::ld"


def _tensor_memory_freed_in_use(finding: Finding) -> str:
    before = where(finding.other) if finding.other else ""
    return f"column {finding.address} of tensor memory is given back{where(finding)} while the {finding.detail}{before} may not be complete"


def _swizzle_differs(finding: Finding) -> str:
    def said(line: int) -> str:
        return "no swizzle" if line == 16 else f"a swizzle of {line} bytes"

    copy = where(finding.other) if finding.other else ""
    return (
        f"the matrix descriptor of {_PRODUCTS.get(finding.access, 'a product')}{where(finding)} says {said(finding.address >> 16)}, and the "
        f"tensor map of the copy{copy} that filled {position(finding)} says {said(finding.address & 0xFFFF)}"
    )


def _barrier_sites_differ(finding: Finding) -> str:
    places = f"{place(finding)} and {place(finding.other) if finding.other else '?'}"
    return (
        f"threads of a block met at different __syncthreads(): {places}, {words.place(finding.block, finding.thread)}"
    )


def _refused(finding: Finding) -> str:
    call, _, why = finding.detail.partition(": ")
    return f"{call} failed with CUDA error {finding.number}: {why}"


def _host_name(finding: Finding) -> str:
    if finding.thread is not None:
        return f"{access(finding)} of the host's copy of {memory(finding)}"
    if finding.access == "write":
        return f"host code writes its own copy of {memory(finding)}, which the device never reads"
    return f"host code reads its own copy of {memory(finding)}, where the device's holds something else"


def memory(finding: Finding) -> str:
    return memory_name(finding.memory) if finding.memory else "a variable of the device"


def _as_said(finding: Finding) -> str:
    return finding.detail or finding.kind.replace("_", " ")


WHAT: Mapping[str, Callable[[Finding], str]] = {
    "out_of_bounds": _out_of_bounds,
    "use_after_free": lambda f: f"{access(f)} of freed memory: {position(f)}",
    "ended_block": lambda f: (
        f"{access(f)} of {position(f)}, which is in the shared memory of another block of the cluster: that one may have ended"
    ),
    "double_free": lambda f: "memory of the device's heap is given back a second time",
    "bad_free": lambda f: f"address {f.address:#x} is given back, which malloc and new gave no kernel",
    "null_pointer": lambda f: f"{access(f)} through a null pointer (address {f.address:#x})",
    "illegal_address": lambda f: f"{access(f)} of address {f.address:#x}, where no device memory is",
    "misaligned": _misaligned,
    "write_to_const": lambda f: f"{access(f)} to an input: {position(f)}, which the launcher takes as pointer to const",
    "write_to_constant": lambda f: f"{access(f)} to constant memory: {position(f)}",
    "host_access": lambda f: f"host code makes {an_access(f)} of device memory: {position(f)}",
    "not_its_memory": lambda f: f"{access(f)} of address {f.address:#x}, which is not the submission's memory",
    "not_its_stack": lambda f: f"{access(f)} of the stack outside the local variables of the submission's functions",
    "not_its_function": lambda f: (
        f"a function at address {f.address:#x} is to be called, which is not one of the submission"
    ),
    "index_out_of_bounds": lambda f: f"index {f.number} is out of bounds for an array of type {f.detail}",
    "stack_overflow": lambda f: "stack overflow",
    "leak": lambda f: f"{words.count(f.number, 'byte')} from {f.memory.kind if f.memory else 'the device'} never freed",
    "uninitialized_read": lambda f: f"{access(f)} of memory that was never written: {position(f)}",
    "uninitialized_copy": lambda f: (
        f"{words.count(f.number, 'byte')} that were never written are copied to the host: {position(f)} is the first"
    ),
    "output_not_written": _output_not_written,
    "within_warp": _race,
    "within_block": _race,
    "within_cluster": _race,
    "between_blocks": _race,
    "between_grids": _race,
    "between_streams": _race,
    "with_host": _race,
    "copy_not_awaited": _race,
    "missing_proxy_fence": _missing_proxy_fence,
    "operands_not_awaited": _operands_not_awaited,
    "accumulator_not_awaited": _accumulator_not_awaited,
    "missing_wgmma_fence": _missing_wgmma_fence,
    "tensor_product_not_awaited": _tensor_product_not_awaited,
    "tensor_transfer_not_awaited": _tensor_transfer_not_awaited,
    "tensor_memory_race": _tensor_memory_race,
    "missing_tensor_fence_after": _missing_fence_after,
    "missing_tensor_fence_before": _missing_fence_before,
    "tensor_memory_uninitialized": _tensor_memory_uninitialized,
    "tensor_load_not_awaited": _tensor_load_not_awaited,
    "tensor_memory_freed_in_use": _tensor_memory_freed_in_use,
    "tensor_memory_not_freed": lambda f: (
        f"the block ends and {words.count(f.address, 'column')} of tensor memory were not given back by tcgen05.dealloc"
    ),
    "tensor_product_at_exit": lambda f: f"the block ends before anybody has waited for this {f.detail}",
    "swizzle_differs": _swizzle_differs,
    "wgmma_at_exit": lambda f: "the block ends before a warp has waited for this wgmma.mma_async",
    "deadlock": lambda f: f"deadlock: {f.detail or 'no thread can go on'}",
    "mbarrier_not_initialized": lambda f: "an mbarrier is used that nobody has initialized",
    "copy_at_exit": lambda f: "the block ends while a bulk copy is under way, for which nobody has waited",
    "event_not_recorded": lambda f: f"{f.detail} waits for an event that has not been recorded: it waits for nothing",
    "default_stream": lambda f: (
        f"{f.detail} is put on the default stream, and not on the stream that the launcher was given"
    ),
    "instruction_misused": lambda f: f.detail or "an instruction is used in a way that has no meaning",
    "barrier_sites_differ": _barrier_sites_differ,
    "barrier_after_exit": lambda f: (
        f"{f.number} of {words.count(f.total, 'thread')} of the block had exited and never reach the barrier"
    ),
    "own_lane_not_in_mask": lambda f: (
        f"a lane calls a warp intrinsic with the mask {f.number:#010x}, which does not name it"
    ),
    "collectives_differ": lambda f: f"lanes of one mask are at different warp intrinsics ({f.detail})",
    "shuffle_from_inactive_lane": lambda f: (
        f"a shuffle reads from lane {f.number}, which takes no part in it: the value is undefined"
    ),
    "barrier_threads_invalid": lambda f: f.detail or "a named barrier has a wrong number of threads",
    "grid_sync_not_cooperative": lambda f: f"grid barrier in an ordinary launch: {f.detail}",
    "infinite_loop": lambda f: "a loop does not end" + (f": {f.detail}" if f.detail else ""),
    "refused": _refused,
    "host_name": _host_name,
    "division_by_zero": lambda f: "integer division by zero",
    "assertion": _as_said,
    "trap": _as_said,
    "shared_memory_exceeded": _as_said,
    "device_exception": _as_said,
    "out_of_memory": _as_said,
    "illegal_instruction": _as_said,
    "report_missing": lambda f: "the simulator's report is missing or cannot be read, though the kernel returned",
    "host_copies": lambda f: (
        f"the launcher brought {f.number} bytes of device memory to the host, or wrote tensors from there"
    ),
    "no_launch": lambda f: "the output is right, but no kernel was launched: it was computed by code on the host",
    "nothing_written": lambda f: "the output is right, but no kernel wrote to global memory",
    "nothing_read": lambda f: "no kernel read global memory, but the result depends on inputs that are there",
    "too_few_bytes": lambda f: (
        f"{f.number} bytes of global memory were counted, but the result needs at least {f.total}"
    ),
}
"""What happened, of each kind of finding; the last six are of reports that cannot be true (``execution/submission_sandbox/plausible_report.py``)."""

_NAMES_ITS_PLACES = (
    _race,
    _missing_proxy_fence,
    _operands_not_awaited,
    _accumulator_not_awaited,
    _missing_wgmma_fence,
    _tensor_product_not_awaited,
    _tensor_transfer_not_awaited,
    _tensor_memory_race,
    _missing_fence_after,
    _missing_fence_before,
    _tensor_memory_uninitialized,
    _tensor_load_not_awaited,
    _tensor_memory_freed_in_use,
    _swizzle_differs,
    _barrier_sites_differ,
    _output_not_written,
)

ADVICE: Mapping[str, str] = {
    "host_copies": "A launcher launches kernels: compute on the device, and leave tensors there.",
    "out_of_bounds": "Compare the index with the size: a guard is missing, or the index is computed for another shape.",
    "index_out_of_bounds": "Compare the array's length with what the index counts to. One of threadIdx counts to the block's "
    "size in that direction: in a block launched with a single number threadIdx.x numbers all threads, and threadIdx.y is 0.",
    "use_after_free": "The memory was given back before: by cudaFree, cudaFreeAsync, or free or delete in a kernel.",
    "double_free": "One thread gives back what one call of malloc or new gave: another thread, or an earlier launch, has done it.",
    "bad_free": "free and delete in a kernel take what malloc and new gave a kernel, and its first byte; what cudaMalloc gave, "
    "cudaFree takes.",
    "ended_block": "A block's shared memory ends with it: all blocks of the cluster meet once more (cluster.sync()) after the "
    "last access to each other's shared memory, before any returns.",
    "null_pointer": "A pointer was never set, or an allocation failed.",
    "illegal_address": "An index far out of range, a pointer to host memory, or a pointer to another thread's local variable.",
    "misaligned": "A vector access (float4, uint4, ...) needs an address that is a multiple of its size: treat the elements "
    "before the first such address, and rows of odd length, one by one.",
    "write_to_const": "Inputs belong to the caller; write to an output.",
    "write_to_constant": "Kernels can only read __constant__ variables; the host sets them with cudaMemcpyToSymbol.",
    "host_access": "A launcher runs on the CPU, which cannot follow a device pointer: do it in a kernel, or use cudaMemcpy.",
    "host_name": "On the host, the name of a __device__ or __constant__ variable is a copy of the host's own, and no address of "
    "the device: cudaMemcpyToSymbol and cudaMemcpyFromSymbol copy to and from the device's variable, cudaGetSymbolAddress gives "
    "its address, and a __managed__ variable is one for both.",
    "not_its_memory": "A submission may touch its own variables, its tensors, and what new, malloc, cudaMalloc and their like gave it.",
    "not_its_stack": "A pointer to a local variable has gone past it: what lies there is where functions return to.",
    "not_its_function": "Hand over functions of the kernel file alone.",
    "stack_overflow": "Local arrays are too large, or a recursion does not end. A GPU gives each thread 1 KB unless "
    "cudaDeviceSetLimit says otherwise.",
    "leak": "Each call of the launcher would lose that much: pair it with cudaFree or cudaFreeAsync; in a kernel, malloc with free, and new with "
    "delete.",
    "uninitialized_copy": "Copy what the kernels wrote, or clear the memory first (cudaMemset).",
    "uninitialized_read": "Nothing has written this element before: outputs and scratch memory start with garbage.",
    "output_not_written": "The grid does not cover the output, or a guard leaves out too much.",
    "within_warp": "Both threads are in one warp, whose lanes do not run in lockstep: put __syncwarp() between the two "
    "accesses.",
    "within_block": "Both threads are in one block: put __syncthreads() between the two accesses, also between one "
    "turn of a loop and the next.",
    "within_cluster": "The threads are in two blocks of one cluster: put cluster.sync() (barrier.cluster.arrive and "
    "barrier.cluster.wait) between the two accesses, or let the one arrive at an mbarrier for which the other waits.",
    "between_grids": "The launch with cudaLaunchAttributeProgrammaticStreamSerialization lets this kernel begin before the "
    "one before it has ended: call cudaGridDependencySynchronize() (griddepcontrol.wait) before the first access to "
    "what that one reads or writes.",
    "between_blocks": "The threads are in different blocks, which nothing orders within one launch: use atomics, give "
    "each block a place of its own, or split the work into two launches.",
    "between_streams": "Nothing orders the two streams: cudaEventRecord(event, first) after the one and "
    "cudaStreamWaitEvent(second, event) before the other, or cudaStreamSynchronize(first) between them. A stream made with "
    "cudaStreamNonBlocking does not wait for the default stream either. What a launcher does in streams of its own must be "
    "joined to the stream that it was given.",
    "with_host": "The host did not wait: call cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize before it "
    "touches memory that a kernel or an asynchronous copy may still be using.",
    "copy_not_awaited": "An asynchronous copy (cp.async) has not been waited for: commit it, wait for its group, then "
    "__syncthreads(), before anyone touches the destination. One that completes on an mbarrier: each thread waits for "
    "the phase with the right parity. A bulk store: cp.async.bulk.wait_group.read before its source is written again.",
    "missing_proxy_fence": "The copy engine and wgmma do not see ordinary writes by themselves: each thread that wrote executes "
    "fence.proxy.async.shared::cta before the barrier after which the bulk copy or the product begins.",
    "operands_not_awaited": "A product reads its tiles until it has been waited for: wgmma.commit_group, then wgmma.wait_group "
    "(tcgen05.commit, then its mbarrier), then a barrier (or an arrival at an mbarrier) before anyone overwrites them.",
    "accumulator_not_awaited": "Between wgmma.mma_async and the wgmma.wait_group that waits for its group nobody may read or write "
    "the accumulators: wgmma.commit_group, then wgmma.wait_group, then use them.",
    "missing_wgmma_fence": "wgmma.fence.sync.aligned stands before the first wgmma.mma_async, and again wherever threads have "
    "read or written the accumulators (or A in registers) since.",
    "tensor_product_not_awaited": "One thread: tcgen05.commit with an mbarrier behind the products. Whoever reads the accumulators: waits for "
    "the phase of that mbarrier, then tcgen05.fence::after_thread_sync, then tcgen05.ld.",
    "tensor_transfer_not_awaited": "tcgen05.ld and st take their time: tcgen05.wait::ld or tcgen05.wait::st, then "
    "tcgen05.fence::before_thread_sync and an arrival at a barrier, before others use those columns.",
    "tensor_memory_race": "Let the warp that is done arrive at a barrier, after tcgen05.wait and tcgen05.fence::before_thread_sync, and "
    "who comes next wait for it and execute tcgen05.fence::after_thread_sync.",
    "missing_tensor_fence_after": "A wait or a barrier alone does not order tcgen05 instructions: tcgen05.fence::after_thread_sync stands "
    "behind it.",
    "missing_tensor_fence_before": "A barrier alone does not order tcgen05 instructions: tcgen05.fence::before_thread_sync stands before the "
    "arrival.",
    "tensor_memory_uninitialized": "Tensor memory holds whatever the last block left there: the first product of a tile has "
    "enable-input-d false.",
    "tensor_load_not_awaited": "Between tcgen05.ld and tcgen05.wait::ld nobody may read or write its registers.",
    "tensor_memory_freed_in_use": "All that use the columns wait and meet at a barrier before one warp executes tcgen05.dealloc.",
    "tensor_memory_not_freed": "A warp that allocates executes tcgen05.dealloc with the same address and number of columns before "
    "the block ends: no other block gets them otherwise.",
    "tensor_product_at_exit": "tcgen05.commit with an mbarrier, and a wait for its phase, before the threads return.",
    "swizzle_differs": "The tensor map and the matrix descriptor must name the same swizzle: whoever writes and whoever reads mean the "
    "same place.",
    "wgmma_at_exit": "wgmma.commit_group.sync.aligned, then wgmma.wait_group.sync.aligned 0, before the threads return.",
    "deadlock": "All threads of a block must reach the same __syncthreads(), all threads of a cluster its barrier, and all "
    "lanes of a mask the same intrinsic: move it out of the condition.",
    "barrier_sites_differ": "A barrier in a branch is reached by some threads only; the others run to the next one and "
    "everything after it is out of step. Move it out of the branch.",
    "barrier_after_exit": "Do not return before a __syncthreads(): guard the work instead (if (i < n) ...) and let all "
    "threads come to the barrier.",
    "mbarrier_not_initialized": "One thread executes mbarrier.init, then __syncthreads(), before anyone arrives or waits.",
    "copy_at_exit": "Its shared memory is another block's by then: wait for the mbarrier, or for a store with "
    "cp.async.bulk.wait_group.read 0, before the threads return.",
    "event_not_recorded": "Call cudaEventRecord(event, stream) after the work that is to be waited for, then "
    "cudaStreamWaitEvent.",
    "default_stream": "Pass it on: kernel<<<grid, block, shared_bytes, stream>>>(...), cudaMemsetAsync(..., stream). The "
    "caller orders its work by that stream alone.",
    "own_lane_not_in_mask": "The mask must name exactly the lanes that execute the call.",
    "collectives_differ": "All lanes that a mask names must execute the same call: the branch around it must be the same "
    "for all.",
    "shuffle_from_inactive_lane": "Let all lanes of the warp execute the shuffle (with a neutral value), or name only "
    "active lanes.",
    "grid_sync_not_cooperative": "Use cudaLaunchCooperativeKernel.",
    "infinite_loop": "This is where the thread was when the launch was stopped. Look at the condition of the loop around it, "
    "which never becomes false; where a thread waits there for another one: blocks that have not started yet cannot help it.",
    "division_by_zero": "On a GPU the result is garbage, without any message.",
}
_OVERWRITTEN_BY_A_COPY = (
    "A copy may begin when all are done with what it overwrites: let them arrive at a barrier, __syncthreads() or an "
    "mbarrier, and wait for it before the copy."
)
_NODES_OF_A_GRAPH = (
    "No path of dependencies leads from one node of the graph to the other: name the first among the dependencies of the "
    "second where that is added, or call cudaGraphAddDependencies."
)
_PHASE_NOT_COMPLETE = (
    "A phase is complete when as many have arrived as mbarrier.init was told and all bytes have that "
    "mbarrier.arrive.expect_tx announced: compare both with what arrives. A wait for the wrong parity waits for a phase "
    "that has yet to come."
)
_WARPGROUP_INCOMPLETE = (
    "A warpgroup is four warps, of which the first has a number that 4 divides: all 128 threads execute the same "
    "instruction. Give each role of the kernel whole warpgroups."
)
_ONE_IS_ATOMIC = (
    "The threads are in different blocks, and only one of the two accesses is an atomic operation: make the other one "
    "atomic, too, or split the work into two launches."
)
_FENCE = (
    "The threads are in different blocks. The atomic operation at {0} orders nothing but itself: __threadfence() between the "
    "write and it, and again between it and the read (with __syncthreads() where other threads of the block do the one or "
    "the other). Where it is not meant to order them: give each block a place of its own, or split the work into two "
    "launches."
)
_OTHER = {
    "accumulator_not_awaited": "the product",
    "tensor_product_not_awaited": "the product",
    "tensor_transfer_not_awaited": "the load or store",
    "missing_tensor_fence_after": "what it must come after",
    "missing_tensor_fence_before": "what it must come after",
    "tensor_load_not_awaited": "the load",
    "tensor_memory_freed_in_use": "what may not be complete",
    "tensor_memory_race": "the other operation",
    "swizzle_differs": "the copy",
    "missing_wgmma_fence": "the last access before",
    "deadlock": "others wait here",
    "barrier_sites_differ": "the other barrier",
    "collectives_differ": "the other lane is here",
}


# -- the whole finding --


def message(finding: Finding) -> str:
    """One line: what, where, and which thread was the first."""
    what = WHAT.get(finding.kind)
    if what is None:
        detail = f": {finding.detail}" if finding.detail else ""
        return f"{finding.kind.replace('_', ' ')}{detail}{where(finding)}"
    return what(finding) + ("" if what in _NAMES_ITS_PLACES else where(finding))


def advice(finding: Finding) -> str:
    """What to do about it, in a sentence or two; empty where the message says it."""
    memory = finding.memory
    if finding.kind == "out_of_bounds" and (memory is None or memory.kind == "dynamic shared"):
        cover = "The third argument of <<<grid, block, bytes>>> must cover everything that the kernel puts there."
        return cover if memory else ""
    if finding.kind == "uninitialized_read" and memory is not None and memory.space == "shared":
        return (
            "Shared memory holds whatever the last block left there: every element must be written before it is read."
        )
    accesses = [side.access for side in (finding, finding.other) if side is not None]
    if (
        finding.kind in ("within_warp", "within_block", "within_cluster", "between_blocks")
        and "async write" in accesses
    ):
        return _OVERWRITTEN_BY_A_COPY
    if finding.kind == "between_blocks" and "atomic" in accesses:
        return _ONE_IS_ATOMIC if len(set(accesses)) > 1 else ADVICE["between_blocks"]
    if finding.kind == "between_blocks" and finding.detail:
        return _FENCE.format(finding.detail)
    if finding.kind == "between_streams" and finding.other and finding.stream is finding.other.stream is None:
        return _NODES_OF_A_GRAPH
    if finding.kind == "deadlock" and "an mbarrier" in finding.detail:
        return _PHASE_NOT_COMPLETE
    if finding.kind == "deadlock" and "wgmma" in finding.detail:
        return _WARPGROUP_INCOMPLETE
    return ADVICE.get(finding.kind, "")


def advice_is_new(findings: Sequence[Finding]) -> list[bool]:
    """Of each finding of a list, whether what to do about it has not been said of one before."""
    said = [advice(finding) for finding in findings]
    return [advised not in said[:at] for at, advised in enumerate(said)]


def other_side(finding: Finding) -> str:
    """What the other thread did: of a race its access."""
    if finding.other is None:
        return ""
    return _OTHER.get(finding.kind) or f"the other access, {an_access(finding.other)}"


def title(finding: Finding) -> str:
    """A few words, for a list."""
    return {"refused": "failed call"}.get(finding.kind, finding.kind.replace("_", " "))


HIDES = "What else was found and follows from this is left out."


def text(finding: Finding, advised: bool = True) -> str:
    """All that there is to say about a finding, over several lines: source line, caret, the other side, and what to do."""
    rows = [f"{finding.check}: {message(finding)}", *excerpt(finding)]
    if finding.other and finding.other.source_line.strip():
        rows += [f"  {other_side(finding)} ({place(finding.other)}):", *excerpt(finding.other)]
    if finding.count > 1:
        rows.append(f"  seen {finding.count:,} times")
    if finding.hides:
        rows.append(f"  {HIDES}")
    if advised and (said := advice(finding)):
        rows.append(f"  {said}")
    return "\n".join(rows)


def excerpt(side: Side) -> list[str]:
    """The source line with its number, and a caret under the column where that is known."""
    source = side.source_line
    if not source.strip():
        return []
    rows = [f"  {side.line:>5} | {source.expandtabs(4).rstrip()}"]
    if side.column > 0:
        rows.append(f"        | {' ' * len(source[: side.column - 1].expandtabs(4))}^")
    return rows


def several(findings: Sequence[Finding], most: int) -> str:
    """The first findings, and how many more there are."""
    rows = [text(finding, news) for finding, news in zip(findings[:most], advice_is_new(findings))]
    if len(findings) > most:
        rows.append(f"... and {len(findings) - most} more")
    return "\n".join(rows)
