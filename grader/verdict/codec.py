"""Dataclasses as what JSON holds, and back."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any

_TEXT_OF = {math.inf: "inf", -math.inf: "-inf"}


def plain(value: Any) -> Any:
    """Only what JSON holds: non-finite numbers become texts, tuples lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return _TEXT_OF.get(value, "nan")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def rebuilt(kind: Any, value: Any) -> Any:
    """The inverse of ``plain`` for a dataclass and the types of its fields."""
    if kind is float and isinstance(value, (str, int)) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        known = {f.name for f in dataclasses.fields(kind)}
        return kind(**{name: rebuilt(hints[name], item) for name, item in value.items() if name in known})
    origin = typing.get_origin(kind)
    if origin is list and isinstance(value, list):
        return [rebuilt(typing.get_args(kind)[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: rebuilt(typing.get_args(kind)[1], item) for key, item in value.items()}
    if origin in (typing.Union, types.UnionType):
        inner = [t for t in typing.get_args(kind) if t is not type(None)]
        return None if value is None else rebuilt(inner[0], value)
    return value
