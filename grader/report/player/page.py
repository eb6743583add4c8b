"""The player as a separate page, and as a frame for pages with other content."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from grader.report.player.encoding import encode, jumps, main_file
from grader.setup.files import write_file
from grader.simulator.recording import Recording
from grader.verdict.finding import Finding
from grader.verdict.record import clean

_HERE = Path(__file__).parent
MOST_BYTES = 2_000_000
"""The maximum size of a page."""
HEIGHT = 760
"""The height of the frame in pixels."""
LINES = 12
"""The number of lines of the text version."""


def title(recording: Recording) -> str:
    """Return a title: the kernel and the block."""
    return f"{recording.kernel}, block ({', '.join(map(str, recording.index))}), step by step"


def page(recording: Recording, source: str, findings: Sequence[Finding] = (), most_bytes: int = MOST_BYTES) -> str:
    """Return a self-contained HTML page of at most ``most_bytes``; ``source``: the text of the kernel file."""
    parts = {
        "title": html.escape(title(recording)),
        "style": _compact("player.css"),
        "script": _compact("player.js"),
    }
    around = sum(len(part.encode()) for part in parts.values()) + 5_000
    parts["data"] = encode(recording, clean(source, len(source)), findings, most_bytes - around).json()
    template = (_HERE / "player.html").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)


def _compact(name: str) -> str:
    """Return a file without indentation and comment lines, because a notebook stores a copy for each player."""
    lines = [line.strip() for line in (_HERE / name).read_text(encoding="utf-8").splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def save(path: str | Path, recording: Recording, source: str, findings: Sequence[Finding] = ()) -> None:
    """Write the page."""
    write_file(path, page(recording, source, findings))


def frame(recording: Recording, source: str, findings: Sequence[Finding] = (), most_bytes: int = MOST_BYTES) -> str:
    """Return the page in a sandboxed frame, and the text version."""
    # The frame's content is an HTML attribute. Escaping & and " makes it longer, so the page gets 85 % of the bytes.
    inner = page(recording, source, findings, int(most_bytes * 0.85))
    said = f"<summary>The same in words</summary>\n<pre>{html.escape(as_text(recording, findings))}</pre>"
    return framed(title(recording), inner, HEIGHT, said)


def framed(name: str, inner: str, height: int, folded: str) -> str:
    """Return a page in a sandboxed frame. ``folded``: what viewers that drop frames show in its place."""
    return (
        f'<iframe title="{html.escape(name)}" sandbox="allow-scripts" loading="lazy" '
        f'style="width:100%;box-sizing:border-box;height:{height}px;border:1px solid #8a929e;border-radius:6px" '
        f'srcdoc="{html.escape(inner)}"></iframe>\n<details>{folded}\n</details>'
    )


def as_text(recording: Recording, findings: Sequence[Finding] = ()) -> str:
    """Return the text version: how often the block executed each kind of access, by source line."""
    file = main_file(recording)
    counted: Counter[tuple[int, str, str]] = Counter()
    for event in recording.events:
        if event.file == file and event.line and event.warp >= 0:
            memory = recording.memories[event.memory] if event.memory >= 0 else None
            what = event.name if event.name else f"{memory.space} {memory.name}".rstrip() if memory else ""
            counted[event.line, event.kind, what] += 1
    rows = [f"{title(recording)}: {len(recording.events)} steps of {recording.warps} warps"]
    lines = sorted(counted)
    for line, kind, what in lines[:LINES]:
        times = counted[line, kind, what]
        rows.append(f"  line {line:4}  {times:5} x {kind.replace('_', ' ')} {what}".rstrip())
    if len(lines) > LINES:
        rows.append(f"  and {len(lines) - LINES} more")
    rows += [f"  {sentence}" for sentence, _ in jumps(recording, findings)]
    return "\n".join(rows)
