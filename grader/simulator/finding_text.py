"""Findings in words: what happened, to which memory, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from grader.simulator import report_format
from grader.simulator.findings import Side


@dataclass
class Told:
    """A finding in words: the message, what to do, and for a race what the other side did."""

    message: str
    advice: str = ""
    other: str = ""


def where(side: Side) -> str:
    """`` at flash_attention.cu:31, block (3, 0, 0) thread (17, 0, 0)``, as far as it is known."""
    text = f" at {side.place}" if side.line else ""
    return f"{text}, {side.who}" if side.who else text


def plural(number: int, noun: str) -> str:
    """``1 byte``, ``3 bytes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# -- memory --


def memory_name(memory: report_format.Memory) -> str:
    """``k[2, 4, 65, 64] (float32)``, ``the shared array tile (4,096 bytes)``..."""
    kind, name, size = memory.kind, memory.name, plural(memory.bytes, "byte")
    if kind == "tensor":
        dtype = f" ({memory.dtype})" if memory.dtype else ""
        return f"{name}[{', '.join(map(str, memory.shape))}]{dtype}"
    if kind == "__shared__":
        return f"the shared array {name} ({size})"
    if kind == "dynamic shared":
        return f"the dynamic shared memory ({size})"
    if kind in ("__device__", "__constant__"):
        return f"the {kind} variable {name} ({size})"
    return f"memory from {kind} ({size})"


def element_of(memory: report_format.Memory) -> list[int] | None:
    """The index of the element at the memory's offset; None outside a tensor."""
    size, shape, offset = memory.element_bytes, memory.shape, memory.offset
    if memory.kind != "tensor" or not size or not 0 <= offset < memory.bytes:
        return None
    flat = offset // size
    index: list[int] = []
    for extent in reversed(shape):
        index.insert(0, flat % extent if extent else 0)
        flat //= extent or 1
    return index


def position(memory: report_format.Memory, access_bytes: int) -> str:
    """``x[2, 5] of x[4, 64] (float32)``, ``element 33 (byte 132) of the shared array tile (4,096 bytes)``."""
    element = element_of(memory)
    if element is not None:
        return f"{memory.name}[{', '.join(map(str, element))}] of {memory_name(memory)}"
    offset = memory.offset
    if access_bytes in (2, 4, 8, 16) and offset % access_bytes == 0:
        return f"element {offset // access_bytes:,} (byte {offset:,}) of {memory_name(memory)}"
    return f"byte {offset:,} of {memory_name(memory)}"


def distance(memory: report_format.Memory, access_bytes: int) -> str:
    """``0 bytes past the end of k[...]``: how far outside the memory an access begins, or by how much it sticks out."""
    offset, size = memory.offset, memory.bytes
    if offset >= size:
        return f"{plural(offset - size, 'byte')} past the end of {memory_name(memory)}"
    if offset >= 0:
        return f"of which {plural(offset + access_bytes - size, 'byte')} are past the end of {memory_name(memory)}"
    return f"{plural(-offset, 'byte')} before the start of {memory_name(memory)}"


def access_name(side: Side, size: int) -> str:
    """``4-byte read``."""
    names = {
        "read": "read",
        "write": "write",
        "atomic": "atomic operation",
        "volatile read": "volatile read",
        "volatile write": "volatile write",
        "async read": "asynchronous copy's read",
        "async write": "asynchronous copy's write",
    }
    return f"{size}-byte {names.get(side.access, 'access')}"


# -- one text for each kind --

Text = Callable[[Side, Side | None, report_format.Memory | None, report_format.Finding, str], Told]
KINDS: dict[str, Text] = {}
"""What makes the words of each kind of finding."""


def _text(*kinds: str) -> Callable[[Text], Text]:
    def register(function: Text) -> Text:
        for kind in kinds:
            KINDS[kind] = function
        return function

    return register


def describe(
    check: str,
    kind: str,
    side: Side,
    other: Side | None,
    memory: report_format.Memory | None,
    data: report_format.Finding,
    detail: str,
) -> Told:
    """The finding in words."""
    text = KINDS.get(kind)
    if text is None:
        return Told(f"{kind.replace('_', ' ')}{': ' + detail if detail else ''}{where(side)}")
    return text(side, other, memory, data, detail)


