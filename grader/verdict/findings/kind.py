"""The data type for a kind of finding: its name, its payload, and all texts that reports show about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from grader.verdict.findings.sides import facts
from grader.verdict.record import Record

if TYPE_CHECKING:
    from grader.verdict.finding import Finding

Check = Literal["memcheck", "initcheck", "racecheck", "synccheck", "fault", "report"]
"""The check that reports a finding.

The first four are named after the tools of compute-sanitizer. ``fault`` means that a launch or a call failed, and
``report`` that the simulator's report contradicts the outputs.
"""

Stage = Literal["safe", "correct", "efficient"]


class Payload(Record, tag_field="of", kw_only=True):
    """The facts that one kind of finding has, in addition to the place of the fault.

    The simulator's report has the fields without a default value. The reader of the report fills in the others.
    """


P = TypeVar("P", bound=Payload)

Phrase = str | Callable[["Finding"], str]
"""A text, in which braces name one of the ``facts`` of a finding, or a function that makes the text for a finding."""


@dataclass(frozen=True, kw_only=True)
class FindingKind:
    """A kind of finding.

    ``checks/report/finding_kinds.def`` lists the same kinds for the simulator; a test compares both.
    """

    name: str
    check: Check
    title: str
    """A noun phrase that a search engine finds, such as ``out-of-bounds access``."""
    text: Phrase
    """The text after the title: what happened, to which memory, and where."""
    why: Phrase
    """The consequence of the fault on a GPU."""
    fix: Phrase
    """The change in the source code that removes the fault."""
    look: str
    """A noun phrase for the fault's place, printed after the file and line: ``the access out of bounds``."""
    sample: Any = None
    """A payload for the catalog of messages and for tests. Findings of this kind have a payload of this type."""
    sample_access: str = ""
    """The kind of access in the catalog of messages, such as ``read``; empty for a kind without an access."""
    sample_other: str = ""
    """The kind of access of the other side in the catalog of messages."""
    other: str = ""
    """A noun phrase for the other side, such as "the copy". If it is empty, the side is called the other access."""
    stage: Stage = "safe"
    """The stage that fails. It is ``correct`` if the fault ends the launch, so that the case fails."""
    has_memory: bool = False
    """True if a finding of this kind must have a memory."""
    has_other: bool = False
    """True if a finding of this kind must have another side."""
    distance: int = 0
    """The distance of the threads of a race: 1 within a warp, 2 within a block, 3 within a cluster, 4 between blocks.

    Of several races at one place, the one with the largest distance is shown.
    """
    divergence: bool = False
    """True if threads pass a barrier at different times, which causes races. Reports show such a finding before races.
    """

    @property
    def payload(self) -> type[Payload] | None:
        """The type of the payload; None if findings of this kind have none."""
        return None if self.sample is None else type(self.sample)


memcheck = partial(FindingKind, check="memcheck")
initcheck = partial(FindingKind, check="initcheck")
racecheck = partial(
    FindingKind, check="racecheck", has_memory=True, has_other=True, sample_access="read", sample_other="write"
)
synccheck = partial(FindingKind, check="synccheck")
fault = partial(FindingKind, check="fault", stage="correct")
report = partial(FindingKind, check="report")


def render(phrase: Phrase, finding: Finding) -> str:
    """Return the text of a phrase for a finding. Raise LookupError if the finding lacks a fact that the text names."""
    return phrase.format_map(facts(finding)) if isinstance(phrase, str) else phrase(finding)


def payload_of(kind: type[P], finding: Finding) -> P:
    """Return the payload of a finding, which must be of the type ``kind``.

    Raise LookupError if it is not, as in a file of another schema version.
    """
    if isinstance(finding.payload, kind):
        return finding.payload
    raise LookupError(f"the finding of the kind {finding.kind} has no payload of the type {kind.__name__}")
