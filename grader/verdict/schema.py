"""Write the JSON schema of results.json from the record types: ``python -m grader.verdict.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from grader.verdict.facts import SCHEMA_VERSION, WORDED, Verdict

FILE = Path(__file__).with_name("results.schema.json")
_NUMBER = {"type": ["number", "string"], "pattern": "^(nan|inf|-inf)$"}
"""The schema of a number. The pattern is for the texts that replace NaN and infinities."""


def schema() -> dict[str, Any]:
    """Return the JSON schema of a results.json."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": FILE.name,
        "title": f"The verdict of grader check, version {SCHEMA_VERSION}",
    }
    described: dict[str, Any] = _with_texts_for_numbers(msgspec.json.schema(Verdict))
    for name in WORDED:
        text = {"type": "string", "description": "The text that reports show about it, over several lines."}
        described["$defs"][name]["properties"]["text"] = text
    return head | described


def text() -> str:
    """Return the content of results.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


def _with_texts_for_numbers(part: Any) -> Any:
    if isinstance(part, dict):
        found = {name: _with_texts_for_numbers(item) for name, item in part.items()}
        return found | _NUMBER if part.get("type") == "number" else found
    return [_with_texts_for_numbers(item) for item in part] if isinstance(part, list) else part


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
