"""The lessons of the course, for the tests of notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("lessons/*/lesson.ipynb"))
NAMES = [path.parent.name for path in NOTEBOOKS]


def cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    """Return the cells of one kind."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def texts(output: dict[str, Any]) -> list[str]:
    """Return the text that an output shows."""
    found = [output.get("text", ""), output.get("evalue", ""), output.get("traceback", "")]
    found += [value for mime, value in output.get("data", {}).items() if mime.startswith("text/")]
    return ["".join(text) for text in found]
