"""Wrong kernels proposed from a solution, each with one edit that resembles a realistic mistake.

Each function of ``OPERATORS`` finds the places for one kind of mistake. An edit may be harmless: ``grader dev wrong``
runs the exercise's cases to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import structs

from grader.course.authoring.mistakes import Variant
from grader.frontend.tokens import Source, Token, Tokens, closing

LONGEST = 50
"""The maximum number of characters of code in a mistake's name."""


@dataclass(frozen=True)
class Edit:
    """A replacement of the characters from ``start`` to ``end``."""

    name: str
    start: int
    end: int
    new: str


def propose(text: str, each: int) -> list[Variant]:
    """Return at most ``each`` mutants of a kernel file by each operator, without duplicates.

    What a mutant replaces is whole lines, which occur once in the file.
    """
    source = Source(text)
    found: dict[str, Variant] = {}
    for operator in OPERATORS:
        mutants = (_mutant(text, edit) for edit in operator(source))
        new = (m for m in mutants if text.replace(m.find, m.replace) not in found)
        for mutant in islice(new, each):
            found[text.replace(mutant.find, mutant.replace)] = mutant
    names: dict[str, int] = {}
    return [structs.replace(mutant, name=_numbered(mutant.name, names)) for mutant in found.values()]


def _numbered(name: str, names: dict[str, int]) -> str:
    """Append a number to a name that an earlier mutant has."""
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name} (place {names[name]})"


def _mutant(text: str, edit: Edit) -> Variant:
    """Return a mutant whose ``find`` is whole lines. Preceding lines are added until the text is unique."""
    first = text.rfind("\n", 0, edit.start) + 1
    last = text.find("\n", edit.end)
    last = len(text) if last < 0 else last
    while text.count(text[first:last]) > 1 and first:
        first = text.rfind("\n", 0, first - 1) + 1
    code = text[first:last].lstrip()
    first = last - len(code) if text.count(code) == 1 else first
    new = text[first : edit.start] + edit.new + text[edit.end : last]
    return Variant(name=edit.name, find=text[first:last], replace=new)


def _conditions(source: Source) -> Iterator[tuple[str, int, int]]:
    """Yield each ``if`` and ``for`` with the token indices of its opening and closing bracket."""
    for i, token in enumerate(source.tokens):
        if token.text in ("if", "for") and token.kind == "word":
            end = closing(source.tokens, i + 1)
            if end is not None:
                yield token.text, i + 1, end