@_text("out_of_bounds")
def _out_of_bounds(side, other, memory, data, detail) -> Told:
    name = access_name(side, data.bytes)
    if memory is None:
        return Told(f"{name} in shared memory, outside of every array{where(side)}")
    advice = "Compare the index with the size: a guard is missing, or the index is computed for another shape."
    if memory.kind == "dynamic shared":
        advice = "The third argument of <<<grid, block, bytes>>> must cover everything that the kernel puts there."
    return Told(f"{name}, {distance(memory, data.bytes)}{where(side)}", advice)


@_text("use_after_free")
def _use_after_free(side, other, memory, data, detail) -> Told:
    return Told(
        f"{access_name(side, data.bytes)} of freed memory: {position(memory, data.bytes)}{where(side)}",
        "The memory was given back by cudaFree or cudaFreeAsync before this launch.",
    )


@_text("null_pointer")
def _null_pointer(side, other, memory, data, detail) -> Told:
    name = access_name(side, data.bytes) if data.bytes else "access"
    return Told(
        f"{name} through a null pointer (address {data.data:#x}){where(side)}",
        "A pointer was never set, or an allocation failed.",
    )


@_text("illegal_address")
def _illegal_address(side, other, memory, data, detail) -> Told:
    name = access_name(side, data.bytes) if data.bytes else "access"
    return Told(
        f"{name} of address {data.data:#x}, where no device memory is{where(side)}",
        "An index far out of range, a pointer to host memory, or a pointer to another thread's local variable.",
    )


@_text("misaligned")
def _misaligned(side, other, memory, data, detail) -> Told:
    size = data.bytes or 16
    at = f" at {position(memory, 1)}" if memory else ""
    return Told(
        f"misaligned {access_name(side, size)}{at}: the address is no multiple of {size}{where(side)}",
        "A vector access (float4, uint4, ...) needs an address that is a multiple of its size: treat the elements "
        "before the first such address, and rows of odd length, one by one.",
    )


@_text("write_to_const")
def _write_to_const(side, other, memory, data, detail) -> Told:
    return Told(
        f"{access_name(side, data.bytes)} to an input: {position(memory, data.bytes)}, which the launcher takes "
        f"as pointer to const{where(side)}",
        "Inputs belong to the caller; write to an output.",
    )


@_text("write_to_constant")
def _write_to_constant(side, other, memory, data, detail) -> Told:
    return Told(
        f"{access_name(side, data.bytes)} to constant memory: {position(memory, data.bytes)}{where(side)}",
        "Kernels can only read __constant__ variables; the host sets them with cudaMemcpyToSymbol.",
    )


@_text("host_access")
def _host_access(side, other, memory, data, detail) -> Told:
    what = position(memory, data.bytes) if memory else "device memory"
    return Told(
        f"host code makes a {access_name(side, data.bytes)} of device memory: {what}{where(side)}",
        "A launcher runs on the CPU, which cannot follow a device pointer: do it in a kernel, or use cudaMemcpy.",
    )


@_text("index_out_of_bounds")
def _index_out_of_bounds(side, other, memory, data, detail) -> Told:
    index = data.data - (1 << 64) if data.data >> 63 else data.data
    return Told(
        f"index {index} is out of bounds for an array of type {detail}{where(side)}",
        "",
    )


@_text("stack_overflow")
def _stack_overflow(side, other, memory, data, detail) -> Told:
    return Told(
        f"stack overflow{where(side)}",
        "Local arrays are too large, or a recursion does not end. A GPU gives each thread 1 KB unless "
        "cudaDeviceSetLimit says otherwise.",
    )


@_text("leak")
def _leak(side, other, memory, data, detail) -> Told:
    return Told(
        f"{plural(data.number, 'byte')} from {memory.kind} never freed{where(side)}",
        "Each call of the launcher would lose that much: pair it with cudaFree or cudaFreeAsync.",
    )


