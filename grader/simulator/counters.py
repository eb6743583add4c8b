"""The counters of ``checks/counting/counters.def``: their names by kind, and what each means.

``python -m grader.simulator.counters`` prints them. Counters of the kind ``SITE`` belong to one place in the code.
Those of all other kinds are totals of a report.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

FILE = Path(__file__).parent / "checks" / "counting" / "counters.def"
_ENTRY = re.compile(r'^([A-Z_]+)\(([^"]*?),\s*((?:"[^"]*"\s*)+)\)$', re.MULTILINE)


def _read(text: str) -> dict[str, dict[str, str]]:
    """Return, for each kind of entry, the description of each counter by its name."""
    found: dict[str, dict[str, str]] = {}
    for kind, arguments, texts in _ENTRY.findall(text):
        name = arguments.split(", ")[kind == "SITE_COUNTER"]
        found.setdefault(kind.removesuffix("_COUNTER"), {})[name] = "".join(re.findall(r'"([^"]*)"', texts))
    return found


_ENTRIES = _read(FILE.read_text(encoding="utf-8"))
SITE, KERNEL, RUN, LINE, OPERATION, TOTAL = (
    _ENTRIES[kind] for kind in ("SITE", "KERNEL", "RUN", "LINE", "OPERATION", "TOTAL")
)
TOTALS = {**LINE, **KERNEL, **RUN, **TOTAL, **OPERATION}
"""The meaning of every total of a report, by name. Those in ``OPERATION`` need a kernel built to count operations."""


def as_text() -> str:
    """Return the names and meanings of all totals."""
    width = max(map(len, TOTALS)) + 2
    rows = (textwrap.fill(says, 120, initial_indent=f"{name:{width}}", subsequent_indent=" " * width)
            for name, says in TOTALS.items())  # fmt: skip
    return "\n".join(rows)


if __name__ == "__main__":
    print(as_text())
