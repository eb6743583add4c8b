"""The base class of all records of a verdict. It cleans the texts of a record, and limits their length.

Texts may come from a submission: a clean text is safe to print and to store.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta

Line = Annotated[str, Meta(max_length=1_000)]
"""A short text, such as a name, a path or a sentence."""
Text = Annotated[str, Meta(max_length=20_000)]
"""A text of several lines, such as the output of a compiler or a kernel."""


class Record(msgspec.Struct):
    """A part of a verdict. Its texts are cleaned and truncated when they are set."""

    def __post_init__(self) -> None:
        for name, most in _limits(type(self)).items():
            msgspec.structs.force_setattr(self, name, _cleaned(getattr(self, name), most))

    def __setattr__(self, name: str, value: Any) -> None:
        most = _limits(type(self)).get(name)
        super().__setattr__(name, value if most is None else _cleaned(value, most))


@functools.cache
def _limits(kind: type[Record]) -> dict[str, int]:
    """Return the maximum length for each field of a record type that is a text, or a list or dict of texts."""
    # msgspec.inspect would also read the types of all nested records: 10 ms in a verdict.
    limits = {field.name: _limit(field.type) for field in msgspec.structs.fields(kind)}
    return {name: most for name, most in limits.items() if most is not None}


def _limit(kind: Any) -> int | None:
    origin, arguments = get_origin(kind), get_args(kind)
    plain, *metas = arguments if origin is Annotated else (kind,)
    if plain is str:
        assert metas and metas[0].max_length, "a text field of a record must be a Line or a Text"
        return metas[0].max_length
    return _limit(arguments[-1]) if origin in (list, dict) else None


def clean(text: str, most: int) -> str:
    """Return a text without control characters and invisible or invalid characters, and with a limited length.

    Line breaks and tabs are kept; other Unicode spaces become ordinary spaces. Control characters, bidirectional marks
    and lone surrogates become U+FFFD. A text longer than ``most`` characters is truncated and ends in "...".
    """
    if len(text) > most:
        text = text[: most - 3] + "..."
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else " " if c.isspace() and c > "\x7f" else "\ufffd" for c in text
    )


def _cleaned(value: Any, most: int) -> Any:
    if isinstance(value, list):
        return [clean(item, most) for item in value]
    if isinstance(value, dict):
        return {name: clean(item, most) for name, item in value.items()}
    return clean(value, most)
