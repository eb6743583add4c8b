"""A part of a CUDA file that is translated by itself, and the edits of its text."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.frontend.edits import Edit
from grader.frontend.limits import MOST_TRANSLATED
from grader.frontend.own_names import PREFIX, own_names
from grader.frontend.tokens import Source, Token

ON_HOST = "::sim::host_name("


@dataclass
class Region:
    """A sequence of tokens that is translated separately: the file, or the body of one ``#define``."""

    source: Source
    tokens: Sequence[Token]
    on_host: Mapping[int, int]
    """The positions at which host code names a device variable (``host_names.py``)."""
    alone: bool
    """True for a kernel file of the course, false for a file of a whole program."""
    macro: str = ""
    parameters: frozenset[str] = frozenset()
    edits: list[Edit] = field(default_factory=list)

    @functools.cached_property
    def own(self) -> frozenset[int]:
        """The positions of the file's own names that the simulator also uses (``own_names.py``)."""
        return own_names(self.tokens)

    def edit(self, start: int, end: int, text: str) -> None:
        """Replace the characters ``start`` to ``end`` of the file."""
        self.source.translated += len(text)
        if self.source.translated > MOST_TRANSLATED:
            raise self.source.error(
                start, "the file becomes too large in translation", "Replace repeated code by loops or functions."
            )
        self.edits.append(Edit(start, end, text))

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace the characters ``start`` to ``end``, but keep their newlines."""
        self.edit(start, end, text + self.newlines(start, end))

    def newlines(self, start: int, end: int) -> str:
        """Return as many newlines as the text has, so that line numbers stay the same."""
        return ("\\\n" if self.macro else "\n") * self.source.text.count("\n", start, end)

    def verbatim(self, first: int, last: int) -> str:
        """Return the source text of the tokens ``first`` to ``last``, after the renames of other steps."""
        start, parts = self.tokens[first - 1].end, []
        for token in self.tokens[first:last]:
            member = token.text in ("gridDim", "blockDim") and self.source.text[start : token.start].endswith(
                (".", "->")
            )
            if self.on_host.get(token.start) == token.start:
                parts += [self.source.text[start : token.start], ON_HOST, token.text, ")"]
                start = token.end
            elif token.start in self.own or member:
                parts += [self.source.text[start : token.start], PREFIX]
                start = token.start
        return "".join([*parts, self.source.text[start : self.tokens[last].start]])

    def refuse_directives(self, start: int, end: int, what: str) -> None:
        """Raise RewriteError for a preprocessor line inside a construct that is replaced as a whole."""
        directive = None if self.macro else self.source.directive_between(start, end)
        if directive:
            raise self.source.error(
                directive,
                f"#{directive.name} inside {what} is not simulated",
                "Write the whole statement in each branch.",
            )
