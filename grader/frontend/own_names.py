"""Renames variables of a program that have the name of a built-in variable, such as ``gridDim``.

On the simulator the built-in names are macros, which would replace the variable's name. Where the file declares a
variable, parameter or member with such a name, the declaration and its uses in that scope are renamed.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.frontend.tokens import NOT_TYPES, Token

BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))
PREFIX = "sim_"
_AFTER_A_NAME = {"(", "{", "=", ";", ",", ")", "[", ":"}


def own_names(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of built-in names that refer to a variable which the file itself declares."""
    if not any(token.text in BUILT_IN for token in tokens):
        return frozenset()
    found: set[int] = set()
    scopes: list[set[str]] = [set()]
    parameters: set[str] = set()  # names declared in the parentheses before a function's or loop's body
    depth, declares = 0, False
    start = True
    for i, token in enumerate(tokens):
        text = token.text
        if token.kind == "mark":
            depth += text in ("(", "[")
            depth -= text in (")", "]")
            if text == "{":
                scopes.append(parameters)
                parameters = set()
            elif text == "}" and len(scopes) > 1:
                scopes.pop()
            elif text == ";" and depth == 0:
                parameters = set()
            start = text in ("{", "}") or (text == ";" and depth <= 0)
            if start:
                depth, declares = 0, False
            continue
        if start:
            start = text in ("const", "static", "constexpr")
            declares = text == "dim3" or start
        if text not in BUILT_IN:
            continue
        before, after = tokens[i - 1] if i else None, tokens[i + 1].text if i + 1 < len(tokens) else ""
        if before is not None and before.text in (".", "->", "::"):
            continue
        typed = before is not None and before.kind == "word" and before.text not in NOT_TYPES
        typed = typed or (
            before is not None and before.text in ("&", "*") and i > 1 and tokens[i - 2].text in ("dim3", "uint3")
        )
        further = before is not None and before.text == "," and declares and depth == 0
        if (typed or further) and after in _AFTER_A_NAME:
            (parameters if depth else scopes[-1]).add(text)
            found.add(token.start)
        elif text in parameters or any(text in scope for scope in scopes):
            found.add(token.start)
    return frozenset(found)