@_text("uninitialised_read")
def _uninitialised_read(side, other, memory, data, detail) -> Told:
    shared = memory.kind in ("__shared__", "dynamic shared")
    return Told(
        f"{access_name(side, data.bytes)} of memory that was never written: {position(memory, data.bytes)}"
        f"{where(side)}",
        "Shared memory holds whatever the last block left there: every element must be written before it is read."
        if shared
        else "Nothing has written this element before: outputs and scratch memory start with garbage.",
    )


@_text("output_not_written")
def _output_not_written(side, other, memory, data, detail) -> Told:
    size = memory.element_bytes or 1
    total = memory.bytes // size
    places = []
    for flat in detail.split(","):
        index = element_of(msgspec.structs.replace(memory, offset=int(flat) * size))
        places.append(f"[{', '.join(map(str, index))}]" if index is not None else flat)
    more = ", ..." if data.number > len(places) else ""
    return Told(
        f"{data.number:,} of {plural(total, 'element')} of {memory_name(memory)} "
        f"{'was' if data.number == 1 else 'were'} never written: "
        f"{', '.join(places)}{more}",
        "The grid does not cover the output, or a guard leaves out too much.",
    )


def _race_side(side: Side, size: int) -> str:
    return f"{access_name(side, size)}{where(side)}"


_RACE_ADVICE = {
    "within_warp": "Both threads are in one warp. Its lanes do not run in lockstep: put __syncwarp() (or "
    "__syncthreads()) between the two accesses.",
    "within_block": "Both threads are in one block: put __syncthreads() between the two accesses, also between one "
    "turn of a loop and the next.",
    "between_blocks": "The threads are in different blocks, which nothing orders within one launch: use atomics, give "
    "each block a place of its own, or split the work into two launches.",
    "copy_not_awaited": "An asynchronous copy (cp.async) has not been waited for: commit it, wait for its group, then "
    "__syncthreads(), before anyone touches the destination. One that completes on an mbarrier: each thread waits for "
    "the phase with the right parity. A bulk store: cp.async.bulk.wait_group.read before its source is written again.",
}


@_text("within_warp", "within_block", "between_blocks", "copy_not_awaited")
def _race(side, other, memory, data, detail) -> Told:
    place = position(memory, data.bytes)
    first = access_name(side, data.bytes)
    second = access_name(other, data.bytes)
    text = f"race on {place}: {first}{where(side)} and {second}{where(other)} are not ordered"
    advice = _RACE_ADVICE[data.kind]
    if "async write" in (side.access, other.access) and data.kind != "copy_not_awaited":
        advice = (
            "A copy may begin when all are done with what it overwrites: let them arrive at a barrier, __syncthreads() or "
            "an mbarrier, and wait for it before the copy."
        )
    return Told(text, advice, f"the other access, a {second}")


@_text("missing_proxy_fence")
def _missing_proxy_fence(side, other, memory, data, detail) -> Told:
    return Told(
        f"a bulk copy reads {position(memory, data.bytes)}{where(side)}, but may not see the "
        f"{access_name(other, data.bytes)}{where(other)}: no fence.proxy.async stands between them",
        "The copy engine does not see ordinary writes by itself: each thread that wrote executes "
        "fence.proxy.async.shared::cta before the barrier after which the bulk copy begins.",
        "what it may not see",
    )


@_text("deadlock")
def _deadlock(side, other, memory, data, detail) -> Told:
    advice = (
        "All threads of a block must reach the same __syncthreads(), and all lanes of a mask the same intrinsic: move "
        "it out of the condition."
    )
    if "an mbarrier" in detail:
        advice = (
            "A phase is complete when as many have arrived as mbarrier.init was told and all bytes have that "
            "mbarrier.arrive.expect_tx announced: compare both with what arrives. A wait for the wrong parity waits "
            "for a phase that has yet to come."
        )
    return Told(f"deadlock: {detail or 'no thread can go on'}", advice, "others wait here")


@_text("mbarrier_not_initialised")
def _mbarrier_not_initialised(side, other, memory, data, detail) -> Told:
    return Told(
        f"an mbarrier is used that nobody has initialised{where(side)}",
        "One thread executes mbarrier.init, then __syncthreads(), before anyone arrives or waits.",
    )


