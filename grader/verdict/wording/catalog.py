"""The catalog of messages: every text that a learner may read, with sample values, as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from grader.verdict.finding import Finding, Memory, Side
from grader.verdict.findings import FAMILIES, FindingKind
from grader.verdict.wording import findings

_TENSOR = Memory(
    kind="tensor",
    space="global",
    name="x",
    dtype="float32",
    shape=[4, 64],
    bytes=1024,
    element_bytes=4,
    offset=532,
    index=[2, 5],
)
_SHARED = Memory(kind="__shared__", space="shared", name="tile", bytes=4096, offset=132)


def sample(kind: FindingKind) -> Finding:
    """Return a finding of a kind with sample values."""
    memory = _sample_memory(kind)
    access = kind.sample_access
    other = None
    if kind.other or kind.sample_other:
        size = 4 if kind.sample_other else 0
        other = Side(
            access=kind.sample_other,
            bytes=size,
            memory=memory,
            file="kernel.cu",
            line=40,
            block=[0, 0, 0],
            thread=[33, 0, 0],
        )
    return Finding(
        check=kind.check,
        kind=kind.name,
        access=access,
        bytes=4 if access else 0,
        memory=memory,
        other=other,
        payload=kind.sample,
        file="kernel.cu",
        line=31,
        block=[0, 0, 0],
        thread=[1, 0, 0],
    )


def _sample_memory(kind: FindingKind) -> Memory | None:
    if kind.check == "racecheck":
        return (
            _SHARED if kind.name not in ("between_blocks", "between_grids", "between_streams", "with_host") else _TENSOR
        )
    if kind.name == "out_of_bounds":
        return structs.replace(_TENSOR, offset=1024, index=None)
    return _TENSOR if kind.has_memory or kind.sample_access else None


def page() -> str:
    """Return the catalog as Markdown."""
    rows = ["# Messages", "", "Every finding with sample values: its text, why it matters, and how to fix it.", ""]
    for family, kinds in FAMILIES.items():
        rows += [f"## {family}", ""]
        for kind in kinds:
            rows += _entry(kind)
    return "\n".join(rows).rstrip() + "\n"


def _entry(kind: FindingKind) -> Iterator[str]:
    found = sample(kind)
    yield f"### {kind.title[:1].upper()}{kind.title[1:]}"
    yield ""
    yield f"`{kind.check}`, `{kind.name}`, fails *{kind.stage.capitalize()}*"
    yield ""
    yield f"> {findings.message(found)}"
    yield ""
    yield f"Why it matters: {findings.why(found)}"
    yield ""
    yield f"Fix: {findings.fix(found)}"
    yield ""
