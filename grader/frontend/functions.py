"""Finds the functions and variables that a file declares, and where each function runs (host, device or kernel)."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grader.frontend.declarations import (
    DEVICE_VARIABLES,
    is_variable,
    kind_of_brace,
    names_of_variables,
    strip_attributes,
)
from grader.frontend.limits import spend
from grader.frontend.tokens import Source, Token, closing, word_set


class Space(enum.Enum):
    """The execution space of a function: where it runs."""

    HOST = "host"
    DEVICE = "device"
    BOTH = "host and device"
    KERNEL = "kernel"


@dataclass(frozen=True)
class Function:
    """A declaration or definition of a function.

    ``head`` and ``body`` are ranges of indices in ``tokens``. The body of a declaration is empty.
    """

    name: str
    owner: str
    """The class of a member function; empty for other functions."""
    namespace: tuple[str, ...]
    """The names of the enclosing namespaces."""
    space: Space
    constexpr: bool
    tokens: Sequence[Token]
    head: range
    body: range
    of_template: bool = False
    """True for a member of a class template. nvcc checks it only when the template is instantiated."""

    @property
    def in_device_code(self) -> bool:
        """True if device code may call the function. That includes constexpr functions (--expt-relaxed-constexpr)."""
        return self.space in (Space.DEVICE, Space.BOTH) or self.constexpr


@dataclass
class Declarations:
    """The functions and variables that tokens declare outside of functions."""

    functions: list[Function] = field(default_factory=list)
    host_variables: set[tuple[tuple[str, ...], str]] = field(default_factory=set)
    """Host variables that device code cannot read: the names of the enclosing namespaces, and the variable's name."""
    device_variables: set[str] = field(default_factory=set)
    """Names of device variables, without ``const`` and ``constexpr`` ones, because the host may use them as well."""


class _Scope(NamedTuple):
    """An enclosing namespace or class."""

    kind: str
    name: str
    template: bool


_CLASSES = ("struct", "class", "union")
_NO_FUNCTIONS = word_set("""
if while for switch return sizeof alignof decltype noexcept static_assert catch void bool char short int long float
double unsigned signed auto operator new delete throw template using typedef friend asm
""")


def branches_are_whole(source: Source) -> bool:
    """Return whether each branch of each ``#if`` closes the braces that it opens.

    Only then can functions' bodies be found without evaluating the conditions.
    """
    directives = iter([d for d in source.directives if d.name in ("if", "ifdef", "ifndef", "else", "elif", "endif")])
    directive = next(directives, None)
    depth, before = 0, []  # before: the brace depth at each #if without its #endif yet
    for token in source.tokens:
        while directive is not None and directive.start < token.start:
            if directive.name.startswith("if"):
                before.append(depth)
            elif before and depth != before[-1]:
                return False
            elif before and directive.name == "endif":
                before.pop()
            directive = next(directives, None)
        if token.kind == "mark":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
    return True


def collect(source: Source, tokens: Sequence[Token]) -> Declarations:
    """Return the functions and variables that are declared in ``tokens``, outside of functions."""
    found = Declarations()
    scopes: list[_Scope] = []
    types: list[int] = []  # the brace depth of each open `typedef struct {`
    start = i = 0
    while i < len(tokens):
        text = tokens[i].text if tokens[i].kind == "mark" else ""
        if text in ("(", "["):
            i = after(tokens, i)
        elif text == "{":
            declaration = tokens[start:i]
            spend(source, tokens[i], len(declaration) + len(scopes))
            kind = kind_of_brace(declaration)
            if kind in ("namespace", "class"):
                scopes.append(_Scope(kind, _name(declaration, kind), tokens[start].text == "template"))
                types += [len(scopes)] if kind == "class" and tokens[start].text == "typedef" else []
                i += 1
                start = i
            elif kind == "function":
                opened, end = i, after(tokens, i)
                # Braces of member initializers come before the body: S(int b) : a{b} {}
                while end < len(tokens) and tokens[end].text in (",", "{"):
                    opened = end if tokens[end].text == "{" else opened
                    end = after(tokens, end) if tokens[end].text == "{" else end + 1
                _function(tokens, range(start, opened), range(opened + 1, end - 1), scopes, found.functions)
                i = start = end
            else:
                i = after(tokens, i)
        elif text == "}":
            i += 1
            if types and types[-1] == len(scopes):  # the Name in typedef struct { ... } Name; is no variable
                types.pop()
                while i < len(tokens) and tokens[i].text != ";":
                    i += 1
            if scopes:
                scopes.pop()
            start = i
        elif text == ";":
            declaration = tokens[start:i]
            spend(source, tokens[i], len(declaration) + len(scopes))
            in_class = bool(scopes) and scopes[-1].kind == "class"
            if not _function(tokens, range(start, i), range(i, i), scopes, found.functions) and not in_class:
                found.host_variables.update((_namespace(scopes), name) for name in _host_variables(declaration))
                found.device_variables.update(_device_variables(declaration))
            i += 1
            start = i
        elif text == ":" and i == start + 1 and tokens[start].text in ("public", "private", "protected"):
            i += 1
            start = i
        else:
            i += 1
    return found


