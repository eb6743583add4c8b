"""Finds the kernels that a file declares, with their parameters and attributes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from grader.frontend.macros import Expander, macros_with
from grader.frontend.tokens import Source, Token, angle_end, closing, join, split_commas

LAUNCH_BOUNDS, CLUSTER_DIMS = "__launch_bounds__", "__cluster_dims__"
_FORCEINLINE = "__forceinline__"
_ATTRIBUTES = (LAUNCH_BOUNDS, "__attribute__", "__maxnreg__", CLUSTER_DIMS)


@dataclass(frozen=True)
class KernelDefinition:
    """A ``__global__`` function.

    ``needed`` is the number of template arguments that must be written to take its address. ``cluster`` is the text
    between the parentheses of ``__cluster_dims__``. It is empty if this text uses a template parameter, because the
    parameter is not known where the kernel is launched.
    """

    name: str
    needed: int
    signature: str
    line: int
    is_template: bool = False
    cluster: str = ""
    pointers: tuple[bool, ...] = ()
    """For each parameter, whether it is a pointer."""
    alone: bool = True
    """True if all functions with this name are kernels."""
    most_threads: str = ""
    """The first argument of ``__launch_bounds__`` in this or another declaration of the kernel; empty without one."""

    def takes_pointer(self, index: int) -> bool:
        """Return whether the kernel has a parameter at ``index`` and it is a pointer."""
        return index < len(self.pointers) and self.pointers[index]


def find_kernels(source: Source, no_references: bool = False) -> dict[str, list[KernelDefinition]]:
    """Return the kernels of a file by name. A name with several kernels has several declarations or overloads.

    With ``no_references``, raise RewriteError for a parameter that is a reference.
    """
    found: dict[str, list[KernelDefinition]] = {}
    tokens = source.tokens
    macros = macros_with(source, _FORCEINLINE)
    attributes = kernel_attributes(source)
    functions = _host_functions(tokens)
    start = 0  # the index where the current declaration begins, after the last ; { or }
    known = 0  # the index where the parameters of the last kernel end
    for i, token in enumerate(tokens):
        if token.text in (";", "{", "}"):
            start = i + 1
        if token.text != "__global__" or i < known:
            continue
        k = i + 1
        while k < len(tokens) and not (tokens[k].kind == "word" and k + 1 < len(tokens) and tokens[k + 1].text == "("):
            k += 1
        while k + 1 < len(tokens) and tokens[k].text in _ATTRIBUTES:
            k = (closing(tokens, k + 1) or k) + 1
            while k + 1 < len(tokens) and tokens[k + 1].text != "(":
                k += 1
        close = closing(tokens, k + 1) if k + 1 < len(tokens) else None
        start, known = max(start, known), close or k
        if k < len(tokens):
            what, instead = f"the kernel {tokens[k].text}", "a kernel is launched, not called"
            _refuse_inlined(source, tokens[start:k], macros, what, instead)
        if close is None:
            continue
        needed = _needed_arguments(tokens[start:i])
        parameters = split_commas(tokens[k + 2 : close])
        for part in parameters if no_references else ():
            _refuse_reference(source, tokens[k], part)
        types = [join([t for t in part if t.kind == "mark" or t is not part[-1]]) for part in parameters]
        pointers = tuple(any(t.text in ("*", "[") for t in part) for part in parameters)
        declaration = tokens[start : _end_of_declaration(tokens, close)]
        is_template = any(t.text == "template" for t in tokens[start:i])
        cluster = ", ".join(attributes[CLUSTER_DIMS].arguments(declaration))
        if is_template and {*re.findall(r"\w+", cluster)} & {t.text for t in tokens[start:i] if t.kind == "word"}:
            cluster = ""
        kernel = KernelDefinition(
            tokens[k].text,
            needed,
            ", ".join(types),
            source.line(tokens[k].start),
            is_template,
            cluster,
            pointers,
            tokens[k].text not in functions,
            next(iter(attributes[LAUNCH_BOUNDS].arguments(declaration)), ""),
        )
        found.setdefault(kernel.name, []).append(kernel)
    return {name: _with_bounds_of_declarations(kernels) for name, kernels in found.items()}


def _end_of_declaration(tokens: Sequence[Token], close: int) -> int:
    """Return the index of the ``;`` or ``{`` after a kernel's parameters."""
    return next((i for i in range(close, min(close + 64, len(tokens))) if tokens[i].text in (";", "{")), close)


def _with_bounds_of_declarations(kernels: Sequence[KernelDefinition]) -> list[KernelDefinition]:
    """Return the kernels of one name, each with the launch bounds of all its declarations."""
    bounds = {kernel.signature: kernel.most_threads for kernel in kernels if kernel.most_threads}
    return [replace(kernel, most_threads=kernel.most_threads or bounds.get(kernel.signature, "")) for kernel in kernels]


def _refuse_reference(source: Source, kernel: Token, parameter: Sequence[Token]) -> None:
    """Raise RewriteError for a reference parameter.

    nvcc accepts it, but the kernel would get the address of a host variable, which it cannot read.
    """
    depth = 0
    for token in parameter:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(token.text, 0)
        if token.text == "=":
            return
        if depth == 0 and token.text in ("&", "&&"):
            raise source.error(
                token,
                f"the kernel {kernel.text} has a parameter that is a reference",
                "The GPU cannot read host memory: pass the value, or a pointer to device memory.",
            )


def _host_functions(tokens: Sequence[Token]) -> set[str]:
    """Return the names of functions that are not kernels: roughly, words between a type and a ``(``."""
    found: set[str] = set()
    kernel = False  # whether __global__ occurred since the last ; { or }
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        if token.text in (";", "{", "}"):
            kernel = False
        kernel = kernel or "__global__" in (before.text, token.text)
        returned = before.kind == "word" and before.text not in ("return", "else", "do", "case")
        if after.text == "(" and (returned or before.text in ("*", "&", ">")) and token.kind == "word" and not kernel:
            found.add(token.text)
    return found


class KernelAttribute:
    """Finds one attribute, such as ``__launch_bounds__``, in the declarations of a file, also inside macros."""

    def __init__(self, source: Source, name: str) -> None:
        self._name = name
        self._macros = macros_with(source, name)
        self._expander = Expander(source)
        self._preprocessed = {
            kernel: found for (attribute, kernel), found in source.attributes.items() if attribute == name
        }

    def expanded(self, declaration: Sequence[Token]) -> Sequence[Token]:
        """Return a declaration with its macros expanded if they affect the attribute."""
        affected = any(t.text == self._name or t.text in self._macros for t in declaration)
        return self._expander.expanded(declaration) if affected else declaration

    def arguments(self, declaration: Sequence[Token]) -> list[str]:
        """Return the attribute's arguments in a declaration; empty without the attribute."""
        if arguments := split_commas(_arguments_of(self.expanded(declaration), self._name)):
            return [join(argument) for argument in arguments]
        return next((self._preprocessed[t.text] for t in declaration if t.text in self._preprocessed), [])


def kernel_attributes(source: Source) -> dict[str, KernelAttribute]:
    """Return the attributes that limit the launches of a kernel."""
    return {name: KernelAttribute(source, name) for name in (LAUNCH_BOUNDS, CLUSTER_DIMS)}


def _arguments_of(head: Sequence[Token], attribute: str) -> list[Token]:
    for i, token in enumerate(head):
        close = closing(head, i + 1) if token.text == attribute and i + 1 < len(head) else None
        if close is not None:
            return list(head[i + 2 : close])
    return []


def refuse_inlined(source: Source, launchers: Collection[str]) -> None:
    """Raise RewriteError for a ``__forceinline__`` launcher. Its checks would be lost if it were inlined."""
    macros = macros_with(source, _FORCEINLINE)
    start = 0
    for i, token in enumerate(source.tokens):
        if token.kind == "mark" and token.text in (";", "{", "}"):
            start = i + 1
        elif token.text in launchers:
            what, instead = f"the launcher {token.text}", "a launcher is called from Python"
            _refuse_inlined(source, source.tokens[start:i], macros, what, instead)
            start = i


def _refuse_inlined(
    source: Source, declaration: Sequence[Token], macros: Collection[str], what: str, instead: str
) -> None:
    """Raise RewriteError if a declaration has ``__forceinline__``, directly or through one of these macros."""
    for token in declaration:
        if token.text == _FORCEINLINE or token.text in macros:
            raise source.error(token, f"{what} is {_FORCEINLINE}", f"Remove {_FORCEINLINE}: {instead}.")


def _needed_arguments(head: Sequence[Token]) -> int:
    """Return the number of template parameters without a default; a pack counts as 1000."""
    for i, token in enumerate(head):
        if token.text == "template" and i + 1 < len(head) and head[i + 1].text == "<":
            parameters = split_commas(head[i + 2 : angle_end(head, i + 1) - 1])
            if any(t.text == "..." for p in parameters for t in p):
                return 1000
            return sum(not any(t.text == "=" for t in p) for p in parameters)
    return 0
