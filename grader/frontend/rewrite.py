"""The simulator's front end: translates a CUDA file to C++17.

It changes only the syntax that C++ does not have. The simulator's headers define the rest: there, ``__global__`` and
``threadIdx`` are macros. These are the main changes:

* ``kernel<<<grid, block, smem, stream>>>(args)`` becomes a call of ``sim::launch`` (``launches.py``);
* ``__shared__`` and ``extern __shared__`` declarations become references into the block's shared memory
  (``shared_arrays.py``);
* local arrays whose address is taken get red zones (``device_functions.py``, ``local_arrays.py``);
* ``__device__`` and ``__constant__`` variables are registered with their bounds (``global_variables.py``);
* ``asm("ptx" : outputs : inputs)`` becomes a call into ``sim::ptx``, for a closed set of instructions (``ptx_asm.py``).

All newlines stay where they are, so the compiler's line numbers are those of the learner's file. A construct that
cannot be simulated causes a :class:`RewriteError`, which names the construct and its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.frontend import ptx_asm
from grader.frontend.brackets import unpaired
from grader.frontend.cas_loops import first_looks
from grader.frontend.constructs import check_includes, check_words
from grader.frontend.declarations import kind_of_brace, words_before_parameters
from grader.frontend.device_functions import DeviceFunctions, translate_grid_constant
from grader.frontend.edits import Rewritten, apply
from grader.frontend.execution_space import check_execution_spaces
from grader.frontend.functions import branches_are_whole, collect
from grader.frontend.global_variables import GlobalVariables
from grader.frontend.host_names import host_names
from grader.frontend.kernel_definitions import KernelAttribute, KernelDefinition, find_kernels, kernel_attributes
from grader.frontend.launch_syntax import angle_opening, is_triple
from grader.frontend.launches import LAUNCH_CALLS, Launches
from grader.frontend.limits import spend
from grader.frontend.macros import Expander
from grader.frontend.messages import RewriteError
from grader.frontend.own_names import PREFIX
from grader.frontend.polls import polls
from grader.frontend.ptx_instructions import architecture_for
from grader.frontend.region import ON_HOST, Region
from grader.frontend.shared_arrays import SharedArrays
from grader.frontend.tokens import Source, Token, closing

__all__ = ["RewriteError", "rewrite"]

COPIES = {
    f"{kind}{name}": f"::sim::{new}"
    for name, new in (("memcpy", "copy_bytes"), ("memmove", "move_bytes"), ("memset", "set_bytes"))
    for kind in ("", "__builtin_")
}
_ENDS = (";", "{", "}")
"""The marks after which a statement begins."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """An open brace: its kind, the index where the current declaration in it begins, and the enclosing brace."""

    kind: str  # namespace, class, function, block, initializer
    start: int = 0
    parens: int = 0
    outer: _Scope | None = None
    after: str = ""  # text to insert after its closing brace

    def started(self, start: int) -> _Scope:
        """Return a copy of this scope whose current declaration begins at ``start``."""
        return replace(self, start=start)


def rewrite(
    text: str | Source,
    include_dirs: Sequence[Path] = (),
    architecture: int | None = None,
    alone: bool = True,
    internal: bool = False,
) -> Rewritten:
    """Translate CUDA to C++ for the simulator.

    ``include_dirs`` are the folders of the simulator's headers, for error messages. ``architecture`` is the device's
    compute capability times ten; None if the file's instructions determine it. ``alone`` is true for a kernel file of
    the course, which must not use own headers or compiler builtins; it is false for a file of a whole program.
    ``internal``: other files cannot name the file's ``__device__`` variables, as with nvcc without -rdc=true.
    """
    source = text if isinstance(text, Source) else Source(text)
    source.internal_variables = internal
    source.architecture = architecture or architecture_for(source.text)
    check_includes(source, include_dirs, alone)
    check_words(source, alone)
    on_host: dict[int, int] = {}
    try:
        if branches_are_whole(source):
            declared = collect(source, Expander(source).expanded(source.tokens))
            check_execution_spaces(source, declared)
            on_host = host_names(source, declared)
    except RewriteError:
        if error := unpaired(source):
            raise error from None
        raise
    kernels = find_kernels(source, no_references=not alone)
    regions = [Region(source, source.tokens, on_host, alone)]
    for macro in source.macros:
        if macro.body:
            parameters = frozenset(macro.parameters or ())
            regions.append(Region(source, macro.body, on_host, alone, macro.name, parameters))
    attributes = kernel_attributes(source)
    asm_macros = Expander(source)
    for region in regions:
        _RegionRewriter(region, kernels, attributes, asm_macros).run()
    return apply(source.text, (edit for region in regions for edit in region.edits))


def _member_templates(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the names of member function templates that are called with explicit template arguments.

    Such calls are ``x.f<4>(...)`` and ``X<T>::f<4>(...)``.
    """
    defined: set[str] = set()
    called: set[str] = set()
    for i, token in enumerate(tokens[:-1]):
        if token.text == "(" and i > 1 and tokens[i - 1].text == ">":
            opened = angle_opening(tokens, i - 1)
            if opened and _of_a_class(tokens, opened - 1):
                called.add(tokens[opened - 1].text)
        elif token.text == "template" and tokens[i + 1].text == "<":
            end = next((k for k in range(i, len(tokens)) if _ends_a_name(tokens, k)), i)
            defined.add(tokens[end - 1].text)
    return frozenset(called & defined)


