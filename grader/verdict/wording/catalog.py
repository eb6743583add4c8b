"""Writes the catalog of messages: a Markdown page with all messages of a verdict, with sample values."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from grader.verdict.facts import CaseResult, Diagnosis
from grader.verdict.finding import Finding, Memory, Side
from grader.verdict.findings import FAMILIES, FindingKind
from grader.verdict.wording import cases, findings, outputs

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


_OTHER_THREADS = {
    "within_warp": ([0, 0, 0], [2, 0, 0]),
    "within_cluster": ([1, 0, 0], [1, 0, 0]),
    "between_blocks": ([1, 0, 0], [1, 0, 0]),
}
"""The block and thread of the other side in a sample finding. By default, it is thread 33 of the same block."""

_OF_STREAMS = ("between_streams", "between_grids", "with_host")


def sample(kind: FindingKind) -> Finding:
    """Return a finding of a kind with sample values."""
    memory, access = _sample_memory(kind), kind.sample_access
    if kind.check == "report":
        return Finding(check=kind.check, kind=kind.name, payload=kind.sample)
    other = None
    streams = kind.name in _OF_STREAMS
    if kind.other or kind.sample_other:
        block, thread = _OTHER_THREADS.get(kind.name, ([0, 0, 0], [33, 0, 0]))
        other = Side(
            access=kind.sample_other,
            bytes=4 if kind.sample_other else 0,
            memory=memory,
            file="kernel.cu",
            line=40,
            block=block,
            thread=thread,
            work="scale" if streams else "",
            stream=1 if streams else None,
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
        block=None if kind.name == "with_host" else [0, 0, 0],
        thread=None if kind.name == "with_host" else [1, 0, 0],
        work="" if not streams else "the host" if kind.name == "with_host" else "add",
        stream=2 if kind.name == "between_streams" else 1 if kind.name == "between_grids" else None,
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
    rows = ["# Messages", "", "Every message of a verdict, with sample values.", ""]
    for family, kinds in FAMILIES.items():
        rows += [f"## Findings: {family.lower()}", ""]
        for kind in kinds:
            rows += _entry(kind)
    rows += ["## Wrong outputs", ""]
    for made in map(sample_diagnosis, outputs.LOOKS):
        rows.append(f"- **{outputs.title(made)}**: {outputs.looks(made)}")
    rows += ["", "## Cases that fail", ""]
    for problem in cases.PROBLEMS:
        case = CaseResult("two tiles", "f32", "failed", problem=problem, reasons=["<reason>"], outside={"out": 4})
        rows.append(f"- **{cases.in_short(case)}**: {cases.reason(case)}")
    return "\n".join(rows).rstrip() + "\n"


def _entry(kind: FindingKind) -> Iterator[str]:
    found = sample(kind)
    for line in (
        f"### {kind.title if kind.title.startswith('tcgen05') else kind.title[:1].upper() + kind.title[1:]}",
        f"`{kind.check}`, `{kind.name}`, fails *{kind.stage.capitalize()}*",
        f"> {findings.message(found)}",
        f"Why it matters: {findings.why(found)}",
        f"Fix: {findings.fix(found)}",
    ):
        yield from (line, "")


_VALUES = {
    "at": 3.0,
    "axes": 3.0,
    "axis": 1.0,
    "by": 2.0,
    "column": 32.0,
    "count": 3.0,
    "element": 100.0,
    "elements": 240.0,
    "factor": 0.125,
    "high": 4.0,
    "holds": 5.0,
    "infinite": 2.0,
    "low": 0.5,
    "nan": 1.0,
    "norm": 3e-4,
    "of": 8.0,
    "row": 2.0,
    "rows": 4.0,
    "step": 1.0,
    "value": 1.0,
}
"""Sample values for the numbers in diagnoses, by name."""

_INPUT = {"nan_of_input": "k_cache", "wrong_at_large": "positions", "wrong_at_small": "lengths", "moved": "k_cache"}


def sample_diagnosis(kind: str) -> Diagnosis:
    """Return a diagnosis of a kind with sample values."""
    return Diagnosis(kind, dict(_VALUES), [1, 2], _INPUT.get(kind, "weight"))
