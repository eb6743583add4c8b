"""The definition of one kind of finding: its name, its payload, and every text that a report shows about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from grader.verdict.record import Record

if TYPE_CHECKING:
    from grader.verdict.finding import Finding

Check = Literal["memcheck", "initcheck", "racecheck", "synccheck", "fault", "report"]
"""The check that reports a finding: those of compute-sanitizer; ``fault``: the launch or a call failed; ``report``: the
simulator's report contradicts the outputs."""

Stage = Literal["safe", "correct", "efficient"]


class Payload(Record, tag_field="of", kw_only=True):
    """The typed facts that one kind of finding has in addition to its place.

    The simulator does not send a field with a default: the reader of the report fills it in.
    """


P = TypeVar("P", bound=Payload)

Phrase = str | Callable[["Finding"], str]
"""A text, or a function that makes it from the facts."""


@dataclass(frozen=True, kw_only=True)
class FindingKind:
    """A kind of finding.

    ``checks/report/finding_kinds.def`` lists the same kinds for the simulator; a test compares both.
    """

    name: str
    check: Check
    title: str
    """A noun phrase that a search engine knows: ``out-of-bounds access``."""
    text: Phrase
    """The clause after the title: what happened to which memory."""
    why: Phrase
    """The consequence on a GPU."""
    fix: Phrase
    """The change that removes it."""
    look: str
    """A name for its place, printed after the file and line: ``the access out of bounds``."""
    payload: type[Payload] | None = None
    sample: Any = None
    """A payload for the catalog of messages and for tests."""
    sample_access: str = ""
    """The access in the catalog: ``read``, ``operand read``, ...; empty for a kind without an access."""
    sample_other: str = ""
    """The access of the other side in the catalog."""
    other: str = ""
    """The name of the other side; empty: the other access of a race."""
    stage: Stage = "safe"
    """The stage that fails. ``correct``: the launch also ends, so the case fails."""
    has_memory: bool = False
    """True if a finding of this kind must have a memory."""
    has_other: bool = False
    """True if a finding of this kind must have another side."""
    names_places: bool = False
    """True if the text already names its lines and threads."""
    distance: int = 0
    """The distance of the threads of a race. Of several races at one place, the one with the largest distance is shown.
    """
    divergence: bool = False
    """True if threads are out of step afterwards, which causes races. Reports show it before races."""

    def __post_init__(self) -> None:
        assert (self.payload is None) == (self.sample is None), f"{self.name}: a payload needs a sample"


def said(phrase: Phrase, finding: Finding) -> str:
    """Return the text of a phrase for a finding."""
    return phrase if isinstance(phrase, str) else phrase(finding)


def payload_of(kind: type[P], finding: Finding) -> P:
    """Return the payload of a finding as its type, or raise LookupError: files of other versions may lack it."""
    if isinstance(finding.payload, kind):
        return finding.payload
    raise LookupError(f"a finding of the kind {finding.kind} without its {kind.__name__}")
