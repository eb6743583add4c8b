"""Finds uses of device variables in host code. As with nvcc, such a name refers to a separate copy on the host."""

from __future__ import annotations

from collections.abc import Sequence

from grader.frontend.functions import Declarations, Function, Space, device_lambda_end
from grader.frontend.limits import spend
from grader.frontend.tokens import NOT_TYPES, Source, Token


def host_names(source: Source, declared: Declarations) -> dict[int, int]:
    """Return the positions in the text where host code names a device variable.

    Map the position of each name to the start of its qualified name: in ``n::x``, map ``x`` to ``n``.
    """
    functions = declared.functions
    variables = declared.device_variables - {function.name for function in functions}
    found: dict[int, int] = {}
    for function in functions:
        if variables and function.space is Space.HOST and len(function.body) and not function.constexpr:
            found.update(_in_body(source, function, variables))
    return found


def _in_body(source: Source, function: Function, variables: set[str]) -> dict[int, int]:
    tokens, found = function.tokens, {}
    scopes = [{tokens[k].text for k in function.head if _declares(tokens, k)}]
    ahead: set[str] = set()  # names declared in the parentheses before the body of a loop or lambda
    depth = 0
    on_device = -1  # the index where the body of the current device lambda ends
    for k in function.body:
        token = tokens[k]
        if token.kind == "mark":
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if token.text == "{":
                scopes.append(ahead)
                ahead = set()
            elif token.text == "}" and len(scopes) > 1:
                scopes.pop()
            elif token.text == ";" and depth == 0:
                ahead = set()
        elif token.text == "__device__":
            on_device = max(on_device, device_lambda_end(source, function, k))
        elif token.kind != "word" or token.text not in variables or k < on_device:
            continue
        elif _declares(tokens, k) or (tokens[k - 1].text == "," and depth == 0):
            (ahead if depth else scopes[-1]).add(token.text)
        elif token.text not in ahead and not _is_in_one_of(scopes, token, source):
            first = k
            while tokens[first - 1].text == "::":
                first -= 2 if tokens[first - 2].kind == "word" else 1
            spend(source, token, k - first)
            before = tokens[first - 1].text
            member = before in (".", "->") or (before == "(" and tokens[first - 2].text == "decltype")
            # Skip a name that comes from a macro: its position is that of the macro's use.
            if not member and source.text.startswith(token.text, token.start):
                found[token.start] = tokens[first].start
    return found


def _is_in_one_of(scopes: Sequence[set[str]], token: Token, source: Source) -> bool:
    spend(source, token, len(scopes))
    return any(token.text in scope for scope in scopes)


def _declares(tokens: Sequence[Token], k: int) -> bool:
    """Return whether the word at ``k`` seems to be declared there: ``T x`` or ``T* x``, not ``f(&x)`` or ``2 * x``."""
    if k < 3 or tokens[k].kind != "word" or tokens[k - 1].text not in ("*", "&", "&&"):
        return k > 0 and (
            tokens[k - 1].text == ">" or (tokens[k - 1].kind == "word" and tokens[k - 1].text not in NOT_TYPES)
        )
    named = tokens[k - 2].kind == "word" and tokens[k - 2].text not in NOT_TYPES
    return named and tokens[k - 3].text in ("(", ",", ";", "{", "}", "const", "static", ">", "::")
