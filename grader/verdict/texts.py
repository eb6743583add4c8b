"""The one place where a text that may come from a submission is made safe to show and to write."""

from __future__ import annotations


def clean(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters without control characters, invisible ones and invalid ones.

    Line breaks and tabs stay, spaces of other alphabets become plain ones. Control characters, marks that turn the
    direction of writing, and halves of characters become U+FFFD. What is cut ends in "...".
    """
    if len(text) > most:
        text = text[: most - 3] + "..."
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else " " if c.isspace() and c > "\x7f" else "\ufffd" for c in text
    )
