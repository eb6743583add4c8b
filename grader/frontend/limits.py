"""Limits of a kernel file, so that the front end reads even a hostile file in time and memory proportional to its size.

Most of the front end reads each token once. Code that may read tokens again calls ``spend`` with their number. A file
for which this sum is too large, or whose brackets are nested too deeply, is rejected with an error at a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.frontend.tokens import DEPTH, Source, Token

MOST_BYTES = 1 << 20
"""The maximum size of a kernel file."""
MOST_TOKENS = 200_000
"""The maximum number of tokens of a kernel file, including those of its macros."""
MOST_INCLUDES = 64
MOST_LEVELS = 256
"""The maximum nesting depth of brackets and of ``#if``."""
MOST_TRANSLATED = 16 << 20
"""The maximum number of characters that the front end may insert into a file."""
_SPLICED_WORD = re.compile(r"(?<=\w)\\[ \t\f\v]*\r?\n(?=[\w\\])")
_LOOKS_PER_TOKEN = 16
_LOOKS_AT_LEAST = 100_000


def check_limits(source: Source) -> None:
    """Raise RewriteError if a file has too many tokens or includes, or is nested too deeply."""
    count = sum(map(len, source.sequences))
    if count > MOST_TOKENS:
        last = source.tokens[-1] if source.tokens else source.macros[-1].body[-1]
        raise source.error(
            last,
            f"the file has {count} tokens; a kernel file may have {MOST_TOKENS}",
            "Pass tables as inputs, and write repeated code as a loop.",
        )
    if len(source.includes) > MOST_INCLUDES:
        raise source.error(
            source.includes[MOST_INCLUDES],
            f"the file has more than {MOST_INCLUDES} #include lines",
            "Include each header once.",
        )
    _check_splices(source)
    for tokens in source.sequences:
        _check_depth(source, tokens)
    depth = 0
    for directive in source.directives:
        depth += {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}.get(directive.name, 0)
        if depth > MOST_LEVELS:
            raise source.error(directive, f"#if is nested deeper than {MOST_LEVELS} levels", "Use fewer levels.")


def _check_splices(source: Source) -> None:
    """Raise RewriteError for a word that a backslash splits over two lines.

    The tokenizer reads it as two words, but the compiler as one.
    """
    spliced = [match.start() for match in _SPLICED_WORD.finditer(source.text)]
    if not spliced:
        return
    ends = {token.end for each in source.sequences for token in each if token.kind in ("word", "number")}
    ends |= {source.text.index(macro.name, macro.start) + len(macro.name) for macro in source.macros}
    for start in spliced:
        directive = source.directive_at(start)
        if start in ends or (directive and directive.name != "define"):
            message = "a backslash splits a word over two lines"
            raise source.error(start, message, "Write each name or number on one line.")


def _check_depth(source: Source, tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += DEPTH.get(token.text, 0)
        if depth > MOST_LEVELS:
            raise source.error(
                token,
                f"brackets are nested deeper than {MOST_LEVELS} levels",
                "Move parts of the code into separate functions or variables.",
            )


def spend(source: Source, token: Token, looks: int) -> None:
    """Add ``looks`` token reads to the file's count of repeated reads. Raise RewriteError if there are too many."""
    source.looks += looks
    if source.looks > max(_LOOKS_AT_LEAST, _LOOKS_PER_TOKEN * len(source.tokens)):
        raise source.error(
            token,
            "reading the file takes too long here: it has too many long declarations or functions with the same name",
            "Split long declarations, and give different functions different names.",
        )
