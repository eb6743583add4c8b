"""Describes findings in words: in one line, or in several with the source, the reason and the fix."""

from __future__ import annotations

from collections.abc import Sequence

from grader.verdict.finding import Finding, Side
from grader.verdict.findings import KINDS, FindingKind
from grader.verdict.findings.kind import render
from grader.verdict.findings.sides import an_access, place, where


def _kind(finding: Finding) -> FindingKind:
    """Return the kind of a finding. A file of another schema version may have a kind that is unknown here."""
    unknown = finding.kind.replace("_", " ")
    return KINDS.get(finding.kind) or FindingKind(
        name=finding.kind, check="report", title=unknown, text="{where}", why="", fix="", look="the fault"
    )


def message(finding: Finding) -> str:
    """Return a line about a finding: its title, what happened to which memory, and where."""
    kind = _kind(finding)
    try:
        text = render(kind.text, finding)
    except LookupError:  # the file has another schema version
        return f"{kind.title}{where(finding)}"
    if text.startswith(kind.title):
        return text
    # A text may be a place only, such as " at a.cu:3".
    between = "" if text[:1] in ("", " ", ",") else " " if text.startswith("on ") else ": "
    return f"{kind.title}{between}{text}"


def why(finding: Finding) -> str:
    """Return the consequence of the fault on a GPU; empty for an unknown kind of finding."""
    return render(_kind(finding).why, finding)


def fix(finding: Finding) -> str:
    """Return how to remove the fault; empty for an unknown kind of finding."""
    return render(_kind(finding).fix, finding)


def advice(finding: Finding) -> str:
    """Return a line with the consequence of the fault and a line with the fix; empty for an unknown kind."""
    return f"Why it matters: {why(finding)}\nFix: {fix(finding)}" if finding.kind in KINDS else ""


def advice_is_new(findings: Sequence[Finding]) -> list[bool]:
    """Return for each finding whether no earlier finding has the same advice."""
    every = [advice(finding) for finding in findings]
    return [one not in every[:at] for at, one in enumerate(every)]


def other_side(finding: Finding) -> str:
    """Return a noun phrase for the other side of a finding; for a race, it describes the access."""
    if finding.other is None:
        return ""
    return _kind(finding).other or f"the other access, {an_access(finding.other)}"


def title(finding: Finding) -> str:
    """Return the title of a finding, a noun phrase such as ``out-of-bounds access``."""
    return _kind(finding).title


def look(finding: Finding) -> str:
    """Return a noun phrase for the place of the fault: ``the access out of bounds``."""
    return _kind(finding).look


HIDES = "Further findings that this one causes are left out."


def text(finding: Finding, advised: bool = True) -> str:
    """Return a description of a finding over several lines.

    They show the source line with a caret, the other side, the consequence and the fix (if ``advised``).
    """
    rows = [f"{finding.check}: {message(finding)}", *excerpt(finding)]
    if finding.other and finding.other.source_line.strip():
        rows += [f"  {other_side(finding)} ({place(finding.other)}):", *excerpt(finding.other)]
    if finding.count > 1:
        rows.append(f"  seen {finding.count:,} times")
    if finding.hides:
        rows.append(f"  {HIDES}")
    if advised:
        rows += [f"  {line}" for line in advice(finding).splitlines()]
    return "\n".join(rows)


def excerpt(side: Side) -> list[str]:
    """Return the source line with its number, and a line with a caret under the column if the column is known."""
    source = side.source_line
    if not source.strip():
        return []
    rows = [f"  {side.line:>5} | {source.expandtabs(4).rstrip()}"]
    if side.column > 0:
        rows.append(f"        | {' ' * len(source[: side.column - 1].expandtabs(4))}^")
    return rows


def several(findings: Sequence[Finding], most: int) -> str:
    """Return descriptions of the first ``most`` findings, and the number of the others."""
    rows = [text(finding, news) for finding, news in zip(findings[:most], advice_is_new(findings))]
    if len(findings) > most:
        rows.append(f"... and {len(findings) - most} more")
    return "\n".join(rows)
