"""Findings about host code, about memory outside the submission, and about reports that contradict the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import words
from grader.verdict.findings.kind import Payload, memcheck, payload_of, report
from grader.verdict.findings.memory import Address
from grader.verdict.findings.sides import access, an_access, memory_of, position, where

if TYPE_CHECKING:
    from grader.verdict.finding import Finding


class HostBytes(Payload, tag="HostBytes"):
    """The number of bytes of device memory that host code read or wrote."""

    bytes: int


class CountedBytes(Payload, tag="CountedBytes"):
    """The bytes of global memory that a kernel moved according to its report, and the minimum for the result."""

    bytes: int
    needed: int


PAYLOADS = HostBytes | CountedBytes


def _host_name(finding: Finding) -> str:
    copy = f"the host's copy of {memory_of(finding)}"
    if finding.thread is not None:
        return f"{access(finding)} of {copy}{where(finding)}"
    if finding.access == "write":
        return f"host code writes {copy}, which kernels never read{where(finding)}"
    return f"host code reads {copy}, but the device's copy has another value{where(finding)}"


_FORGED = "The simulator's report and the outputs cannot both be right."
_SANDBOX = "The submission runs in the same process as the simulator, and could manipulate its checks."

KINDS = (
    memcheck(
        name="host_access",
        title="host access to device memory",
        text=lambda f: f"host code makes {an_access(f)} of device memory: {position(f)}{where(f)}",
        why="Host code runs on the CPU, which cannot follow a device pointer.",
        fix="Access the memory in a kernel, or copy it with cudaMemcpy.",
        look="the access by host code",
        stage="correct",
        sample_access="read",
    ),
    memcheck(
        name="host_name",
        title="host access to a device variable by its name",
        text=_host_name,
        why="In host code, the name of a __device__ or __constant__ variable refers to a separate copy in host "
        "memory. It is not the address on the device.",
        fix="Copy with cudaMemcpyToSymbol or cudaMemcpyFromSymbol, get the address with cudaGetSymbolAddress, or use a "
        "__managed__ variable, which host and device share.",
        look="the access to the host's copy",
        sample=Address(address=0x7F0000001000),
        sample_access="write",
    ),
    memcheck(
        name="not_its_memory",
        title="access to memory outside the submission",
        text="{access} of address {address:#x}, which the submission does not own{where}",
        why=_SANDBOX,
        fix="Use only the submission's own variables, its tensors, and memory from new, malloc, cudaMalloc and similar "
        "calls.",
        look="the access to memory outside the submission",
        stage="correct",
        sample=Address(address=0x7F0000001000),
        sample_access="write",
    ),
    memcheck(
        name="not_its_stack",
        title="access to the stack outside local variables",
        text="{access} of the stack outside the local variables of the submission's functions{where}",
        why="A pointer or an index has gone past a local variable; return addresses are stored there.",
        fix="Compare the index with the size of the local array.",
        look="the access past a local variable",
        stage="correct",
        sample=Address(address=0x7F0000001000),
        sample_access="write",
    ),
    memcheck(
        name="not_its_function",
        title="call of a function outside the submission",
        text="a function pointer points to address {address:#x}, which is not a function of the submission{where}",
        why=_SANDBOX,
        fix="Set function pointers only to functions of the kernel file.",
        look="the call of a function outside the submission",
        stage="correct",
        sample=Address(address=0x7F0000001000),
    ),
    report(
        name="report_missing",
        title="simulator report missing",
        text="the kernel returned, but the simulator's report is missing or cannot be read",
        why="Without a report nothing is known about the run.",
        fix="Look for a write far outside an array: it may have overwritten the report.",
        look="the kernel",
    ),
    report(
        name="host_copies",
        title="computation on the host",
        text=lambda f: (
            f"the launcher moved {words.count(payload_of(HostBytes, f).bytes, 'byte')} of device memory "
            "to the host, or wrote tensors from there"
        ),
        why="The exercise requires that kernels compute the result.",
        fix="Launch kernels that compute on the device, and do not copy tensors to the host.",
        look="the launcher",
        sample=HostBytes(bytes=4096),
    ),
    report(
        name="no_launch",
        title="no kernel launched",
        text="the output is right, but host code computed it",
        why="The exercise requires that kernels compute the result.",
        fix="Launch a kernel that computes the output.",
        look="the launcher",
    ),
    report(
        name="nothing_written",
        title="no kernel wrote to global memory",
        text="no kernel wrote to global memory, but the output is right",
        why=_FORGED,
        fix="Write the output in a kernel.",
        look="the launcher",
    ),
    report(
        name="nothing_read",
        title="no kernel read global memory",
        text="no kernel read global memory, but the result depends on inputs",
        why=_FORGED,
        fix="Read the inputs in a kernel.",
        look="the launcher",
        stage="efficient",
    ),
    report(
        name="too_few_bytes",
        title="fewer bytes moved than the result needs",
        text=lambda f: (
            f"the simulator counted {words.count(payload_of(CountedBytes, f).bytes, 'byte')} of global memory traffic, "
            f"but the result needs at least {payload_of(CountedBytes, f).needed:,}"
        ),
        why=_FORGED,
        fix="Read the inputs from global memory in the kernel, and write the outputs there.",
        look="the launcher",
        stage="efficient",
        sample=CountedBytes(bytes=64, needed=65536),
    ),
)