def after(tokens: Sequence[Token], i: int) -> int:
    """Return the index after the bracket that opens at ``i``."""
    end = closing(tokens, i)
    return len(tokens) if end is None else end + 1


def device_lambda_end(source: Source, function: Function, k: int) -> int:
    """Return the index after the lambda ``[=] __device__ (int i) { ... }`` whose ``__device__`` is at ``k``.

    Return ``k`` if no body follows.
    """
    tokens, stop = function.tokens, function.body.stop
    opened = next((n for n in range(k, stop) if tokens[n].text in ("{", ";")), stop)
    spend(source, tokens[k], opened - k)
    return after(tokens, opened) if opened < stop and tokens[opened].text == "{" else k


def _name(declaration: Sequence[Token], kind: str) -> str:
    """Return the name of a class or namespace; empty if it has none, and for ``extern "C"``."""
    words = [t.text for t in strip_attributes(declaration)]
    named = [k for k, word in enumerate(words) if word in (("namespace",) if kind == "namespace" else _CLASSES)]
    return next((word for word in words[named[-1] + 1 :] if re.match(r"\w", word)), "") if named else ""


def _owner(scopes: Sequence[_Scope]) -> str:
    return scopes[-1].name if scopes and scopes[-1].kind == "class" else ""


def _in_template(scopes: Sequence[_Scope]) -> bool:
    return any(scope.template for scope in scopes)


def _namespace(scopes: Sequence[_Scope]) -> tuple[str, ...]:
    return tuple(scope.name for scope in scopes if scope.kind == "namespace" and scope.name)


def _function(
    tokens: Sequence[Token], head: range, body: range, scopes: Sequence[_Scope], functions: list[Function]
) -> bool:
    """Add the function that is declared in ``head``. Return false if it declares something else."""
    declaration = strip_attributes([tokens[k] for k in head])
    words = [t.text for t in declaration]
    if not words or (words[0] in ("using", "typedef", "friend", "static_assert", "extern") and "(" not in words):
        return False
    if words[0] in ("using", "typedef", "static_assert"):
        return False
    at = next((k for k, t in enumerate(declaration) if t.text == "(" and t.kind == "mark"), None)
    if at is None or at == 0 or ("=" in words[:at] and "operator" not in words[:at]):
        return False
    name, before = declaration[at - 1], words[:at]
    inside = words[at + 1] if at + 1 < len(words) else ""
    if inside in ("*", "&", "^") or (inside and declaration[at + 1].kind in ("number", "string")):
        return False  # a pointer to a function, or a variable with an initializer
    if "operator" in before:
        called = "operator"
    elif name.kind != "word" or name.text in _NO_FUNCTIONS or name.text.startswith("__"):
        return False
    else:
        called = name.text
    owner = _owner(scopes)
    if len(before) >= 3 and before[-2] == "::":
        owner = before[-3]
    tail = "".join(words[-2:])
    if tail in ("=default", "=delete", "=0") or before[-2:-1] == ["~"]:
        return True
    constexpr = "constexpr" in before or "consteval" in before
    functions.append(
        Function(called, owner, _namespace(scopes), _space(before), constexpr, tokens, head, body, _in_template(scopes))
    )
    return True


def _space(words: Sequence[str]) -> Space:
    if "__global__" in words:
        return Space.KERNEL
    if "__device__" in words:
        return Space.BOTH if "__host__" in words else Space.DEVICE
    return Space.HOST


def _host_variables(declaration: Sequence[Token]) -> list[str]:
    """Return the variables in a declaration at namespace scope that device code cannot read.

    Device code can read a constant scalar, because the compiler knows its value.
    """
    words = [t.text for t in declaration]
    if not words or set(words) & (
        {"using", "typedef", "template", "static_assert", "friend", "__shared__"} | set(DEVICE_VARIABLES)
    ):
        return []
    if (
        "texture<" in "".join(words[:4])  # a texture reference
        or set(words[:2]) & {"struct", "class", "union", "enum", "namespace", "extern"}
        or "(" in words[: index_of(words, "=")]
    ):
        return []
    constant = "constexpr" in words or ("const" in words and "*" not in words[: index_of(words, "=")])
    if constant and "[" not in words[: index_of(words, "=")] and "{" not in words:
        return []
    return [] if constant and "[" not in words else names_of_variables(declaration)


def _device_variables(declaration: Sequence[Token]) -> list[str]:
    words = [t.text for t in declaration]
    if not set(words) & {"__device__", "__constant__"} or not is_variable(declaration):
        return []
    constant = "constexpr" in words or ("const" in words and "*" not in words)
    if constant or set(words) & {"__managed__", "using", "typedef", "template", "__shared__"}:
        return []
    return [name.rpartition("::")[2] for name in names_of_variables(declaration)]


def index_of(words: Sequence[str], word: str) -> int:
    """Return the index of a word; the length of ``words`` if it is not there."""
    return words.index(word) if word in words else len(words)