def _code(source: Source, first: Token, last: Token, edits: dict[int, str] | None = None) -> str:
    """Return the code from token ``first`` to ``last`` as one short line. ``edits``: new texts by token position."""
    text = source.text
    for start, new in sorted((edits or {}).items(), reverse=True):
        old = next(token for token in source.tokens if token.start == start)
        text = text[: old.start] + new + text[old.end :]
    end = last.end + len(text) - len(source.text)
    line = " ".join(text[first.start : end].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _compares(tokens: Tokens, i: int) -> bool:
    """Return whether a ``<`` or ``>=`` is a comparison, rather than a shift or the start of template arguments."""
    near = {tokens[i - 1].text, *(token.text for token in tokens[i + 1 : i + 4])}
    return not tokens[i - 1].text.endswith("_cast") and not (tokens[i].text == "<" and near & {"<", ">"})


def _is(tokens: Tokens, i: int, text: str) -> bool:
    """Return whether the two-character operator ``text``, such as ``+=``, begins at a token."""
    return tokens[i].text + tokens[i + 1].text == text and tokens[i].end == tokens[i + 1].start


def _statements(source: Source) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first token of each simple statement and of its semicolon."""
    tokens, start = source.tokens, 0
    for i, token in enumerate(tokens):
        if token.text in ("{", "}") or (token.text == ")" and _ends_head(tokens, i)):
            start = i + 1
        elif token.text == ";":
            if start < i and not _in_brackets(tokens, start, i):
                yield start, i
            start = i + 1


def _ends_head(tokens: Tokens, i: int) -> bool:
    """Return whether a bracket closes the head of an ``if``, a ``for`` or a ``while``."""
    opened = tokens.partners[i]
    return opened > 0 and tokens[opened - 1].text in ("if", "for", "while")


def _in_brackets(tokens: Tokens, start: int, end: int) -> bool:
    """Return whether the tokens are part of the head of a ``for`` loop, not a statement."""
    depth = 0
    for token in tokens[start:end]:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
    return depth != 0 or tokens[start - 1].text == "(" or any(t.text == "for" for t in tokens[start:end])


def _removed(source: Source, start: int, end: int, name: str) -> Edit:
    """Return the edit that removes a statement. If it is the body of an ``if`` or a loop, ``;`` takes its place."""
    tokens = source.tokens
    alone = start == 0 or tokens[start - 1].text in (";", "{", "}")
    comment = re.compile(r"[ \t]*//[^\n]*").match(source.text, tokens[end].end)
    return Edit(name, tokens[start].start, comment.end() if comment else tokens[end].end, "" if alone else ";")


def guards(source: Source) -> Iterator[Edit]:
    """Propose guards that let one index too many pass: ``<`` becomes ``<=``, and ``>=`` becomes ``>``."""
    yield from _shifted(source, "if", "guard off by one", {"<": "<=", ">=": ">"})


def loop_bounds(source: Source) -> Iterator[Edit]:
    """Propose loops that run once too often: ``<`` becomes ``<=``."""
    yield from _shifted(source, "for", "one iteration too many", {"<": "<="})


def _shifted(source: Source, word: str, name: str, changes: dict[str, str]) -> Iterator[Edit]:
    tokens = source.tokens
    for found, opened, closed in _conditions(source):
        for i in range(opened + 1, closed):
            new = changes.get(tokens[i].text)
            if found == word and new and tokens[i].kind == "mark" and _compares(tokens, i):
                first, last = _around(tokens, i, opened, closed)
                code = _code(source, tokens[first], tokens[last], {tokens[i].start: new})
                yield Edit(f"{name}: {code}", tokens[i].start, tokens[i].end, new)


def _around(tokens: Tokens, i: int, opened: int, closed: int) -> tuple[int, int]:
    """Return the first and the last token of the comparison at ``i``."""
    stops = (";", "&&", "||", ",")
    first, last = i, i
    while first - 1 > opened and tokens[first - 1].text not in stops:
        first = max(tokens.partners[first - 1], opened + 1) if tokens[first - 1].text in (")", "]") else first - 1
    while last + 1 < closed and tokens[last + 1].text not in stops:
        last = tokens.partners[last + 1] if tokens[last + 1].text in ("(", "[") else last + 1
    return first, last


def strides(source: Source) -> Iterator[Edit]:
    """Propose loops that advance by twice the stride, and indices with ``stride + 1`` instead of ``stride``."""
    tokens = source.tokens
    for found, opened, closed in _conditions(source):
        for i in range(opened + 1, closed):
            if found == "for" and _is(tokens, i, "+="):
                old = source.text[tokens[i + 2].start : tokens[closed - 1].end]
                name = f"twice the stride: {_code(source, tokens[i - 1], tokens[closed - 1])}"
                twice = f"2 * {old}" if i + 3 == closed else f"2 * ({old})"
                yield Edit(name, tokens[i + 2].start, tokens[closed - 1].end, twice)
    for i, token in enumerate(tokens[:-1]):
        end = closing(tokens, i) if token.text == "[" else None
        for j in range(i + 2, (end or i) - 1):
            if tokens[j].text == "*" and tokens[j + 1].kind == "word" and tokens[j + 2].text in ("+", "]", ")"):
                stride = tokens[j + 1]
                name = f"wrong stride in an index: {stride.text} + 1 instead of {stride.text}"
                yield Edit(name, stride.start, stride.end, f"({stride.text} + 1)")


_WAITS = re.compile(r"(?<!a)sync|fence|wait", re.IGNORECASE)


def barriers(source: Source) -> Iterator[Edit]:
    """Propose to remove each barrier, fence and wait."""
    tokens = source.tokens
    for start, end in _statements(source):
        opened = tokens.partners[end - 1] if tokens[end - 1].text == ")" else -1
        called = tokens[opened - 1].text if opened > start else ""
        plain = all(t.text == "::" or t.kind == "word" for t in tokens[start:opened])
        shuffles = "shfl" in called or "=" in [t.text for t in tokens[start:end]]
        if plain and not shuffles and tokens[start].text != "return" and _WAITS.search(called):
            yield _removed(source, start, end, f"no {called}(){_before(source, start)}")


def _before(source: Source, start: int) -> str:
    """Return " after " and the preceding line of code; empty if the preceding token does not end a statement."""
    if start == 0 or source.tokens[start - 1].text != ";":
        return ""
    previous = source.line_text(source.line(source.tokens[start - 1].start)).split("//")[0].strip()
    return f" after {previous[: LONGEST - 3] + '...' if len(previous) > LONGEST else previous}"


def rescales(source: Source) -> Iterator[Edit]:
    """Propose to remove each rescaling: a statement ``sum *= ...``, or a factor ``* exp(...)``."""
    tokens = source.tokens
    for start, end in _statements(source):
        if any(_is(tokens, i, "*=") for i in range(start, end)):
            yield _removed(
                source, start, end, f"a value is not rescaled: {_code(source, tokens[start], tokens[end - 1])}"
            )
    for i, token in enumerate(tokens[:-2]):
        if token.text == "*" and re.fullmatch(r"(__)?exp2?f?", tokens[i + 1].text):
            end_of_call = closing(tokens, i + 2)
            if end_of_call is not None:
                name = f"a value is not rescaled by {_code(source, tokens[i + 1], tokens[end_of_call])}"
                yield Edit(name, tokens[i - 1].end, tokens[end_of_call].end, "")


def accumulators(source: Source) -> Iterator[Edit]:
    """Propose float accumulators that are rounded to half after each addition."""
    if not any("cuda_fp16" in include.name or include.name.startswith("llmk/") for include in source.includes):
        return
    tokens = source.tokens
    floats = {tokens[i + 1].text for i, token in enumerate(tokens[:-1]) if token.text == "float"}
    for start, end in _statements(source):
        adds = next((i for i in range(start, end) if _is(tokens, i, "+=")), None)
        if adds is not None and tokens[start].text in floats:
            into = source.text[tokens[start].start : tokens[adds - 1].end]
            term = source.text[tokens[adds + 2].start : tokens[end - 1].end]
            new = f"{into} = __half2float(__float2half({into} + ({term})))"
            yield Edit(f"{into} is accumulated in half", tokens[start].start, tokens[end - 1].end, new)


def tails(source: Source) -> Iterator[Edit]:
    """Propose vectorized accesses without a test of the size, and tail loops that never run."""
    tokens = source.tokens
    for i, token in enumerate(tokens[:-3]):
        if token.text == "%" and tokens[i + 2].text == "==" and tokens[i + 3].text == "0":
            name = f"vectorized for every size, without the test {_code(source, tokens[i - 1], tokens[i + 3])}"
            yield Edit(name, tokens[i + 2].start, tokens[i + 2].end, ">=")
        end = closing(tokens, i + 1) if "aligned" in token.text and tokens[i - 1].text in ("=", "::") else None
        if end is not None and tokens[i + 1].text == "(":
            yield Edit(
                f"every row counts as aligned, whatever {token.text} returns",
                tokens[end].end,
                tokens[end].end,
                " || true",
            )
    for found, opened, closed in _conditions(source):
        parts = [i for i in range(opened, closed) if tokens[i].text == ";"]
        if found == "for" and len(parts) == 2:
            begin = source.text[tokens[opened].start : tokens[parts[0]].start]
            if re.search(r"tail|%|/ *(\w+) *\* *\1|& *~", begin):
                name = f"the tail loop never runs: {_code(source, tokens[opened + 1], tokens[parts[1] - 1])}"
                yield Edit(name, tokens[parts[0] + 1].start, tokens[parts[1] - 1].end, "false")


def signs(source: Source) -> Iterator[Edit]:
    """Propose ``-`` instead of ``+`` in each sum of values, except integers, indices and heads of loops."""
    tokens = source.tokens
    for start, end in _statements(source):
        words = {token.text for token in tokens[start : start + 3]}
        if words & {"int", "long", "unsigned", "size_t", "*"} or not words - {"return"}:
            continue
        depth = 0
        for i in range(start, end):
            depth += (tokens[i].text == "[") - (tokens[i].text == "]")
            binary = tokens[i - 1].kind in ("word", "number") or tokens[i - 1].text in (")", "]")
            if tokens[i].text == "+" and not depth and binary and not _is(tokens, i, "++"):
                code = _code(source, tokens[start], tokens[end - 1], {tokens[i].start: "-"})
                yield Edit(f"- instead of +: {code}", tokens[i].start, tokens[i].end, "-")


def first_maxima(source: Source) -> Iterator[Edit]:
    """Propose maxima that start at 0 instead of the most negative value."""
    tokens = source.tokens
    for i, token in enumerate(tokens[:-1]):
        if token.text == "-" and tokens[i + 1].text in ("INFINITY", "FLT_MAX", "CUDART_INF_F"):
            line = " ".join(source.line_text(source.line(token.start)).split("//")[0].split())
            yield Edit(
                f"a maximum starts at 0 instead of -{tokens[i + 1].text}: {line[:LONGEST]}",
                token.start,
                tokens[i + 1].end,
                "0.0f",
            )


OPERATORS: tuple[Callable[[Source], Iterator[Edit]], ...] = (
    guards,
    loop_bounds,
    barriers,
    rescales,
    strides,
    accumulators,
    tails,
    signs,
    first_maxima,
)
"""The kinds of mistakes, in the order in which they are proposed."""
