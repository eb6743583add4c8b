"""Findings about launches, calls of the runtime API, and faults that end a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict.findings.barriers import Reason
from grader.verdict.findings.kind import FindingKind, Payload, payload_of
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


def _reason(finding: Finding) -> str:
    return payload_of(Reason, finding).reason


def _refused(finding: Finding) -> str:
    payload = payload_of(RefusedCall, finding)
    return f"{payload.call} failed with CUDA error {payload.error}: {payload.reason}"


def _correction(finding: Finding) -> str:
    if payload_of(RefusedCall, finding).call.startswith("cuda"):
        return "Correct the argument that the message is about."
    return "Compare the arguments with the limits that the message names."


KINDS = (
    FindingKind(
        name="refused",
        check="fault",
        title="failed call",
        text=_refused,
        why="The kernel did not run, or the call had no effect.",
        fix=_correction,
        look="the launch or call that fails",
        stage="correct",
        payload=RefusedCall,
        sample=RefusedCall(call="softmax_kernel", error=9, reason="2048 threads in a block are more than 1024"),
    ),
    FindingKind(
        name="default_stream",
        check="synccheck",
        title="work on the default stream",
        text=lambda f: (
            f"{payload_of(Call, f).call} uses the default stream instead of the stream that the launcher was given"
        ),
        why="The caller waits only for its own stream, and may read outputs before they are written.",
        fix="Pass the launcher's stream: kernel<<<grid, block, shared_bytes, stream>>>(...), "
        "cudaMemsetAsync(..., stream).",
        look="the call without the stream",
        payload=Call,
        sample=Call(call="cudaMemsetAsync"),
    ),
    FindingKind(
        name="event_not_recorded",
        check="synccheck",
        title="wait for an event that was never recorded",
        text=lambda f: f"{payload_of(Call, f).call} returns at once: the event has not been recorded",
        why="A wait for an event that was never recorded does not wait at all.",
        fix="Call cudaEventRecord(event, stream) after the work to wait for, then cudaStreamWaitEvent.",
        look="the wait for an event that was never recorded",
        payload=Call,
        sample=Call(call="cudaStreamWaitEvent"),
    ),
    FindingKind(
        name="instruction_misused",
        check="synccheck",
        title="invalid use of an instruction",
        text=_reason,
        why="PTX leaves the result undefined.",
        fix="Compare the operands with the rule in this message, and with the instruction's description in the PTX "
        "manual.",
        look="the instruction",
        stage="correct",
        payload=Reason,
        sample=Reason(reason="misaligned mbarrier: its address must be a multiple of 8 bytes"),
    ),
    FindingKind(
        name="shared_memory_exceeded",
        check="fault",
        title="too much shared memory",
        text=_reason,
        why="The launch fails on a GPU.",
        fix="Use smaller tiles, or raise the limit with cudaFuncSetAttribute up to what the GPU has.",
        look="the launch with too much shared memory",
        stage="correct",
        payload=Reason,
        sample=Reason(reason="the block uses more shared memory than the device has"),
    ),
    FindingKind(
        name="division_by_zero",
        check="fault",
        title="integer division by zero",
        text="the divisor is 0",
        why="A GPU gives an arbitrary result, without any message.",
        fix="Handle the case of a zero divisor before this line.",
        look="the division by zero",
        stage="correct",
    ),
    FindingKind(
        name="assertion",
        check="fault",
        title="assertion failed",
        text=_reason,
        why="The launch ends with cudaErrorAssert.",
        fix="Find out why the condition of the assert is false here.",
        look="the assertion",
        stage="correct",
        payload=Reason,
        sample=Reason(reason="row < rows"),
    ),
    FindingKind(
        name="trap",
        check="fault",
        title="trap",
        text=_reason,
        why="The launch ends with an error.",
        fix="Look at the condition under which the kernel calls __trap().",
        look="the trap",
        stage="correct",
        payload=Reason,
        sample=Reason(reason="called by the kernel"),
    ),
    FindingKind(
        name="missing_return",
        check="fault",
        title="missing return",
        text="the function reaches its closing brace without a return statement, although it returns a value",
        why="C++ leaves this undefined: nvcc only warns, and the thread may continue anywhere.",
        fix="Return a value on every path, or make the function void.",
        look="the end of the function without return",
        stage="correct",
    ),
    FindingKind(
        name="device_exception",
        check="fault",
        title="exception in device code",
        text=_reason,
        why="Device code has no exceptions: nvcc would not compile this.",
        fix="Remove the throw, or the call of the library function that throws.",
        look="the exception",
        stage="correct",
        payload=Reason,
        sample=Reason(reason="std::bad_alloc"),
    ),
    FindingKind(
        name="illegal_instruction",
        check="fault",
        title="illegal instruction",
        text=_reason,
        why="The thread reached code that the compiler believes to be unreachable.",
        fix="Look for a function without a return statement, a loop with undefined behavior, or "
        "__builtin_unreachable().",
        look="the illegal instruction",
        stage="correct",
        payload=Reason,
        sample=Reason(reason=""),
    ),
    FindingKind(
        name="out_of_memory",
        check="fault",
        title="out of memory",
        text=_reason,
        why="The simulator needs memory for the data and for the state that it keeps of each element.",
        fix="Use smaller sizes, or close other programs.",
        look="the launch that ran out of memory",
        stage="correct",
        payload=Reason,
        sample=Reason(reason=""),
    ),
)
