"""Types and parser of the answers that the child process sends.

The kernel runs in that process and could send any bytes. ``parse`` returns one of the types below, or raises
``Malformed`` for an answer that the runner itself never sends. So a forged answer is not mistaken for a success.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.verdict import record

MOST_BYTES = 16384
"""The maximum size of an answer, as in ``source/wire.h``."""

MOST_PRINTED = 4000
"""The number of characters after which a text of the child is cut."""

REMARKS = ("launch", "run", "memory", "changed", "setup", "fetch", "allocated")


@dataclass(frozen=True)
class Ok:
    """An answer to a request that succeeded and has no result."""


@dataclass(frozen=True)
class Refused:
    """An answer to a request that failed, for example because a library does not load."""

    reason: str


@dataclass(frozen=True)
class Done:
    """An answer to a call whose launcher has returned."""

    code: int
    """The CUDA error, 0 for none."""
    remarks: tuple[tuple[str, str], ...] = ()
    """Pairs of a kind (one of ``REMARKS``) and a text about the call."""
    report_cut: bool = False
    """True if the simulator could not write its whole report. What was written may be incomplete or forged."""

    def said(self, *kinds: str) -> list[str]:
        """Return the texts of all remarks of the given kinds, in the order of ``kinds``."""
        return [text for wanted in kinds for kind, text in self.remarks if kind == wanted]


@dataclass(frozen=True)
class Writers:
    """The answer to ``writer``: for each requested offset, the block and thread that wrote it, or None."""

    places: tuple[tuple[list[int], list[int]] | None, ...]


@dataclass(frozen=True)
class Ended:
    """A child that ended or was stopped before it sent a valid answer."""

    problem: str
    """The reason: crash, timeout, exit, output (printed too much), oom (out of memory) or reply (invalid answer)."""
    text: str
    """A description of how the child ended."""


Answer = Ok | Refused | Done | Writers | Ended


def why_failed(answer: Answer) -> str:
    """Return the reason why a launcher failed; empty if it succeeded."""
    match answer:
        case Done():
            reasons = answer.said("launch", "run", "memory", "setup", "fetch")
            return "; ".join(reasons) or (f"CUDA error {answer.code}" if answer.code else "")
        case Refused():
            return answer.reason
        case Ended():
            return answer.text
    return "the child process did not answer the request"


class Malformed(ValueError):
    """The error for an answer that the runner never sends."""


_VALID = {
    "prepare": (Ok, Refused),
    "load": (Ok, Refused),
    "call": (Done, Refused),
    "time": (Done, Refused),
    "run": (Done, Refused),
    "awake": (Ok,),
    "release": (Ok,),
    "writer": (Writers,),
}
"""The types of answers that are valid for each request."""


def parse(packet: bytes, request: str) -> Answer:
    """Parse the answer to a request. ``request`` is the request's first word."""
    if len(packet) > MOST_BYTES:
        raise Malformed(f"more than {MOST_BYTES} bytes")
    try:
        text = packet.decode()
    except UnicodeDecodeError as error:
        raise Malformed("bytes that are not text") from error
    answer = _parse(text)
    if not isinstance(answer, _VALID[request]):
        raise Malformed(f"{_shown(text)} to the request '{request}'")
    return answer


def _parse(text: str) -> Answer:
    first, _, rest = text.partition("\n")
    if text == "ok":
        return Ok()
    if text.startswith("error "):
        return Refused(clean(text.removeprefix("error ")).strip() or "no reason given")
    if match := re.fullmatch(r"done (-?[0-9]{1,10})", first):
        remarks = rest.splitlines()
        cut = "remark report" in remarks
        return Done(int(match[1]), tuple(_remark(line) for line in remarks if line != "remark report"), cut)
    if first == "writer":
        return Writers(tuple(_writer(line) for line in rest.splitlines()))
    raise Malformed(_shown(text))


def _remark(line: str) -> tuple[str, str]:
    match = re.fullmatch(rf"remark ({'|'.join(REMARKS)}) (.*)", line)
    if match is None or (match[1] == "allocated" and not re.fullmatch(r"[0-9]{1,15}", match[2])):
        raise Malformed(_shown(line))
    return match[1], clean(match[2])


def _writer(line: str) -> tuple[list[int], list[int]] | None:
    if line == "unknown":
        return None
    if not re.fullmatch(r"[0-9]{1,10}( [0-9]{1,10}){5}", line):
        raise Malformed(_shown(line))
    numbers = [int(word) for word in line.split(" ")]
    return numbers[:3], numbers[3:]


def parse_times(report: bytes) -> list[float]:
    """Parse the report of a ``time`` request. Return the time of each run in microseconds."""
    times = []
    for line in report.split():
        if not re.fullmatch(rb"-?[0-9]{1,15}\.[0-9]{3}", line):
            raise Malformed(_shown(line.decode(errors="replace")))
        times.append(float(line))
    return times


def _shown(text: str) -> str:
    return ascii(text[:40] + ("..." if len(text) > 40 else ""))


def clean(text: str, most: int = MOST_PRINTED) -> str:
    """Remove control characters from a text of the child, and shorten it, so that it is safe in a terminal."""
    kept = record.clean(text[:most], most)
    return kept + "\n... (more was printed)" if len(text) > most else kept
