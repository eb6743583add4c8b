"""All kinds of findings, with their payloads and texts. Each family of kinds has a file.

To add a kind, add an entry to ``KINDS`` of its family and a row to ``checks/report/finding_kinds.def`` of the
simulator, and write the check that reports it.
"""

from __future__ import annotations

from collections.abc import Mapping

from grader.verdict.findings import async_copies, barriers, host, launches, memory, races, tensor_cores
from grader.verdict.findings.kind import FindingKind

FAMILIES = {
    "Memory": memory.KINDS,
    "Races": races.KINDS,
    "Barriers": barriers.KINDS,
    "Asynchronous copies": async_copies.KINDS,
    "Tensor cores": tensor_cores.KINDS,
    "Launches and faults": launches.KINDS,
    "Host code": host.KINDS,
}
KINDS: Mapping[str, FindingKind] = {kind.name: kind for family in FAMILIES.values() for kind in family}
"""All kinds of findings, by name."""

AnyPayload = (
    memory.PAYLOADS
    | races.PAYLOADS
    | barriers.PAYLOADS
    | async_copies.PAYLOADS
    | tensor_cores.PAYLOADS
    | launches.PAYLOADS
    | host.PAYLOADS
)
"""The payload of a finding. In JSON, the member ``of`` names its type."""

__all__ = ["FAMILIES", "KINDS", "AnyPayload", "FindingKind"]