def _ends_a_name(tokens: Sequence[Token], k: int) -> bool:
    """Return whether a function's name ends before token ``k``: a parameter list begins there, not an attribute's."""
    of_attribute = tokens[k - 1].text in ("__attribute__", "(", "alignas", "__launch_bounds__")
    return tokens[k].text in (";", "{") or (tokens[k].text == "(" and not of_attribute)


def _of_a_class(tokens: Sequence[Token], i: int) -> bool:
    """Return whether the name at ``i`` is a member of an object or class template: after ``.``, ``->`` or ``>::``."""
    before = [token.text for token in tokens[max(0, i - 2) : i]]
    return before[-1:] in (["."], ["->"]) or before == [">", "::"]


def _line(tokens: Sequence[Token]) -> str:
    """Return tokens as text on one line, with blanks between them. The line breaks in string literals are left out."""
    return re.sub(r"\\?\n", "", " ".join(token.text for token in tokens))


class _RegionRewriter:
    """Translates the tokens of a region in one pass, in which it keeps track of the open braces."""

    def __init__(
        self,
        region: Region,
        kernels: Mapping[str, list[KernelDefinition]],
        attributes: Mapping[str, KernelAttribute],
        asm_macros: Expander,
    ) -> None:
        self.region = region
        self.source, self.tokens, self.kernels = region.source, region.tokens, kernels
        self.asm_macros = asm_macros
        self.launches = Launches(region, kernels)
        self.shared_arrays = SharedArrays(region)
        self.global_variables = GlobalVariables(region)
        self.functions = DeviceFunctions(region, kernels, attributes)
        # Treat a macro's body as code inside a function, because it may contain launches and shared arrays.
        self.scope = _Scope("block" if region.macro else "namespace")
        self.saved: list[_Scope] = []  # the scope at each #if without its #endif yet
        self.device_end = self.host_end = 0  # the indices where the current device or host function of a program ends
        whole_program = not region.alone and not region.macro
        self.member_templates = _member_templates(region.tokens) if whole_program else frozenset[str]()

    def run(self) -> None:
        for start, end, call in first_looks(self.tokens):
            self.region.edit(start, start + (not call.endswith("&")), call)
            self.region.edit(end, end, ")")
        for start, text in polls(self.tokens):
            self.region.edit(start, start, text)
        i = 0
        branches = [] if self.region.macro else self.source.directives
        next_branch = 0
        while i < len(self.tokens):
            while next_branch < len(branches) and branches[next_branch].start < self.tokens[i].start:
                self._follow_branch(branches[next_branch].name, i)
                next_branch += 1
            i = self._step(i)

    def _follow_branch(self, directive: str, i: int) -> None:
        """Follow an ``#if``. Its branches may open the same brace, so each starts in the scope before the ``#if``."""
        if directive in ("if", "ifdef", "ifndef"):
            self.saved.append(self.scope)
        elif directive == "endif":
            if self.saved:
                self.saved.pop()
        elif directive in ("else", "elif") and self.saved:
            before = self.saved[-1]
            ended = self.scope.start > before.start
            self.scope = before.started(i) if ended else before  # a statement begins here if one has ended

    def _step(self, i: int) -> int:
        token, scope = self.tokens[i], self.scope
        text = token.text
        if token.kind == "word":
            if text == "__shared__":
                return self._shared(i)
            if text in ("asm", "__asm__", "__asm"):
                return self._asm(i)
            if text == "__noinline__" and not self._in_attribute(i):
                # __noinline__ cannot be a macro, because the standard library uses __attribute__((__noinline__)).
                self.region.edit(token.start, token.end, "SIM_NOINLINE")
            if text == "__grid_constant__":
                translate_grid_constant(self.region, i)
            if text in LAUNCH_CALLS:
                self.launches.strip_cast(i)
            if text in self.kernels:
                self.launches.know_kernel(i)
            if text in ("gridDim", "blockDim") and i and self.tokens[i - 1].text in (".", "->"):
                # These gridDim and blockDim are members of cudaLaunchConfig_t. Rename them, because the simulator has
                # macros with these names.
                self.region.edit(token.start, token.start, PREFIX)
            if token.start in self.region.own:
                self.region.edit(token.start, token.start, PREFIX)
            if text in COPIES:
                self._copy(i)
            if token.start in self.region.on_host:
                first = self.region.on_host[token.start]
                self.region.edit(first, first, ON_HOST)
                self.region.edit(token.end, token.end, ")")
            inside = self.scope.kind not in ("namespace", "class")
            if text in self.member_templates and inside and _of_a_class(self.tokens, i):
                self.region.edit(token.start, token.start, "template ")  # nvcc accepts x.f<4>(), other compilers do not
            return i + 1
        if token.kind != "mark":
            return i + 1
        if text in ("(", "["):
            self.scope = replace(scope, parens=scope.parens + 1)
        elif text in (")", "]"):
            self.scope = replace(scope, parens=max(0, scope.parens - 1))
        elif text == "{":
            self._open(i)
        elif text == "}":
            self._close(i)
        elif text == ";" and scope.parens == 0:
            if scope.kind in ("namespace", "class"):
                self.global_variables.register(scope.start, i, scope.kind)
            self.scope = scope.started(i + 1)
        elif text == ":" and scope.parens == 0 and scope.kind in ("class", "function", "block"):
            if i - scope.start <= 1 or self.tokens[scope.start].text == "case":
                self.scope = scope.started(i + 1)
        elif text == "<" and is_triple(self.tokens, i, "<"):
            return self.launches.translate(i)
        elif text in ("<", ">") and i < self.device_end:
            return self._shift(i)
        return i + 1

    def _shift(self, i: int) -> int:
        """Translate ``a << b`` in device code to an operator of the simulator, unless ``b`` is a number.

        A GPU defines the result of a shift by 32 or more; C++ does not.
        """
        mark, following = self.tokens[i], self.tokens[i + 1 : i + 4]
        if len(following) < 3 or following[0].text != mark.text or following[0].start != mark.end:
            return i + 1
        amount, after = following[1:]
        known = amount.kind == "number" and after.text not in ("+", "-", "*", "/", "%")
        starts = amount.kind in ("word", "number") or amount.text in ("(", "-", "~")
        ended = self.tokens[i - 1].kind in ("word", "number") or self.tokens[i - 1].text in (")", "]")
        template = mark.text == ">" and angle_opening(self.tokens, i + 1) is not None
        if starts and ended and not known and not template and self.tokens[i - 1].text != "operator":
            self.region.edit(following[0].end, following[0].end, f" ::sim::gpu {mark.text * 2}")
        return i + 2

    def _in_attribute(self, i: int) -> bool:
        return i >= 3 and [t.text for t in self.tokens[i - 3 : i]] == ["__attribute__", "(", "("]

    def _open(self, i: int) -> None:
        scope = self.scope
        if scope.kind not in ("namespace", "class"):
            if self.region.macro and scope.outer is None:
                self.functions.check_launch_bounds(self.tokens[scope.start : i], i)
            self.scope = _Scope("block", i + 1, outer=scope)
            return
        declaration = self.tokens[scope.start : i]
        spend(self.source, self.tokens[i], len(declaration))  # a declaration is read again for each of its braces
        kind = kind_of_brace(declaration)
        if kind == "function" and scope.kind == "namespace":
            self.functions.make_inline(declaration)
        self.scope = _Scope(kind, i + 1, outer=scope)
        if kind == "function":
            self._enter_function(declaration, i)

    def _enter_function(self, declaration: Sequence[Token], brace: int) -> None:
        if not self.region.alone and not self.region.macro:
            words = words_before_parameters(declaration)
            end = closing(self.tokens, brace) or len(self.tokens)
            if "__device__" in words or "__global__" in words:
                self.device_end = end
            self.host_end = 0 if brace < self.device_end else end
        self.shared_arrays.declare_in_function(declaration, brace)
        if not self.region.macro:
            self.scope = replace(self.scope, after=self.functions.translate(declaration, brace))

    def _shared(self, i: int) -> int:
        start = self.scope.start
        if self.region.macro and self.scope.parens == 0 and self.scope.outer is None:  # start at the statement
            start = i
            while start and (self.tokens[start - 1].kind != "mark" or self.tokens[start - 1].text not in _ENDS):
                start -= 1
        return self.shared_arrays.translate(i, start, self.scope.kind)

    def _close(self, i: int) -> None:
        closed, outer = self.scope, self.scope.outer
        if outer is None:
            return
        if closed.after:
            self.region.edit(self.tokens[i].end, self.tokens[i].end, closed.after)
        ends = closed.kind in ("function", "namespace") or outer.kind not in ("namespace", "class")
        self.scope = outer.started(i + 1) if ends and outer.parens == 0 else outer

    def _copy(self, i: int) -> None:
        """Translate ``memcpy(to, from, bytes)`` to the simulator's function: compilers do not instrument each call."""
        tokens = self.tokens
        first, before = i, tokens[i - 1].text if i else ""
        if before == "::":
            own = i >= 2 and tokens[i - 2].text != "std" and (tokens[i - 2].kind == "word" or tokens[i - 2].text == ">")
            if own:
                return
            first = i - 2 if i >= 2 and tokens[i - 2].text == "std" else i - 1
        called = i + 1 < len(tokens) and tokens[i + 1].text == "("
        if before in (".", "->", "void") or not (called or self.region.macro):
            return
        self.region.replace(tokens[first].start, tokens[i].end, COPIES[tokens[i].text])

    def _asm(self, i: int) -> int:
        tokens = self.tokens
        paren = i + 1
        while paren < len(tokens) and tokens[paren].text in ("volatile", "__volatile__", "goto", "inline"):
            paren += 1
        if paren >= len(tokens) or tokens[paren].text != "(":
            return i + 1
        close = closing(tokens, paren)
        if close is None:
            raise self.source.error(tokens[i], "this asm statement has no closing ')'")
        if i < self.host_end:
            return close + 1  # host code
        self.region.refuse_directives(tokens[i].start, tokens[close].end, "an asm statement")
        statement = tokens[paren + 1 : close]
        expanded = self.asm_macros.expanded(statement, self.region.parameters)
        try:
            call = ptx_asm.translate(expanded, self.source.architecture)
        except ptx_asm.UnknownPtx as problem:
            raise self.source.error(tokens[i], str(problem), problem.hint) from None
        if [token.text for token in expanded] != [token.text for token in statement]:
            # A header or a pragma may define a macro again. The compiler checks that it expands the same macros.
            call = (
                f"do {{ SIM_SAME_TEXT(SIM_TEXT({_line(statement)}), SIM_TEXT({_line(expanded)})); {call}; }} while (0)"
            )
        self.region.replace(tokens[i].start, tokens[close].end, call)
        return close + 1
