"""Text to tokens and back, by the tokenizers library: a tokenizer.json says everything about one."""

from __future__ import annotations

from pathlib import Path

import tokenizers


class Tokenizer:
    """The tokenizer of a checkpoint folder."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(file))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without special ones around it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """The text of some tokens."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))
