"""Cleans texts that may come from a submission, so that they are safe to print and to store."""

from __future__ import annotations


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
