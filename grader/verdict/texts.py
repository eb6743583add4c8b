"""Cleaning of texts that may come from a submission, so that they are safe to print and to write."""

from __future__ import annotations


def clean(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters without control, invisible and invalid characters.

    Line breaks and tabs stay; other Unicode spaces become plain ones. Control characters, bidirectional marks and lone
    surrogates become U+FFFD. A truncated text ends in "...".
    """
    if len(text) > most:
        text = text[: most - 3] + "..."
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else " " if c.isspace() and c > "\x7f" else "\ufffd" for c in text
    )