@_text("copy_at_exit")
def _copy_at_exit(side, other, memory, data, detail) -> Told:
    return Told(
        f"the block ends while a bulk copy is under way, for which nobody has waited{where(side)}",
        "Its shared memory is another block's by then: wait for the mbarrier, or for a store with "
        "cp.async.bulk.wait_group.read 0, before the threads return.",
    )


@_text("event_not_recorded")
def _event_not_recorded(side, other, memory, data, detail) -> Told:
    return Told(
        f"{detail} waits for an event that has not been recorded: it waits for nothing{where(side)}",
        "Call cudaEventRecord(event, stream) after the work that is to be waited for, then cudaStreamWaitEvent.",
    )


@_text("instruction_misused")
def _instruction_misused(side, other, memory, data, detail) -> Told:
    return Told(f"{detail or 'an instruction is used in a way that has no meaning'}{where(side)}")


@_text("barrier_sites_differ")
def _barrier_sites_differ(side, other, memory, data, detail) -> Told:
    return Told(
        f"threads of a block met at different __syncthreads(): {side.place} and {other.place if other else '?'}, "
        f"{side.who}",
        "A barrier in a branch is reached by some threads only; the others run to the next one and everything after "
        "it is out of step. Move it out of the branch.",
        "the other barrier",
    )


@_text("barrier_after_exit")
def _barrier_after_exit(side, other, memory, data, detail) -> Told:
    return Told(
        f"{data.number} of {plural(data.bytes, 'thread')} of the block had exited and never reach the barrier"
        f"{where(side)}",
        "Do not return before a __syncthreads(): guard the work instead (if (i < n) ...) and let all threads come "
        "to the barrier.",
    )


@_text("own_lane_not_in_mask")
def _own_lane_not_in_mask(side, other, memory, data, detail) -> Told:
    return Told(
        f"a lane calls a warp intrinsic with the mask {data.number:#010x}, which does not name it{where(side)}",
        "The mask must name exactly the lanes that execute the call.",
    )


@_text("collectives_differ")
def _collectives_differ(side, other, memory, data, detail) -> Told:
    return Told(
        f"lanes of one mask are at different warp intrinsics ({detail}){where(side)}",
        "All lanes that a mask names must execute the same call: the branch around it must be the same for all.",
        "the other lane is here",
    )


@_text("shuffle_from_inactive_lane")
def _shuffle_from_inactive_lane(side, other, memory, data, detail) -> Told:
    return Told(
        f"a shuffle reads from lane {data.number}, which takes no part in it: the value is undefined{where(side)}",
        "Let all lanes of the warp execute the shuffle (with a neutral value), or name only active lanes.",
    )


@_text("barrier_threads_invalid")
def _barrier_threads_invalid(side, other, memory, data, detail) -> Told:
    return Told(f"{detail or 'a named barrier has a wrong number of threads'}{where(side)}")


@_text("grid_sync_not_cooperative")
def _grid_sync_not_cooperative(side, other, memory, data, detail) -> Told:
    return Told(f"grid barrier in an ordinary launch: {detail}{where(side)}", "Use cudaLaunchCooperativeKernel.")


@_text("infinite_loop")
def _infinite_loop(side, other, memory, data, detail) -> Told:
    return Told(
        f"a loop does not end{': ' + detail if detail else ''}{where(side)}",
        "Look at the loop's condition, and at what a waiting thread waits for: blocks that have not started yet cannot "
        "help it.",
    )


@_text("refused")
def _refused(side, other, memory, data, detail) -> Told:
    call, _, why = detail.partition(": ")
    return Told(f"{call} failed with CUDA error {data.number}: {why}{where(side)}")


@_text("division_by_zero")
def _division_by_zero(side, other, memory, data, detail) -> Told:
    return Told(f"integer division by zero{where(side)}", "On a GPU the result is garbage, without any message.")


@_text("assertion", "trap", "shared_memory_exceeded", "device_exception", "out_of_memory", "illegal_instruction")
def _fault(side, other, memory, data, detail) -> Told:
    return Told(f"{detail or data.kind.replace('_', ' ')}{where(side)}")
