"""Converts records to JSON and back with msgspec.

JSON cannot represent NaN and infinities. They are written as the texts "nan", "inf" and "-inf". When a file is read,
msgspec converts such a text back if the field's type is a number (``strict=False``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from grader.setup.errors import GraderError
from grader.verdict.record import Record

Kind = TypeVar("Kind", bound=Record)


def plain(fact: Record) -> dict[str, Any]:
    """Convert a record to plain JSON values."""
    found: dict[str, Any] = _finite(msgspec.to_builtins(fact))
    return found


def decode(kind: type[Kind], data: Mapping[str, Any], where: str = "this") -> Kind:
    """Create a record from the result of ``plain``. Members that this version does not know are ignored."""
    try:
        return msgspec.convert(data, kind, strict=False)
    except msgspec.ValidationError as error:
        raise GraderError(f"{where} is not a results.json: {error}") from error


def check_version(data: Mapping[str, Any], known: str) -> None:
    """Raise GraderError if code for the schema version ``known`` cannot read this data."""
    version = str(data.get("schema_version", ""))
    if version.split(".")[0] != known.split(".")[0]:
        raise GraderError(
            f"results of schema version {version or 'unknown'}; this grader reads {known}",
            "Grade the file again with this grader.",
        )


def read(path: str | Path) -> dict[str, Any]:
    """Read a file that contains a JSON object."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise GraderError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise GraderError(f"{path} is not a results.json: {error}") from error
    if not isinstance(data, dict):
        raise GraderError(f"{path} is not a results.json: it holds no object")
    return data


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
