"""Findings of memcheck and initcheck: invalid addresses, freed memory, and values that were never written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import words
from grader.verdict.findings.kind import Payload, initcheck, memcheck, payload_of
from grader.verdict.findings.sides import access, distance, memory_name, position, where
from grader.verdict.record import Line

if TYPE_CHECKING:
    from grader.verdict.finding import Finding, Memory


class Address(Payload, tag="Address"):
    """The address that was accessed, freed or called."""

    address: int


class ArrayIndex(Payload, tag="ArrayIndex"):
    """An index that is out of bounds, and the type of the array."""

    index: int
    array_type: Line


class LeakedBytes(Payload, tag="LeakedBytes"):
    """The number of bytes that were never freed."""

    bytes: int


class UninitializedBytes(Payload, tag="UninitializedBytes"):
    """The number of bytes in the source of a copy that were never written."""

    bytes: int


class UnwrittenElements(Payload, tag="UnwrittenElements"):
    """The number of elements of an output that no thread wrote, and the indices of the first of them."""

    missing: int
    first: list[int]


def _is_local_variable(memory: Memory) -> bool:
    """Return whether memory is a local variable that is not an array. The report has neither its name nor its size."""
    return memory.kind == "local" and not memory.name


def _out_of_bounds(finding: Finding) -> str:
    if finding.memory is None:
        return f"{access(finding)} in shared memory, outside every array{where(finding)}"
    if _is_local_variable(finding.memory):
        return f"{access(finding)} outside the bounds of a local variable{where(finding)}"
    return f"{access(finding)}, {distance(finding.memory, finding.bytes)}{where(finding)}"


def _out_of_bounds_fix(finding: Finding) -> str:
    if finding.memory is None:
        return (
            "Look for a pointer to a shared array of another block or an earlier launch, or for an index far out of "
            "range."
        )
    if finding.memory is not None and finding.memory.kind == "dynamic shared":
        return (
            "The third argument of <<<grid, block, bytes>>> must cover all dynamic shared memory that the kernel uses."
        )
    if finding.memory is not None and _is_local_variable(finding.memory):
        return (
            "Compare the index with the number of elements in the variable, for example 4 floats or 8 halves in a "
            "float4 or uint4."
        )
    size = f"the size of {finding.memory.name}" if finding.memory and finding.memory.name else "the size of the memory"
    if finding.memory is not None and finding.memory.offset < 0:
        return f"Check that the index is not negative before you use it. If {size} is right, correct the index."
    return (
        f"Compare the index with {size}. Either a guard such as `if (i < n)` is missing, or the index is computed for "
        "another shape."
    )


def _misaligned(finding: Finding) -> str:
    at = f" at {position(finding)}" if finding.memory else ""
    return f"{access(finding)}{at}: the address is not a multiple of {finding.bytes or 16}{where(finding)}"


def _leak(finding: Finding) -> str:
    source = finding.memory.kind if finding.memory else "the device"
    return f"{words.count(payload_of(LeakedBytes, finding).bytes, 'byte')} from {source} never freed{where(finding)}"


def _uninitialized_copy(finding: Finding) -> str:
    count = words.count(payload_of(UninitializedBytes, finding).bytes, "byte")
    at = f"{position(finding)}{where(finding)}"
    return f"{count} that were never written are copied to the host, the first at {at}"


def _uninitialized_read_fix(finding: Finding) -> str:
    if finding.memory is not None and finding.memory.space == "shared":
        return "Write every element of shared memory before a thread reads it, with a barrier between."
    fix = "Write the element before a thread reads it, or clear scratch memory with cudaMemsetAsync."
    if finding.memory is not None and finding.memory.kind.startswith("cudaMalloc"):
        fix += " If cudaMemcpy or cudaMemset fills the memory, check that the size is in bytes."
    return fix


def _uninitialized_read_why(finding: Finding) -> str:
    if finding.memory is not None and finding.memory.space == "shared":
        return "Shared memory holds whatever the last block left there."
    return "Outputs and scratch memory start with arbitrary values."


def _not_written(finding: Finding) -> str:
    payload, memory = payload_of(UnwrittenElements, finding), finding.memory
    if memory is None:
        return f"{words.count(payload.missing, 'element')} of an output never written"
    item = memory.element_bytes or 1
    first = [words.position(memory.index_at(number * item) or [number]) for number in payload.first]
    more = ", ..." if payload.missing > len(first) else ""
    every = words.count(memory.bytes // item, "element")
    verb = "was" if payload.missing == 1 else "were"
    return f"{payload.missing:,} of {every} of {memory_name(memory)} {verb} never written: {', '.join(first)}{more}"


PAYLOADS = Address | ArrayIndex | LeakedBytes | UninitializedBytes | UnwrittenElements

_FAULT = (
    "On a GPU the launch fails with cudaErrorIllegalAddress, or other data is read or overwritten without a message."
)
_UNDEFINED = "C++ does not define the result. The access reaches other variables of the thread, or other memory."


def _out_of_bounds_why(finding: Finding) -> str:
    return _UNDEFINED if finding.memory is not None and _is_local_variable(finding.memory) else _FAULT


KINDS = (
    memcheck(
        name="out_of_bounds",
        title="out-of-bounds access",
        text=_out_of_bounds,
        why=_out_of_bounds_why,
        fix=_out_of_bounds_fix,
        look="the access out of bounds",
        sample=Address(address=0x7F0000001000),
        sample_access="read",
    ),
    memcheck(
        name="index_out_of_bounds",
        title="array index out of bounds",
        text="index {index} is out of bounds for an array of type {array_type}{where}",
        why=_UNDEFINED,
        fix="Compare the array's length with the largest value of the index. If the index is threadIdx.x, check the "
        "launch: in a one-dimensional block, threadIdx.x numbers all threads, and threadIdx.y is 0.",
        look="the index out of bounds",
        sample=ArrayIndex(index=32, array_type="float [32]"),
    ),
    memcheck(
        name="use_after_free",
        title="use after free",
        text="{access} of freed memory: {position}{where}",
        why="Another allocation may own this memory by now.",
        fix="Move the access before the call that frees the memory: cudaFree, cudaFreeAsync, or free or delete in a "
        "kernel.",
        look="the access to freed memory",
        sample=Address(address=0x7F0000001000),
        sample_access="read",
        has_memory=True,
    ),
    memcheck(
        name="ended_block",
        title="access to the shared memory of a block that may have ended",
        text="{access} of {position}, which belongs to another block of the cluster{where}",
        why="When a block ends, its shared memory may be assigned to another block.",
        fix="Add cluster.sync() after the last access to another block's shared memory, before any block of the "
        "cluster returns.",
        look="the access to another block's shared memory",
        sample_access="read",
        has_memory=True,
    ),
    memcheck(
        name="double_free",
        title="double free on the device heap",
        text="{address:#x} was already freed by this kernel, another thread, or an earlier launch{where}",
        why="A second free corrupts the heap of the device.",
        fix="Free each pointer that malloc or new returned exactly once, in one thread.",
        look="the second free",
        sample=Address(address=0x7F0000001000),
    ),
    memcheck(
        name="bad_free",
        title="invalid free",
        text="{address:#x} was not returned by device malloc or new{where}",
        why="The heap of the device is corrupted.",
        fix="Pass free or delete the first byte that malloc or new returned in a kernel. Use cudaFree for memory from "
        "cudaMalloc.",
        look="the invalid free",
        sample=Address(address=0x7F0000001000),
    ),
    memcheck(
        name="null_pointer",
        title="null pointer access",
        text="{access} through a null pointer (address {address:#x}){where}",
        why="On a GPU the launch fails with cudaErrorIllegalAddress.",
        fix="Find the pointer on this line that was never set, or the allocation that failed.",
        look="the access through a null pointer",
        stage="correct",
        sample=Address(address=0),
        sample_access="read",
    ),
    memcheck(
        name="illegal_address",
        title="access to an illegal address",
        text="{access} of address {address:#x}, which is not device memory{where}",
        why="On a GPU the launch fails with cudaErrorIllegalAddress.",
        fix="Look for an index far out of range (an int product overflows at 2^31), a pointer to host memory, or a "
        "pointer to another thread's local variable.",
        look="the access to an illegal address",
        stage="correct",
        sample=Address(address=0xDEAD0000),
        sample_access="write",
    ),
    memcheck(
        name="misaligned",
        title="misaligned address",
        text=_misaligned,
        why="On a GPU the launch fails with cudaErrorMisalignedAddress.",
        fix="A vector access (float4, uint4, ...) needs an address that is a multiple of its size. Process the "
        "elements before the first aligned address one by one, and also rows whose length is no multiple of the "
        "vector.",
        look="the misaligned access",
        stage="correct",
        sample=Address(address=0x7F0000001004),
        sample_access="read",
    ),
    memcheck(
        name="write_to_const",
        title="write to an input",
        text="{access} to {position}, which the launcher takes as a pointer to const{where}",
        why="The caller still uses its inputs, and would read the changed values.",
        fix="Write to an output, or to scratch memory.",
        look="the write to an input",
        sample=Address(address=0x7F0000001000),
        sample_access="write",
        has_memory=True,
    ),
    memcheck(
        name="write_to_constant",
        title="write to constant memory",
        text="{access} to {position}{where}",
        why="Kernels can only read __constant__ variables.",
        fix="Set the variable on the host with cudaMemcpyToSymbol, or use a __device__ variable.",
        look="the write to constant memory",
        sample=Address(address=0x7F0000001000),
        sample_access="write",
        has_memory=True,
    ),
    memcheck(
        name="constants_too_large",
        title="tables of constants with more than 4 KB",
        text="the launch reads more than 4096 bytes of static const or constexpr arrays{where}",
        why="On a GPU these arrays are in global or local memory, but the simulator does not count their traffic.",
        fix="Make the table a __constant__ variable, or compute its values in the kernel.",
        look="the read of the table of constants",
    ),
    memcheck(
        name="stack_overflow",
        title="stack overflow",
        text="the thread's stack is full{where}",
        why="A GPU gives each thread 1 KB of stack, unless cudaDeviceSetLimit says otherwise.",
        fix="Make local arrays smaller, or end the recursion earlier.",
        look="the stack overflow",
        stage="correct",
        sample=Address(address=0x7F0000001000),
    ),
    memcheck(
        name="leak",
        title="memory leak",
        text=_leak,
        why="Each call of the launcher loses that much memory.",
        fix="Pair each allocation with a free: cudaMalloc with cudaFree, cudaMallocAsync with cudaFreeAsync, in a "
        "kernel malloc with free and new with delete.",
        look="the allocation that is never freed",
        sample=LeakedBytes(bytes=4096),
        has_memory=True,
    ),
    initcheck(
        name="uninitialized_read",
        title="read of uninitialized memory",
        text="{access} of memory that was never written: {position}{where}",
        why=_uninitialized_read_why,
        fix=_uninitialized_read_fix,
        look="the read of memory that was never written",
        sample_access="read",
        has_memory=True,
    ),
    initcheck(
        name="uninitialized_copy",
        title="copy of uninitialized memory",
        text=_uninitialized_copy,
        why="The host gets arbitrary values.",
        fix="Copy only what kernels wrote, or clear the memory first with cudaMemset.",
        look="the copy of memory that was never written",
        sample=UninitializedBytes(bytes=64),
        has_memory=True,
    ),
    initcheck(
        name="output_not_written",
        title="output not fully written",
        text=_not_written,
        why="Outputs start with arbitrary values.",
        fix="Check that grid times block covers the whole output, and that no guard excludes elements inside.",
        look="the launch that does not cover the output",
        sample=UnwrittenElements(missing=2, first=[64, 65]),
        has_memory=True,
    ),
)
