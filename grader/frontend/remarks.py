"""Warnings about mistakes that compile, and that compilers report unreliably or not at all.

* ``x[i, j]``: the comma operator ignores ``i``.
* ``float sum;`` whose first use is ``sum += x[i]``: the variable has no first value.
* ``p = values;`` and a use of ``p`` after the block in which the array ``values`` is declared, or ``return values;``.

A variable counts as uninitialized only if its first mention updates it, and no later code gives it a value: no
assignment without reading it, no address, no output of an asm statement. A pointer counts as dangling only if nothing
between its assignment and the end of the block assigns it again or may leave the block.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from grader.frontend.declarations import kind_of_brace
from grader.frontend.local_arrays import NO_TYPES, is_address_of
from grader.frontend.messages import CompilerMessage
from grader.frontend.tokens import (
    DEPTH,
    NOT_TYPES,
    Source,
    Token,
    Tokens,
    closing,
    join,
    opening,
    split_commas,
    word_set,
)

_MOST = 20
"""The maximum number of remarks, as with -fmax-errors."""
_MOST_TOKENS = 64
"""The maximum number of tokens of an assigned value that are read."""
_MOST_CHARACTERS = 200
"""The maximum length of a subscript or a declarator, because messages quote it."""
_NO_NAMES = NOT_TYPES | word_set("auto const volatile")
"""Words before a ``[`` that does not begin a subscript: that of a lambda, or of a structured binding."""
_TYPES = word_set("""
float double half __half nv_bfloat16 __nv_bfloat16 int unsigned signed long short char size_t
int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
""")
"""Types whose variables have no value unless it is given."""
_MEMBERS = (".", "->", "::")
"""Marks before the name of a member, which is not the variable of the same name."""
_STARTS = (";", "{", "}", ")")
"""Marks after which a statement begins."""
_CONDITIONS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
_JUMPS = ("return", "break", "continue", "goto")


def remarks(source: Source, name: str) -> list[CompilerMessage]:
    """Return warnings about a file, which is called ``name`` in them, in the order of its lines."""

    def warning(at: Token, message: str, advice: str) -> CompilerMessage:
        line = source.line(at.start)
        column, text = source.column(at.start), source.line_text(line)
        return CompilerMessage("warning", message, name, line, column, text, advice=advice)

    commas = (
        warning(tokens[i], *_of_comma(tokens[i - 1], indices))
        for tokens in source.sequences
        for i, indices in _comma_subscripts(tokens)
    )
    uninitialized = (
        warning(use, *_of_uninitialized(declared, source.line(declared[0].start), of_type))
        for of_type, declared, use in _uninitialized(source)
    )
    dangling = (
        warning(use, *_of_dangling(pointer, array, source.line(end.start)))
        for pointer, array, end, use in _dangling(source)
    )
    found = [
        *itertools.islice(commas, _MOST),
        *itertools.islice(uninitialized, _MOST),
        *itertools.islice(dangling, _MOST),
    ]
    return sorted(found, key=lambda message: (message.line, message.column))


def _of_comma(name: Token, indices: list[list[Token]]) -> tuple[str, str]:
    """Return the message and the advice for a subscript with a comma."""
    first, last = join(indices[0]), join(indices[-1])
    kind = name.text if name.kind == "word" else "..."
    message = f"only the last index has an effect: {kind}[{', '.join(map(join, indices))}] is {kind}[{last}]"
    advice = f"The element ({first}, {last}) of a tensor is at [({first}) * columns + {last}]."
    return message, f"{advice} That of a two-dimensional array is at [{first}][{last}]."


def _of_uninitialized(declared: Sequence[Token], line: int, of_type: str) -> tuple[str, str]:
    """Return the message and the advice for a variable that is read before it has a value."""
    name = declared[0].text
    value = "{}" if len(declared) > 1 else "0"
    advice = (
        f"Line {line} declares {name} without a value. Give it one, for a sum: {of_type} {join(declared)} = {value};"
    )
    return f"'{name}' is used uninitialized", advice


def _of_dangling(pointer: str, array: str, line: int) -> tuple[str, str]:
    """Return the message and the advice for a use of a pointer to an array after the end of the array's block."""
    message = f"using dangling pointer '{pointer}' to '{array}'" if pointer else f"address of local '{array}' returned"
    outside = "before that block" if pointer else "in the calling function, and pass a pointer to it"
    return message, f"{array} exists until the end of its block at line {line}. Declare it {outside}."


def _comma_subscripts(tokens: Tokens) -> Iterator[tuple[int, list[list[Token]]]]:
    """Yield the index of each ``[`` of a subscript with several indices, and the tokens of each index."""
    for i in range(1, len(tokens)):
        if tokens[i].text != "[" or tokens[i].kind != "mark":
            continue
        before = tokens[i - 1]
        name = before.kind == "word" and before.text not in _NO_NAMES
        end = closing(tokens, i)
        if not (name or before.text in ("]", ")")) or end is None:
            continue
        if tokens[end].end - before.start > _MOST_CHARACTERS:
            continue
        indices = split_commas(tokens[i + 1 : end])
        if len(indices) > 1:
            yield i, indices


def _uninitialized(source: Source) -> Iterator[tuple[str, list[Token], Token]]:
    """Yield for each uninitialized variable its type, the tokens of its declarator (``acc[4]``), and its first use."""
    tokens, mentions = source.tokens, _mentions(source.tokens)
    in_macros = {token.text for macro in source.macros for token in macro.body}
    conditions = [directive.start for directive in source.directives if directive.name in _CONDITIONS]
    for i, end, _ in _statements(tokens):
        first = i
        while i < end and tokens[i].text in _TYPES:
            i += 1
        if i == first:
            continue
        type_name = join(tokens[first:i])
        for name, after in _names(tokens, i):
            if tokens[name].text in in_macros or tokens[after].start - tokens[name].start > _MOST_CHARACTERS:
                continue
            within = _between(mentions[tokens[name].text], name, end)
            if not within or not _updates(tokens, within[0]):
                continue
            declared, use = tokens[name:after], tokens[within[0]]
            dimensions = _indices(tokens, name)
            if not all(_keeps(tokens, k, dimensions) for k in within):
                continue
            if bisect.bisect(conditions, declared[0].start) == bisect.bisect(conditions, use.start):  # no #if between
                yield type_name, declared, use


def _dangling(source: Source) -> Iterator[tuple[str, str, Token, Token]]:
    """Yield each use of a local array after its block: pointer, array, the ``}`` of the block, and the use.

    The pointer is empty if the function returns the array.
    """
    tokens, mentions = source.tokens, _mentions(source.tokens)
    if any(directive.name in _CONDITIONS for directive in source.directives):
        return
    pointers = {token.text for before, token in itertools.pairwise(tokens) if before.text == "*"}
    lambdas = [i for i, (token, after) in enumerate(itertools.pairwise(tokens)) if _begins_lambda(token, after)]
    for i, end, function_end in _statements(tokens):
        array = _declared_array(tokens, i)
        if not array or len(tokens) in (end, function_end):  # a } is in an included file or a macro
            continue
        for k in _between(mentions[tokens[array].text], array, end):
            equals = k - 2 if tokens[k - 1].text == "&" else k - 1
            if equals == k - 1 and tokens[k + 1].text == "[":  # the value of an element
                continue
            returned = tokens[equals].text == "return" and tokens[_after_indices(tokens, k)].text in (";", "+")
            if returned and not _between(lambdas, array, k):  # a lambda may return an array of its caller
                yield "", tokens[array].text, tokens[end], tokens[k]
            pointer = tokens[equals - 1]
            if tokens[equals].text != "=" or pointer.text not in pointers or tokens[equals - 2].text not in _STARTS:
                continue
            every = mentions[pointer.text]
            if any(tokens[again + 1].text == "=" for again in _between(every, k, end)):
                continue
            if any(_between(mentions[jump], k, end) for jump in _JUMPS):
                continue
            if _is_declared(tokens, _between(every, opening(tokens, end) or 0, end)):
                continue
            later = _between(every, end, function_end)
            if later and not _gives_pointer(tokens, later[0]):
                yield pointer.text, tokens[array].text, tokens[end], tokens[later[0]]


def _begins_lambda(token: Token, after: Token) -> bool:
    """Return whether a lambda's captures may end at a token."""
    return token.text == "]" and after.text in ("(", "{", "mutable", "__device__", "__host__")


def _gives_pointer(tokens: Tokens, i: int) -> bool:
    """Return whether the mention at ``i`` assigns the pointer, passes its address, or declares another one."""
    return tokens[i + 1].text == "=" or _may_be_written(tokens, i) or _is_declared(tokens, [i])


def _declared_array(tokens: Tokens, i: int) -> int:
    """Return the index of the name of the array that the statement at ``i`` declares; 0 if it declares none."""
    if tokens[i].text in NO_TYPES or tokens[i].text in ("char", "const"):
        return 0
    k = i
    while k + 2 < len(tokens) and k - i < _MOST_TOKENS and (tokens[k].kind == "word" or tokens[k].text in ("*", "::")):
        if tokens[k + 1].text == "[":
            return k if k > i else 0
        k += 1
    return 0


def _is_declared(tokens: Tokens, mentions: Sequence[int]) -> bool:
    """Return whether one of the mentions may declare a variable: it follows a type, as in ``T* p``."""
    for k in mentions:
        while tokens[k - 1].text in ("*", "&"):
            k -= 1
        if tokens[k - 1].text == ">" or (tokens[k - 1].kind == "word" and tokens[k - 1].text not in NOT_TYPES):
            return True
    return False


def _mentions(tokens: Tokens) -> dict[str, list[int]]:
    """Return the indices of each name in the tokens, without those of members: ``x.name``."""
    mentions: dict[str, list[int]] = defaultdict(list)
    for i, token in enumerate(tokens):
        if token.kind == "word" and tokens[i - 1].text not in _MEMBERS:
            mentions[token.text].append(i)
    return mentions


def _between(indices: Sequence[int], after: int, before: int) -> Sequence[int]:
    """Return the indices between two others."""
    return indices[bisect.bisect_right(indices, after) : bisect.bisect_left(indices, before)]


def _statements(tokens: Tokens) -> Iterator[tuple[int, int, int]]:
    """Yield for each statement in a function its first token, and the ``}`` that ends its block and its function."""
    blocks: list[tuple[str, int]] = [("namespace", len(tokens))]  # the kind of each open brace, and where it ends
    start = 0
    for i, token in enumerate(tokens):
        if token.kind != "mark" or token.text not in ("{", "}", ";"):
            if i == start and blocks[-1][0] == "code":
                yield i, blocks[-1][1], next(end for kind, end in blocks if kind == "code")
            continue
        if token.text == "{":
            kind = kind_of_brace(tokens[start:i])
            if blocks[-1][0] == "code":
                kind = "class" if kind == "class" else "code"
            elif kind in ("function", "block"):
                kind = "code"
            blocks.append((kind, closing(tokens, i) or len(tokens)))
        elif token.text == "}" and len(blocks) > 1:
            blocks.pop()
        start = i + 1


def _names(tokens: Tokens, i: int) -> Iterator[tuple[int, int]]:
    """Yield the index of each name without a value in the declarators from ``i`` on, and the index after it.

    The first declarator that is not a name or an array ends them.
    """
    while i < len(tokens) and tokens[i].kind == "word":
        after = _after_indices(tokens, i)
        if after >= len(tokens) or tokens[after].text not in (",", ";"):
            return
        yield i, after
        if tokens[after].text == ";":
            return
        i = after + 1


def _updates(tokens: Tokens, i: int) -> bool:
    """Return whether the variable at ``i`` is read and written: ``x += 1``, ``x = max(x, 1)``, ``++x``, ``x++``."""
    after = _after_indices(tokens, i)
    if after + 1 >= len(tokens):
        return False
    mark, second = tokens[after], tokens[after + 1]
    if mark.text == "=":
        return _reads_itself(tokens, i, after)
    operator = mark.text + second.text if second.start == mark.end else ""
    return operator in ("+=", "-=", "*=", "/=", "++", "--") or _is_prefix(tokens, i)


def _is_prefix(tokens: Tokens, i: int) -> bool:
    """Return whether ``++`` or ``--`` precedes the variable at ``i``, at the beginning of a statement."""
    if i < 3:
        return False
    before, first, second = tokens[i - 3 : i]
    return first.text == second.text and first.text in ("+", "-") and before.text in _STARTS


def _keeps(tokens: Tokens, i: int, dimensions: int) -> bool:
    """Return whether the mention at ``i`` gives the variable no value, and declares no other of the same name.

    An array of ``dimensions`` may get values where it or one of its rows is used as a pointer.
    """
    before, after = tokens[i - 1], _after_indices(tokens, i)
    if before.text in _TYPES:
        return False
    if _may_be_written(tokens, i) or _is_bound(tokens, i) or _indices(tokens, i) < dimensions:
        return False
    return after >= len(tokens) or tokens[after].text != "=" or _reads_itself(tokens, i, after)


def _may_be_written(tokens: Tokens, i: int) -> bool:
    """Return whether the variable's address is taken at ``i``, or it is an operand of an asm statement."""
    before = tokens[i - 1]
    return (before.text == "&" and is_address_of(tokens, i - 1)) or (
        before.text == "(" and tokens[i - 2].kind == "string"
    )


def _is_bound(tokens: Tokens, i: int) -> bool:
    """Return whether a reference to the variable is made at ``i``: ``float& s = x``, ``[&s = x]`` or a lambda's call.

    In ``[](float& s) { s = 0; }(x)``, a lambda is called where it is written.
    """
    if i > 4 and tokens[i - 1].text in ("=", "{") and tokens[i - 2].kind == "word" and tokens[i - 3].text == "&":
        return tokens[i - 5].text != "const"
    depth = 0
    for k in range(i - 1, max(0, i - _MOST_TOKENS), -1):
        text = tokens[k].text
        if text in (";", "{", "}"):
            return False
        depth -= DEPTH.get(text, 0)
        if depth < 0:
            return text == "(" and tokens[k - 1].text == "}"
    return False


def _reads_itself(tokens: Tokens, i: int, assignment: int) -> bool:
    """Return whether the value that is assigned to the variable at ``i`` always reads it.

    Return False for a long value, for one with a condition before the variable (``first ? y : max(x, y)``), and for an
    array, whose elements may have different values.
    """
    if assignment > i + 1:
        return False
    depth = 0
    for k in range(assignment + 1, min(assignment + 1 + _MOST_TOKENS, len(tokens))):
        token = tokens[k]
        depth += DEPTH.get(token.text, 0)
        if depth < 0 or token.text in (";", "?", "&&", "||") or (token.text == "," and depth == 0):
            return False
        if token.text == tokens[i].text and tokens[k - 1].text not in _MEMBERS:
            return not (tokens[k - 1].text == "(" and tokens[k - 2].text in ("decltype", "sizeof"))
    return False


def _ends_of_indices(tokens: Sequence[Token], i: int) -> list[int]:
    """Return the closing brackets of the indices after the name at ``i``: two in ``x[i][j]``."""
    ends: list[int] = []
    k = i + 1
    while k < len(tokens) and tokens[k].text == "[" and (end := closing(tokens, k)):
        ends.append(end)
        k = end + 1
    return ends


def _after_indices(tokens: Sequence[Token], i: int) -> int:
    """Return the index of the token after a name and its indices."""
    return [i, *_ends_of_indices(tokens, i)][-1] + 1


def _indices(tokens: Sequence[Token], i: int) -> int:
    """Return the number of indices after the name at ``i``: 2 in ``x[i][j]``."""
    return len(_ends_of_indices(tokens, i))
