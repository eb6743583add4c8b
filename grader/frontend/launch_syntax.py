"""Parser of launches: finds where the callee before ``<<<`` starts, and the ``>>>`` that ends the configuration."""

from __future__ import annotations

from collections.abc import Sequence

from grader.frontend.tokens import DEPTH, Token, opening

_STATEMENT_WORDS = {"return", "else", "do", "goto", "case", "default", "throw", "if", "while", "for", "switch"}


def is_triple(tokens: Sequence[Token], i: int, mark: str) -> bool:
    """Return whether the tokens at ``i`` are ``<<<`` or ``>>>``. Like nvcc, allow a blank before the third mark."""
    group = tokens[i : i + 3]
    if len(group) < 3 or any(t.text != mark or t.kind != "mark" for t in group) or group[1].end - group[0].start > 2:
        return False
    if group[2].start == group[1].end:
        return True
    return mark == ">" or not (i and tokens[i - 1].text == "operator")


def _is_name(token: Token) -> bool:
    return token.kind == "word" and token.text not in _STATEMENT_WORDS


def _continues_expression(tokens: Sequence[Token], k: int) -> bool:
    """Return whether a bracket after token ``k`` belongs to the expression before it.

    It does in ``table[i]``; it does not in ``if (x) (*f)``, where the second bracket begins a new expression.
    """
    if k < 0:
        return False
    if tokens[k].text == ")":
        opened = opening(tokens, k)
        return not (opened and tokens[opened - 1].text in ("if", "while", "for", "switch"))
    return tokens[k].text == "]" or _is_name(tokens[k])


def callee_start(tokens: Sequence[Token], i: int) -> int | None:
    """Return the index of the first token of the callee that ends before token ``i``; None if there is no callee.

    A callee may be ``ns::kernel<T, (N > 4)>``, ``table[i]`` or ``(*pointer)``.
    """
    k = i - 1
    while k >= 0:
        text = tokens[k].text
        if tokens[k].kind == "mark" and text == ">":
            opened = angle_opening(tokens, k)
            if opened is None:
                return None
            k = opened - 1
            continue
        if text in (")", "]"):
            opened = opening(tokens, k)
            if opened is None:
                return None
            if not _continues_expression(tokens, opened - 1):
                return opened
            k = opened - 1
            continue
        if tokens[k].kind != "word" or text in _STATEMENT_WORDS:
            return None
        if k and tokens[k - 1].text in ("template", "##"):
            k -= 1
            if tokens[k].text == "##":
                k -= 1
                continue
        if k and tokens[k - 1].text in (".", "->"):
            k -= 2
            continue
        if k and tokens[k - 1].text == "::":
            if k > 1 and (tokens[k - 2].text == ">" or _is_name(tokens[k - 2])):
                k -= 2
                continue
            return k - 1
        return k
    return None


def angle_opening(tokens: Sequence[Token], k: int) -> int | None:
    """Return the index of the ``<`` that opens the template arguments closed by the ``>`` at ``k``."""
    depth = 0
    while k >= 0:
        text = tokens[k].text
        if text in (")", "]", "}"):
            opened = opening(tokens, k)
            if opened is None:
                return None
            k = opened - 1
            continue
        if text in ("(", "[", "{", ";"):
            return None
        if text == ">":
            depth += 1
        elif text == "<":
            if k and tokens[k - 1].text == "<" and tokens[k - 1].end == tokens[k].start:
                k -= 2  # skip both tokens of a left shift ``<<`` in the template arguments
                continue
            depth -= 1
            if depth == 0:
                return k
        k -= 1
    return None


def configuration_end(tokens: Sequence[Token], i: int) -> int | None:
    """Return the index of the ``>>>`` that ends the launch configuration whose first token is at ``i``."""
    depth = 0
    while i < len(tokens):
        text = tokens[i].text
        depth += DEPTH.get(text, 0)
        if depth < 0 or (text == ";" and depth == 0):
            return None
        if text == ">" and depth == 0 and is_triple(tokens, i, ">"):
            if tokens[i + 2].start > tokens[i + 1].end:
                if i + 3 < len(tokens) and tokens[i + 3].text == "(":
                    return i
                i += 1
                continue
            run = i
            while run < len(tokens) and tokens[run].text == ">" and tokens[run].start - tokens[i].start == run - i:
                run += 1
            if run < len(tokens) and tokens[run].text == "(":
                return run - 3
            i = run
            continue
        i += 1
    return None
