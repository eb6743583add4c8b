"""Convert text to tokens and back with the tokenizers library."""

from __future__ import annotations

from pathlib import Path

import tokenizers


class Tokenizer:
    """The tokenizer of a checkpoint folder."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(file))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special tokens around it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """Return the text of some tokens."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))
