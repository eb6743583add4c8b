"""The registry of findings: every kind with its payload and its texts, one file for each family.

A new kind of finding is an entry in ``KINDS`` of its family, a row of ``checks/report/finding_kinds.def``, and the
check that reports it.
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
"""Every kind by its name."""

AnyPayload = (
    memory.PAYLOADS
    | races.PAYLOADS
    | barriers.PAYLOADS
    | async_copies.PAYLOADS
    | tensor_cores.PAYLOADS
    | launches.PAYLOADS
    | host.PAYLOADS
)
"""The payload of a finding; its member ``of`` names the type."""

__all__ = ["FAMILIES", "KINDS", "AnyPayload", "FindingKind"]
