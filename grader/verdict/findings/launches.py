"""Findings about launches, calls of the runtime API, and faults that end a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict.findings.barriers import Reason
from grader.verdict.findings.kind import Payload, fault, payload_of, synccheck
from grader.verdict.record import Line, Text

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class RefusedCall(Payload, tag="RefusedCall"):
    """A failed launch or call: the name of the kernel or function, CUDA's error code, and the reason."""

    call: Line
    error: int
    reason: Text


class Call(Payload, tag="Call"):
    """The name of a function of the runtime API that was called, or of a kernel that was launched."""

    call: Line


PAYLOADS = RefusedCall | Call


_CORRECTIONS = (
    (
        "the grid has no blocks",
        "Round the number of blocks up: (n + threads - 1) / threads. If there is nothing to compute, return before the "
        "launch.",
    ),
    ("the block has no threads", "Launch at least one thread per block, usually a multiple of 32."),
    ("the block is too large", "Launch more blocks of fewer threads: a block has at most 1024."),
    ("the grid is too large", "Launch fewer blocks, and let each process several elements in a loop."),
    ("too much dynamic shared memory", "Pass fewer bytes as the third argument of <<<...>>>, or raise the limit."),
)
"""How to correct a launch, for each reason why it fails. A reason begins with the first text of a pair."""


def _correction(finding: Finding) -> str:
    payload = payload_of(RefusedCall, finding)
    if payload.call.startswith("cuda"):
        return "Correct the argument that the message is about."
    return next(
        (correction for reason, correction in _CORRECTIONS if payload.reason.startswith(reason)),
        "Correct the launch argument that this message names.",
    )


KINDS = (
    fault(
        name="refused",
        title="failed call",
        text="{call} failed with CUDA error {error}: {reason}{where}",
        why="The kernel did not run, or the call had no effect.",
        fix=_correction,
        look="the launch or call that fails",
        sample=RefusedCall(call="softmax_kernel", error=1, reason="the grid has no blocks"),
    ),
    synccheck(
        name="default_stream",
        title="work on the default stream",
        text="{call}{where} uses the default stream instead of the launcher's stream",
        why="The caller waits only for its own stream, and may read outputs before they are written.",
        fix="Pass the launcher's stream: kernel<<<grid, block, shared_bytes, stream>>>(...), "
        "cudaMemsetAsync(..., stream).",
        look="the call without the stream",
        sample=Call(call="cudaMemsetAsync"),
    ),
    synccheck(
        name="event_not_recorded",
        title="wait for an event that was never recorded",
        text="{call}{where} returns at once: the event was never recorded",
        why="A wait for an event that was never recorded does not wait at all.",
        fix="Call cudaEventRecord(event, stream) after the work to wait for, then cudaStreamWaitEvent.",
        look="the wait for an event that was never recorded",
        sample=Call(call="cudaStreamWaitEvent"),
    ),
    synccheck(
        name="instruction_misused",
        title="invalid use of an instruction",
        text="{reason}{where}",
        why="PTX leaves the result undefined.",
        fix="Compare the operands with the rule in this message, and with the instruction's description in the PTX "
        "manual.",
        look="the instruction",
        stage="correct",
        sample=Reason(reason="misaligned mbarrier: its address must be a multiple of 8 bytes"),
    ),
    fault(
        name="shared_memory_exceeded",
        title="too much shared memory",
        text="{reason}{where}",
        why="The launch fails on a GPU.",
        fix="Use smaller tiles, or dynamic shared memory (extern __shared__), whose limit cudaFuncSetAttribute raises "
        "up to what the GPU has.",
        look="the launch with too much shared memory",
        sample=Reason(reason="the block uses more shared memory than the device has"),
    ),
    fault(
        name="division_by_zero",
        title="integer division by zero",
        text="the divisor is 0{where}",
        why="A GPU gives an arbitrary result, without any message.",
        fix="Handle the case of a zero divisor before this line.",
        look="the division by zero",
    ),
    fault(
        name="assertion",
        title="assertion failed",
        text="{reason}{where}",
        why="The launch ends with cudaErrorAssert.",
        fix="Find out why the condition of the assert is false here.",
        look="the assertion",
        sample=Reason(reason="row < rows"),
    ),
    fault(
        name="trap",
        title="trap",
        text="{reason}{where}",
        why="The launch ends with an error.",
        fix="Look at the condition under which the kernel calls __trap() or __builtin_trap().",
        look="the trap",
        sample=Reason(reason="called by the kernel"),
    ),
    fault(
        name="missing_return",
        title="missing return",
        text="the function reaches its closing brace without a return statement, although it returns a value{where}",
        why="C++ leaves this undefined: nvcc only warns, and the thread may continue anywhere.",
        fix="Return a value on every path, or make the function void.",
        look="the end of the function without return",
    ),
    fault(
        name="device_exception",
        title="exception in device code",
        text="{reason}{where}",
        why="Device code has no exceptions: nvcc would not compile this.",
        fix="Remove the throw, or the call of the library function that throws.",
        look="the exception",
        sample=Reason(reason="std::bad_alloc"),
    ),
    fault(
        name="illegal_instruction",
        title="illegal instruction",
        text="{reason}{where}",
        why="The thread reached code that the compiler believes to be unreachable.",
        fix="Look for a function without a return statement, a loop with undefined behavior, or "
        "__builtin_unreachable().",
        look="the illegal instruction",
        sample=Reason(reason=""),
    ),
    fault(
        name="out_of_memory",
        title="out of memory",
        text="{reason}{where}",
        why="The simulator needs memory for the data and for the state that it keeps of each element.",
        fix="Use smaller sizes, or close other programs.",
        look="the launch that ran out of memory",
        sample=Reason(reason=""),
    ),
)
