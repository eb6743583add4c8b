"""Describes counters in words: the wasted memory traffic of a source line, and the operations of a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from grader.verdict import words

WARP = 32

LEGEND = {
    "sectors": "32-byte sectors of global memory that the line moved",
    "waste": "sectors moved for each sector that its data fill",
    "waves": "wavefronts of shared memory",
    "ways": "wavefronts for each one needed: the ways of the bank conflict",
    "operations": "floating-point operations",
    "special": "special functions, such as exp",
    "lanes": f"lanes of {WARP} that take part on average",
}
"""The meaning of each column of counters beside a source."""


def waste(sector_ratio: float, ways: float) -> str:
    """Return a description of the wasted memory traffic of a source line; empty if there is none.

    ``sector_ratio`` is the number of sectors per needed sector, ``ways`` the number of wavefronts per needed wavefront.
    """
    parts = [f"moves {sector_ratio:.3g} times as many sectors as its data needs"] if sector_ratio > 1 else []
    return "; ".join(parts + ([f"{ways:.3g}-way bank conflict"] if ways > 1 else []))


def operations(totals: Mapping[str, float]) -> str:
    """Return a sentence about a kernel's operations.

    It has their number, the number in the task's formula, the operations per byte of global memory, and the average
    number of active lanes.
    """
    flops, tensor = totals["flops"], totals.get("tensor_operations", 0)
    kinds = [words.count(flops, "floating-point operation")] if flops else []
    if tensor:
        kinds.append(f"{tensor:,.0f} on tensor cores")
    if totals.get("special_functions"):
        kinds.append(words.count(totals["special_functions"], "special function"))
    if totals.get("conversions"):
        kinds.append(words.count(totals["conversions"], "conversion"))
    work = words.listed(kinds) if kinds else "No floating-point operations"
    if flops + tensor and totals.get("flops_needed"):
        work += f" (the task's formula: {totals['flops_needed']:,.0f})"
    parts = [work]
    if flops + tensor and totals.get("global_bytes"):
        parts.append(f"{(flops + tensor) / totals['global_bytes']:.3g} operations for each byte of global memory")
    parts.append(f"{totals.get('active_lanes', 0):.3g} of {WARP} lanes take part on average")
    return "; ".join(parts) + "."
