"""Expands the macros of a file, so that calls inside macros are found.

It expands only macros that the file defines exactly once, above their use, outside of ``#if``, and without ``#`` and
``##``. Uses of other macros remain. A token that comes from a macro gets the position of the macro's use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from grader.frontend.tokens import DEPTH, Macro, Source, Token, Tokens, closing

_MOST = 500_000
"""The maximum work of expanding a file's macros: the tokens of arguments and bodies, times the depth of the macros."""


class _TooMany(Exception):
    """The expansion of a file's macros exceeds the limit."""


class Expander:
    """Expands the macros of a file, in all of its tokens or in a part of them."""

    def __init__(self, source: Source) -> None:
        self._macros = _simple(source)
        self._left = _MOST

    def expanded(self, tokens: Sequence[Token], parameters: Collection[str] = ()) -> Sequence[Token]:
        """Return the tokens after macro expansion, or the same tokens if the expansion exceeds the limit of a file.

        If the tokens are the body of a macro, its ``parameters`` remain.
        """
        if not self._macros:
            return tokens
        try:
            return Tokens(self._expand(tokens, set(parameters)))
        except (_TooMany, RecursionError):
            return tokens

    def _spend(self, tokens: int, inside: set[str]) -> None:
        self._left -= tokens * (1 + len(inside))
        if self._left < 0:
            raise _TooMany

    def _expand(self, tokens: Sequence[Token], inside: set[str]) -> Iterator[Token]:
        """Yield the tokens with macros expanded.

        ``inside`` are the macros that are being expanded; C does not expand them again inside their own expansion. The
        set changes during the expansion and is restored at its end.
        """
        i = 0
        while i < len(tokens):
            token = tokens[i]
            macro = self._macros.get(token.text) if token.kind == "word" and token.text not in inside else None
            if macro is None or macro.start > token.start:
                yield token
                i += 1
                continue
            arguments: list[list[Token]] = []
            end = i + 1
            if macro.parameters is not None:
                close = closing(tokens, end) if end < len(tokens) and tokens[end].text == "(" else None
                arguments = _split(tokens[end + 1 : close]) if close is not None else []
                if close is None or len(arguments) != max(1, len(macro.parameters)):
                    yield token
                    i += 1
                    continue
                end = close + 1
                self._spend(end - i, inside)
            given = {name: list(self._expand(a, inside)) for name, a in zip(macro.parameters or (), arguments)}
            # Long string literals count more.
            work = sum(len(given[w.text]) if w.text in given else 1 + len(w.text) // 4 for w in macro.body)
            self._spend(work, inside)
            body: list[Token] = []
            for word, place in zip(macro.body, _places(macro.body, token.start)):
                body += given.get(word.text, [Token(word.kind, word.text, place, place + 1)])
            inside.add(macro.name)
            yield from self._expand(Tokens(body), inside)
            inside.discard(macro.name)
            i = end


def macros_with(source: Source, word: str) -> set[str]:
    """Return the macros whose bodies contain a word, directly or through other macros."""
    users: dict[str, list[str]] = {}
    for macro in source.macros:
        for used in {token.text for token in macro.body}:
            users.setdefault(used, []).append(macro.name)
    found: set[str] = set()
    waiting = [word]
    while waiting:
        for name in users.pop(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def unexpanded_with(source: Source, word: str) -> set[str]:
    """Return the macros that contain a word and cannot be expanded here."""
    return macros_with(source, word) - set(_simple(source))


def _simple(source: Source) -> dict[str, Macro]:
    """Return the macros that can be expanded, by name."""
    names = Counter(macro.name for macro in source.macros)
    undefined = {d.text.split()[0] for d in source.directives if d.name == "undef" and d.text.split()}
    depth, conditional = 0, set()
    for directive in source.directives:
        depth += directive.name in ("if", "ifdef", "ifndef")
        depth -= directive.name == "endif"
        if depth > 0:
            conditional.add(directive.start)
    return {
        macro.name: macro
        for macro in source.macros
        if names[macro.name] == 1
        and macro.name not in undefined
        and macro.start not in conditional
        and not any(token.text in ("#", "##") for token in macro.body)
        and "..." not in (macro.parameters or ())
    }


def _places(body: Sequence[Token], start: int) -> Iterator[int]:
    """Yield a position for each token of a macro's body: the position where the macro is used.

    The three ``<`` of a launch are recognized by their consecutive positions. Equal adjacent marks therefore get
    consecutive positions.
    """
    beside = 0
    for before, token in zip([None, *body], body):
        adjacent = before is not None and before.text == token.text and before.end == token.start
        beside = beside + 1 if adjacent else 0
        yield start + beside


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split arguments at commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += DEPTH.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
