"""Orders findings for reports: causes come first, and findings that are only consequences are left out."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from grader.verdict.finding import Finding, Side
from grader.verdict.findings import KINDS
from grader.verdict.findings.barriers import BlockedThreads
from grader.verdict.findings.races import NearbyAtomic

DIVERGENT = tuple(kind.name for kind in KINDS.values() if kind.divergence)
"""Kinds of findings after which threads pass barriers at different times, so that their later accesses race."""

_WRONG_VALUES = ("racecheck", "initcheck")
_FOLLOWS = ("write_to_const", "write_to_constant")


def causes_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without consequences of others, causes first.

    Divergent barriers come before races, which they cause. An expression with a wrong index may race inside a memory
    and leave it: the access out of bounds comes before the race.
    """
    told = _without_consequences(findings)
    first = next((at for at, finding in enumerate(told) if finding.check in _WRONG_VALUES), len(told))
    wrong = [finding for finding in told if finding.check in _WRONG_VALUES]
    outside, diverge, rest = list[Finding](), list[Finding](), list[Finding]()
    for finding in told[first:]:
        if finding.kind == "out_of_bounds" and any(_accesses_too(other, finding) for other in wrong):
            outside.append(finding)
        else:
            (diverge if _diverges(finding) else rest).append(finding)
    return [_for_the_line(finding, told) for finding in told[:first] + outside + diverge + rest]


def _diverges(finding: Finding) -> bool:
    """Return whether threads pass barriers at different times: a barrier in a branch may also end in a deadlock."""
    if isinstance(finding.payload, BlockedThreads):
        operations = {waiting.operation for waiting in finding.payload.waits}
        return "__syncthreads" in operations and len(operations) > 1 and all(name[:2] == "__" for name in operations)
    return finding.kind in DIVERGENT


def one_for_each_buffer(findings: Sequence[Finding]) -> list[Finding]:
    """Keep the first of the reads of one uninitialized allocation: a program reads it at many lines."""
    first: dict[tuple[str, str, int], int] = {}
    told: list[Finding] = []
    for finding in findings:
        memory = finding.memory
        if finding.kind != "uninitialized_read" or memory is None or memory.space != "global":
            told.append(finding)
            continue
        at = first.setdefault((memory.kind, memory.name, memory.bytes), len(told))
        if at == len(told):
            told.append(finding)
        else:
            told[at] = structs.replace(told[at], count=told[at].count + finding.count, hides=True)
    return told


def _without_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without the consequences of others.

    Of several accesses with the same wrong index, some are out of bounds, and others hit another tensor, where they
    seem to be races. Work on the wrong stream races with all work on the right stream.
    """
    causes = [finding for finding in findings if finding.kind in ("out_of_bounds", "default_stream")]
    hiding: set[int] = set()
    told = []
    for finding in findings:
        cause = next((cause for cause in causes if _follows(finding, cause)), None)
        if cause is None:
            told.append(finding)
        else:
            hiding.add(id(cause))
    return [structs.replace(finding, hides=True) if id(finding) in hiding else finding for finding in told]


def _follows(finding: Finding, cause: Finding) -> bool:
    """Return whether ``finding`` is a consequence of ``cause``.

    A consequence is an access by the same source code to other memory, or a race with work on the wrong stream.
    """
    if cause.kind == "default_stream":
        return finding.kind == "between_streams" and any(side.stream == 0 for side in _sides(finding))
    if finding.check not in _WRONG_VALUES and finding.kind not in _FOLLOWS:
        return False
    if _memory(finding) == _memory(cause):
        return False
    return _accesses_too(finding, cause)


def _accesses_too(finding: Finding, cause: Finding) -> bool:
    """Return whether one of the finding's accesses is by the expression of ``cause``."""
    return cause.line > 0 and any(_same_access(side, cause) for side in _sides(finding))


def _sides(finding: Finding) -> list[Side]:
    return [finding] if finding.other is None else [finding, finding.other]


def _same_access(side: Side, cause: Side) -> bool:
    columns = side.column == cause.column or not side.column or not cause.column
    return (side.place, side.access, side.bytes) == (cause.place, cause.access, cause.bytes) and columns


def _memory(finding: Finding) -> tuple[str, str] | None:
    return (finding.memory.kind, finding.memory.name) if finding.memory else None


def _for_the_line(race: Finding, every: Sequence[Finding]) -> Finding:
    """Return the race, with the fix ``__syncthreads()`` if its line also has a race between warps.

    The usual fix of a race within a warp is ``__syncwarp()``, but ``__syncthreads()`` fixes both races.
    """
    if race.kind == "within_warp" and any(
        other.kind == "within_block" and other.places & race.places for other in every
    ):
        nearby = race.payload if isinstance(race.payload, NearbyAtomic) else NearbyAtomic()
        return structs.replace(race, payload=structs.replace(nearby, block=True))
    return race
