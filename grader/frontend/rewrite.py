"""The simulator's front end: translates a CUDA file to C++17.

It changes only the syntax that C++ does not have. The simulator's headers define the rest: there, ``__global__`` and
``threadIdx`` are macros. These are the main changes:

* ``kernel<<<grid, block, smem, stream>>>(args)`` becomes a call of ``sim::launch``;
* ``__shared__`` and ``extern __shared__`` declarations become references into the block's shared memory;
* local arrays whose address is taken get red zones (``local_arrays.py``);
* ``__device__`` and ``__constant__`` variables are registered, so that their bounds are known;
* ``asm("ptx" : outputs : inputs)`` becomes a call into ``sim::ptx``, for a closed set of instructions.

All newlines stay where they are, so the compiler's line numbers are those of the learner's file. A construct that
cannot be simulated causes a :class:`RewriteError`, which names the construct and its line.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.frontend import ptx_asm
from grader.frontend.brackets import unpaired
from grader.frontend.cas_loops import first_looks
from grader.frontend.constructs import check_includes, check_words
from grader.frontend.declarations import (
    DEVICE_VARIABLES,
    is_variable,
    kind_of_brace,
    names_of_variables,
    parse_shared,
    strip_attributes,
    template_header,
    words_before_parameters,
)
from grader.frontend.execution_space import check_execution_spaces
from grader.frontend.host_names import host_names
from grader.frontend.kernel_definitions import KernelDefinition, LaunchBounds, cluster_dimensions, find_kernels
from grader.frontend.launch_syntax import angle_opening, callee_start, configuration_end, is_triple
from grader.frontend.limits import MOST_TRANSLATED, spend
from grader.frontend.local_arrays import LocalArrays
from grader.frontend.own_names import PREFIX, own_names
from grader.frontend.polls import POLLING, polls
from grader.frontend.ptx_instructions import architecture_for
from grader.frontend.rewrite_error import RewriteError, error_at
from grader.frontend.tokens import Source, Token, closing, join, opening, split_commas

__all__ = ["Edit", "RewriteError", "Rewritten", "rewrite"]

# An attribute for the lambda that calls a kernel. It only passes the arguments, so its accesses are not checked.
_UNCHECKED = '__attribute__((no_sanitize("thread")))'
_LAST_WORDS_OF_TYPES = {"bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double"}
COPIES = {
    f"{kind}{name}": f"::sim::{new}"
    for name, new in (("memcpy", "copy_bytes"), ("memmove", "move_bytes"), ("memset", "set_bytes"))
    for kind in ("", "__builtin_")
}
_ON_HOST = "::sim::host_name("
_LONGEST_TEMPLATE_ARGUMENTS = 64
"""The maximum number of tokens in the template arguments after a kernel's name, where it is cast to a pointer."""
_LAUNCH_CALLS = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC"}


@dataclass(frozen=True)
class Edit:
    """A replacement of the characters ``start`` to ``end`` of the original text.

    ``new_start`` is the position of the new text in the translated file.
    """

    start: int
    end: int
    text: str
    new_start: int = 0


@dataclass(frozen=True)
class Rewritten:
    """A translated file: the C++ text, the original text, and the edits, which map positions between the two."""

    text: str
    original: str
    edits: tuple[Edit, ...] = ()

    def original_position(self, position: int) -> int:
        """Return the position in the original text for a position in the C++ text."""
        before = bisect.bisect_right(self.edits, position, key=lambda edit: edit.new_start) - 1
        if before < 0:
            return position
        edit = self.edits[before]
        end = edit.new_start + len(edit.text)
        return edit.start if position < end else position + edit.end - end

    def line(self, number: int) -> str:
        """Return a line of the C++ text; empty if there is no such line."""
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def original_column(self, line: int, column: int) -> int:
        """Return the column in the original line for a column in the same line of the C++ text."""
        if not 1 <= line <= len(self._lines):
            return column
        position = self.original_position(self._line_starts[line - 1] + column - 1)
        starts = self._original_line_starts
        if bisect.bisect_right(starts, position) != line:
            return 1
        return position - starts[line - 1] + 1

    @functools.cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        return _starts(self._lines)

    @functools.cached_property
    def _original_line_starts(self) -> list[int]:
        return _starts(self.original.split("\n"))


def _starts(lines: Sequence[str]) -> list[int]:
    """Return the position of the first character of each line."""
    return [0, *itertools.accumulate(len(line) + 1 for line in lines[:-1])]


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


@dataclass
class _Region:
    """A sequence of tokens that is translated separately: the file, or the body of one ``#define``."""

    tokens: Sequence[Token]
    macro: str = ""
    parameters: frozenset[str] = frozenset()
    edits: list[Edit] = field(default_factory=list)

    @property
    def newline(self) -> str:
        return "\\\n" if self.macro else "\n"


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
    try:
        check_execution_spaces(source)
    except RewriteError:
        if error := unpaired(source):
            raise error from None
        raise
    kernels = find_kernels(source, no_references=not alone)
    regions = [_Region(source.tokens)]
    regions += [_Region(m.body, m.name, frozenset(m.parameters or ())) for m in source.macros if m.body]
    edits: list[Edit] = []
    on_host = host_names(source)
    launch_bounds = LaunchBounds(source)
    for region in regions:
        _RegionRewriter(source, region, kernels, launch_bounds, alone, on_host).run()
        edits.extend(region.edits)
    return _apply(source.text, edits)


def _apply(text: str, edits: list[Edit]) -> Rewritten:
    out: list[str] = []
    placed: list[Edit] = []
    position = length = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        kept = text[position : edit.start]
        length += len(kept)
        placed.append(Edit(edit.start, edit.end, edit.text, length))
        out += [kept, edit.text]
        length += len(edit.text)
        position = edit.end
    out.append(text[position:])
    return Rewritten("".join(out), text, tuple(placed))


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


class _RegionRewriter:
    """Translates the tokens of a region in one pass, in which it keeps track of the open braces."""

    def __init__(
        self,
        source: Source,
        region: _Region,
        kernels: Mapping[str, list[KernelDefinition]],
        launch_bounds: LaunchBounds,
        alone: bool,
        on_host: Mapping[int, int],
    ) -> None:
        self.source = source
        self.on_host = on_host
        self.alone = alone
        self.kernels = kernels
        self.launch_bounds = launch_bounds
        self.region = region
        self.tokens = region.tokens
        # Treat a macro's body as code inside a function, because it may contain launches and shared arrays.
        self.scope = _Scope("block" if region.macro else "namespace")
        # The text that declares a __shared__ array at namespace scope inside a function, by the array's name.
        self.file_arrays: dict[str, str] = {}
        self.saved: list[_Scope] = []  # the scope at each #if without its #endif yet
        self.device_end = self.host_end = 0  # the indices where the current device or host function of a program ends
        self.launched = 0  # the index after the "(" of the last launch's arguments
        self.uncast = -1  # the index after the last cast that was removed
        self.own = own_names(region.tokens)
        self.member_templates = frozenset() if alone or region.macro else _member_templates(region.tokens)

    def run(self) -> None:
        for start, end, call in first_looks(self.tokens):
            self._edit(start, start + (not call.endswith("&")), call)
            self._edit(end, end, ")")
        for start in polls(self.tokens):
            self._edit(start, start, POLLING)
        i = 0
        branches = [] if self.region.macro else self.source.directives
        next_branch = 0
        while i < len(self.tokens):
            while next_branch < len(branches) and branches[next_branch].start < self.tokens[i].start:
                self._follow_branch(branches[next_branch].name, i)
                next_branch += 1
            i = self._step(i)

    # -- scopes --------------------------------------------------------------------------------------------------

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

    def _refuse_directives(self, start: int, end: int, what: str) -> None:
        """Raise RewriteError for a preprocessor line inside a construct that is replaced as a whole."""
        directive = None if self.region.macro else self.source.directive_between(start, end)
        if directive:
            raise error_at(
                self.source,
                Token("mark", "#", directive.start, directive.end),
                f"#{directive.name} inside {what} is not simulated",
                "Write the whole statement in each branch.",
            )

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
                self._edit(token.start, token.end, "SIM_NOINLINE")
            if text == "__grid_constant__":
                self._grid_constant(i)
            if text in _LAUNCH_CALLS:
                self._strip_cast(i)
            if text in self.kernels:
                self._know_kernel(i)
            if text in ("gridDim", "blockDim") and i and self.tokens[i - 1].text in (".", "->"):
                # These gridDim and blockDim are members of cudaLaunchConfig_t. Rename them, because the simulator has
                # macros with these names.
                self._edit(token.start, token.start, PREFIX)
            if token.start in self.own:
                self._edit(token.start, token.start, PREFIX)
            if text in COPIES:
                self._copy(i)
            if token.start in self.on_host:
                first = self.on_host[token.start]
                self._edit(first, first, _ON_HOST)
                self._edit(token.end, token.end, ")")
            inside = self.scope.kind not in ("namespace", "class")
            if text in self.member_templates and inside and _of_a_class(self.tokens, i):
                self._edit(token.start, token.start, "template ")  # nvcc accepts x.f<4>(), other compilers do not
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
                self._register_globals(scope.start, i)
            self.scope = scope.started(i + 1)
        elif text == ":" and scope.parens == 0 and scope.kind in ("class", "function", "block"):
            if i - scope.start <= 1 or self.tokens[scope.start].text == "case":
                self.scope = scope.started(i + 1)
        elif text == "<" and is_triple(self.tokens, i, "<"):
            return self._launch(i)
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
            self._edit(following[0].end, following[0].end, f" ::sim::gpu {mark.text * 2}")
        return i + 2

    def _in_attribute(self, i: int) -> bool:
        return i >= 3 and [t.text for t in self.tokens[i - 3 : i]] == ["__attribute__", "(", "("]

    def _open(self, i: int) -> None:
        scope = self.scope
        if scope.kind not in ("namespace", "class"):
            if self.region.macro and scope.outer is None:
                self._check_launch_bounds(self.tokens[scope.start : i], i)
            self.scope = _Scope("block", i + 1, outer=scope)
            return
        declaration = self.tokens[scope.start : i]
        spend(self.source, self.tokens[i], len(declaration))  # a declaration is read again for each of its braces
        kind = kind_of_brace(declaration)
        if kind == "function" and scope.kind == "namespace":
            self._make_inline(declaration)
        self.scope = _Scope(kind, i + 1, outer=scope)
        if kind == "function" and not self.alone and not self.region.macro:
            words = words_before_parameters(declaration)
            if "__device__" in words or "__global__" in words:
                self.device_end = closing(self.tokens, i) or len(self.tokens)
            self.host_end = 0 if i < self.device_end else closing(self.tokens, i) or len(self.tokens)
        if kind == "function" and self.file_arrays:
            self._declare_file_arrays(declaration, i)
        if kind == "function" and not self.region.macro:
            self._register_clusters(declaration, i)
            self._check_launch_bounds(declaration, i)
            self._guard_local_arrays(declaration, i)
            self._take_from_heap(declaration, i)

    def _register_clusters(self, declaration: Sequence[Token], brace: int) -> None:
        """Register the dimensions in ``__cluster_dims__`` by the kernel's address, so that a launch can look them up.

        A kernel template is not registered; instead, the dimensions are passed to each of its launches. In both cases
        the kernel's threads check that the launch used the dimensions.
        """
        words = words_before_parameters(declaration)
        cluster = cluster_dimensions(declaration)
        if "__global__" not in words or not cluster:
            return
        check = f" ::sim::require_clusters(::sim::Site{{__LINE__, 0}}, {cluster});"
        self._edit(self.tokens[brace].end, self.tokens[brace].end, check)
        if not any(t.text == "template" for t in declaration):
            name = words[-1]
            known = f" static ::sim::RegisterClusters sim_clusters_{name}_{brace}((const void*)&{name}, {cluster});"
            self.scope = replace(self.scope, after=known)

    def _check_launch_bounds(self, declaration: Sequence[Token], brace: int) -> None:
        """Insert a check of ``__launch_bounds__`` into the kernel: a GPU refuses a launch with more threads."""
        words = words_before_parameters(self.launch_bounds.expanded(declaration))
        if "__global__" not in words:
            return
        most = self.launch_bounds.most_threads(declaration)
        if not most:  # another declaration of the kernel may have it
            name = next((t for t in declaration if t.text == words[-1]), declaration[-1])
            line = self.source.line(name.start)
            most = next((k.most_threads for k in self.kernels.get(name.text, ()) if k.line == line), "")
        if most:
            end = self.tokens[brace].end
            self._edit(end, end, f" ::sim::require_launch_bounds(static_cast<unsigned>({most}));")

    def _guard_local_arrays(self, declaration: Sequence[Token], brace: int) -> None:
        words = set(words_before_parameters(declaration))
        if not words & {"__device__", "__global__"} or words & {"constexpr", "consteval"}:
            return
        end = closing(self.tokens, brace)
        if end is None:  # the compiler will report it
            return
        spend(self.source, self.tokens[brace], (end - brace) // 8)
        for start, stop, text in LocalArrays(self.source, self.tokens, brace, end).edits():
            self._edit(start, stop, text)

    def _take_from_heap(self, declaration: Sequence[Token], brace: int) -> None:
        """Make ``new`` in device code allocate from the simulated device heap (``sim/heap.h``)."""
        if not {"__global__", "__device__"} & set(words_before_parameters(declaration)):
            return
        end = closing(self.tokens, brace) or len(self.tokens)
        spend(self.source, self.tokens[brace], (end - brace) // 8)
        for token, after in zip(self.tokens[brace:end], self.tokens[brace + 1 : end]):
            if token.kind == "word" and token.text == "new" and after.text != "(":
                self._edit(token.end, token.end, " (::sim::heap)")

    @functools.cached_property
    def _macros(self) -> set[str]:
        return {macro.name for macro in self.source.macros}

    def _make_inline(self, declaration: Sequence[Token]) -> None:
        """Make a ``__device__`` function inline, as nvcc does.

        The checks depend on this: g++ does not instrument the copy of an argument passed by value, unless the function
        is inlined (see host_defines.h). A function whose declaration uses a macro of the file is unchanged, because the
        macro may contain ``inline``, which must not occur twice.
        """
        words = words_before_parameters(declaration)
        if "__device__" not in words or "__global__" in words:
            return
        if any(("inline" in word.lower() and word != "__noinline__") or word in self._macros for word in words):
            return
        if any(t.text in ("noinline", "__noinline") for t in declaration):
            return  # the function has the attribute noinline
        head = strip_attributes(declaration)
        at = next(k for k, t in enumerate(head) if t.text == "__device__")
        at = 0 if any(t.kind == "mark" for t in head[:at]) else at  # 0 for const T& __device__ f(...)
        self._edit(head[at].start, head[at].start, "SIM_HELPER ")

    def _close(self, i: int) -> None:
        closed, outer = self.scope, self.scope.outer
        if outer is None:
            return
        if closed.after:
            self._edit(self.tokens[i].end, self.tokens[i].end, closed.after)
        ends = closed.kind in ("function", "namespace") or outer.kind not in ("namespace", "class")
        self.scope = outer.started(i + 1) if ends and outer.parens == 0 else outer

    # -- launches ------------------------------------------------------------------------------------------------

    def _launch(self, i: int) -> int:
        tokens = self.tokens
        first = callee_start(tokens, i)
        if first is None:
            raise error_at(self.source, tokens[i], "there is no kernel's name before '<<<'")
        if first < self.launched:
            raise error_at(
                self.source,
                tokens[i],
                "the expression before '<<<' contains another launch",
                "Write only the kernel's name before '<<<'.",
            )
        end = configuration_end(tokens, i + 3)
        if end is None:
            raise error_at(self.source, tokens[i], "the launch has '<<<' without a matching '>>>('")
        paren = end + 3
        close = closing(tokens, paren)
        if close is None:
            raise error_at(self.source, tokens[paren], "the argument list of the launch has no closing ')'")
        callee = join(tokens[first:i])
        configuration = self._verbatim(i + 3, end)
        if not tokens[i + 3 : end]:
            raise error_at(self.source, tokens[i], "the launch has no grid and block between '<<<' and '>>>'")
        count = len(split_commas(tokens[i + 3 : end]))
        if not 2 <= count <= 4:
            raise error_at(
                self.source,
                tokens[i],
                f"the launch has {count} value{'s' if count > 1 else ''} between '<<<' and '>>>'",
                "A launch takes the grid, the block, and optionally the bytes of dynamic shared memory and the stream.",
            )
        name = self._literal(tokens[first:i], callee)
        address = f".of((const void*)({callee}))" if self._has_address(tokens[first:i]) else ""
        address += self._clusters_of_template(tokens[first:i])
        newlines = self._newlines(tokens[first].start, tokens[i].start)
        gap = self._newlines(tokens[end + 2].end, tokens[paren].start)
        comma = ", " if close > paren + 1 else ""
        self._zeros(tokens[first:i], paren + 1, close)
        head = f"::sim::launch({newlines}::sim::LaunchConfig({configuration}){address}, {name}, "
        head += f"[=](const auto&... sim_args) {_UNCHECKED} {{ {callee}(sim_args...); }}{gap}{comma}"
        self._edit(tokens[first].start, tokens[paren].end, head)
        # The arguments stay as they are. The ")" after them now closes the call of sim::launch.
        self.launched = paren + 1
        return paren + 1

    def _zeros(self, callee: Sequence[Token], start: int, close: int) -> None:
        """Replace the arguments ``NULL``, ``0`` (for a pointer) and ``{}`` of a launch by objects of the simulator.

        ``sim::launch`` is a template, which could not deduce the type of the original arguments.
        """
        opened = angle_opening(callee, len(callee) - 1) if callee[-1].text == ">" else None
        known = self.kernels.get(callee[opened - 1 if opened else -1].text, [])
        for k, part in enumerate(split_commas(self.tokens[start:close])):
            text = "".join(token.text for token in part)
            pointer = bool(known) and all(kernel.takes_pointer(k) for kernel in known)
            if text == "NULL" or (text == "0" and pointer):
                self._edit(part[0].start, part[-1].end, "::sim::Zero()")
            elif text == "{}":
                self._edit(part[0].start, part[-1].end, "::sim::Empty()")

    def _clusters_of_template(self, callee: Sequence[Token]) -> str:
        opened = angle_opening(callee, len(callee) - 1) if callee[-1].text == ">" else None
        name = callee[opened - 1].text if opened else callee[-1].text
        cluster = next((k.cluster for k in self.kernels.get(name, []) if k.cluster and k.is_template), "")
        return f".in_clusters({cluster})" if cluster else ""

    def _literal(self, callee: Sequence[Token], text: str) -> str:
        """Return the kernel's name as a C++ string literal. A macro's parameter in it becomes ``#parameter``."""
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        if not {t.text for t in callee} & self.region.parameters:
            return f'"{quoted}"'
        parts = []
        for before, token in zip([None, *callee], callee):
            pasted = before is not None and before.text == "##"
            if token.text == "##":
                continue
            if token.text in self.region.parameters and not pasted:
                parts.append(f"#{token.text}")
            else:
                parts.append('"' + token.text.replace("\\", "\\\\").replace('"', '\\"') + '"')
        return " ".join(parts)

    def _has_address(self, callee: Sequence[Token]) -> bool:
        """Return whether ``(const void*)(callee)`` is valid C++.

        It is not if the callee is overloaded, or a template whose arguments must be deduced.
        """
        if any(t.text == "##" for t in callee):
            return False
        given = None
        if callee[-1].text == ">":
            opened = angle_opening(callee, len(callee) - 1)
            if opened is None:
                return False
            given = len(split_commas(callee[opened + 1 : -1]))
            name = callee[opened - 1].text
        else:
            name = callee[-1].text
        known = self.kernels.get(name)
        spend(self.source, callee[0], len(self.kernels if known is None else known))
        if known is None:
            if name in self.region.parameters:
                return given is not None and all(given >= k.needed for ks in self.kernels.values() for k in ks)
            return True
        if len({k.signature for k in known}) > 1 or not all(k.alone for k in known):
            return False
        return all((given or 0) >= k.needed for k in known)

    def _strip_cast(self, i: int) -> None:
        """Remove the cast in ``cudaLaunchCooperativeKernel((void*)kernel, ...)``: the simulator needs the type."""
        tokens = self.tokens
        if i + 2 >= len(tokens) or tokens[i + 1].text != "(":
            return
        first = i + 2
        if tokens[i].text == "cudaLaunchKernelExC":  # the kernel is the second argument
            while first < len(tokens) and tokens[first].text not in (",", ")", ";"):
                first += 1
            first += 1
            if first + 1 >= len(tokens):
                return
        if tokens[first].text == "(":
            begin, end = first + 1, closing(tokens, first)
        elif tokens[first].text in ("reinterpret_cast", "static_cast") and tokens[first + 1 : first + 2]:
            begin = first + 2
            end = next((k for k in range(begin, min(begin + 4, len(tokens))) if tokens[k].text == ">"), None)
        else:
            return
        if end and "".join(t.text for t in tokens[begin : min(end, begin + 4)]) in (
            "void*",
            "constvoid*",
            "voidconst*",
        ):
            self._edit(tokens[first].start, tokens[end].end, self._newlines(tokens[first].start, tokens[end].end))
            self.uncast = end + 1

    def _know_kernel(self, i: int) -> None:
        """Register the kernel in ``(void*)kernel``, so that the simulator can find its type by the address."""
        tokens = self.tokens
        first = callee_start(tokens, i + 1)
        last = i
        if tokens[i + 1 : i + 2] and tokens[i + 1].text == "<":
            ends = range(i + 2, min(i + _LONGEST_TEMPLATE_ARGUMENTS, len(tokens)))
            last = next((k for k in ends if tokens[k].text == ">" and angle_opening(tokens, k) == i + 1), i)
        if first is None or any(t.text == "##" for t in tokens[first : last + 2]):
            return
        before = first - 1 - (tokens[first - 1].text == "&")
        if before < 3 or self.uncast in (before, before + 1):
            return
        opened = (
            before if tokens[before].text == "(" else opening(tokens, before) if tokens[before].text == ")" else None
        )
        if opened is None:
            return
        cast = tokens[opened + 1 : before] if opened < before else tokens[max(0, opened - 6) : opened]
        if not re.search(r"(^|<)(constvoid|voidconst|void)\*>?$", "".join(t.text for t in cast)):
            return
        name = self._literal(tokens[first : last + 1], join(tokens[first : last + 1]))
        self._edit(tokens[first].start, tokens[first].start, f"::sim::known_kernel({name}, ")
        self._edit(tokens[last].end, tokens[last].end, ")")

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
        new = COPIES[tokens[i].text]
        self._edit(tokens[first].start, tokens[i].end, new + self._newlines(tokens[first].start, tokens[i].end))

    # -- parameters ------------------------------------------------------------------------------------------------

    def _grid_constant(self, i: int) -> None:
        """Turn ``const __grid_constant__ T name`` into ``const T& name``, so that all threads see one address."""
        first = last = i
        while first > 0 and self.tokens[first - 1].text not in ("(", ","):
            first -= 1
        depth = 0
        while last + 1 < len(self.tokens):
            text = self.tokens[last + 1].text
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(text, 0)
            if depth < 0 or (depth == 0 and text in (",", "=")):
                break
            last += 1
        parameter = [t for t in self.tokens[first : last + 1] if t.text != "__grid_constant__"]
        if not any(t.text == "const" for t in parameter) or any(t.text in ("&", "&&") for t in parameter):
            raise error_at(
                self.source,
                self.tokens[i],
                "a __grid_constant__ parameter must be const and must not be a reference",
                "Write const __grid_constant__ TYPE name.",
            )
        words = [t for t in parameter if t.text != "const"]
        named = len(words) > 1 and words[-1].kind == "word" and words[-2].text != "::"
        named = named and words[-1].text not in _LAST_WORDS_OF_TYPES
        place = words[-1].start if named else words[-1].end
        self._edit(place, place, "&")

    # -- shared memory -------------------------------------------------------------------------------------------

    def _shared(self, i: int) -> int:
        tokens, scope = self.tokens, self.scope
        start = scope.start
        if self.region.macro and scope.parens == 0 and scope.outer is None:
            start = self._macro_statement_start(i)
        end, depth = i, 0
        while end < len(tokens):
            text = tokens[end].text if tokens[end].kind == "mark" else ""
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
                if depth < 0:
                    break
            elif text == ";" and depth == 0:
                break
            end += 1
        declaration = list(tokens[start:end])
        if not declaration:
            raise error_at(self.source, tokens[i], "this __shared__ declaration is empty")
        spend(self.source, tokens[i], len(declaration))
        self._refuse_directives(declaration[0].start, declaration[-1].end, "a __shared__ declaration")
        dynamic = any(t.text == "extern" for t in declaration)
        if (scope.kind == "class" or (scope.kind == "namespace" and self.alone)) and not dynamic:
            raise error_at(
                self.source,
                tokens[i],
                "a __shared__ array is declared outside a kernel",
                "Declare it inside the kernel, or as 'extern __shared__ T name[];'.",
            )
        parsed = parse_shared(self.source, declaration)
        statements = []
        for name, type_id, initializer in parsed.declarators:
            if initializer:
                raise error_at(
                    self.source,
                    tokens[i],
                    f"the __shared__ variable {name} has an initializer",
                    "CUDA does not allow initializers here: let threads write the variable, then call __syncthreads().",
                )
            label = f"#{name}" if name in self.region.parameters else f'"{name}"'
            # All shared arrays are aligned to 16 bytes.
            needed = parsed.alignment and parsed.alignment not in ("1", "2", "4", "8", "16")
            alignment = f", {parsed.alignment}" if needed else ""
            if dynamic:
                pointer = f"auto* {name} = ::sim::dynamic_shared<{type_id}>({label})"
                if scope.kind == "namespace":
                    self.file_arrays[name] = pointer
                else:
                    statements.append(pointer)
            elif scope.kind == "namespace":  # all functions that name it share one array
                statements.append(f"struct sim_shared_{name} {{}}")
                site = f"sim_shared_{name}()"
                self.file_arrays[name] = f"auto& {name} = ::sim::shared_array<{type_id}>({label}, {site}{alignment})"
            else:
                if parsed.inline_type:
                    statements.append(f"typedef {parsed.inline_type} sim_type_{name}")
                    type_id = type_id.replace(parsed.inline_type, f"sim_type_{name}", 1)
                statements.append(f"auto& {name} = ::sim::shared_array<{type_id}>({label}, SIM_SITE{alignment})")
        stop = tokens[end].start if end < len(tokens) else declaration[-1].end
        kept = self._newlines(declaration[0].start, stop)
        self._edit(declaration[0].start, stop, "; ".join(statements) + kept)
        return end

    def _macro_statement_start(self, i: int) -> int:
        while i > 0 and not (self.tokens[i - 1].text in (";", "{", "}") and self.tokens[i - 1].kind == "mark"):
            i -= 1
        return i

    def _declare_file_arrays(self, declaration: Sequence[Token], brace: int) -> None:
        """Insert the declaration of each ``__shared__`` array at namespace scope into a function that names it."""
        end = closing(self.tokens, brace) or len(self.tokens)
        used = {t.text for t in self.tokens[brace:end] if t.kind == "word"}
        own = {t.text for t in declaration if t.kind == "word"}
        for type_word, name in zip(self.tokens[brace:end], self.tokens[brace + 1 : end]):
            if name.text in self.file_arrays and type_word.kind == "word" and type_word.text != "return":
                own.add(name.text)
        spend(self.source, self.tokens[brace], len(self.file_arrays))
        text = "".join(
            f" {declaration};" for name, declaration in self.file_arrays.items() if name in used and name not in own
        )
        if text:
            self._edit(self.tokens[brace].end, self.tokens[brace].end, text)

    # -- __device__ and __constant__ variables ---------------------------------------------------------------------

    def _register_globals(self, start: int, end: int) -> None:
        declaration = list(self.tokens[start:end])
        spend(self.source, self.tokens[end], len(declaration))
        kinds = [DEVICE_VARIABLES[t.text] for t in declaration if t.text in DEVICE_VARIABLES]
        words = {t.text for t in declaration}
        if not kinds or words & {"__shared__", "extern", "using", "typedef"}:
            return
        if "template" in words:
            self._register_variable_template(declaration, end)
            return
        if not is_variable(declaration):
            return
        names = names_of_variables(declaration)
        kind = "constant" if "constant" in kinds else kinds[0]
        if self.scope.kind == "class":
            return
        labels = [name.replace("::", "_") for name in names]
        text = "".join(
            f" static ::sim::RegisterGlobal sim_global_{label}("
            f'"{name}", (void*)&{name}, sizeof({name}), ::sim::GlobalKind::{kind}{self._named(name)});'
            for name, label in zip(names, labels, strict=True)
        )
        qualifier = next(t for t in declaration if t.text in DEVICE_VARIABLES)
        in_order = "SIM_IN_ORDER" if len(names) == 1 else "SIM_SEVERAL_IN_ORDER"
        internal = self.source.internal_variables and "static" not in words and not any("::" in name for name in names)
        self._edit(qualifier.start, qualifier.start, f"{'static ' if internal else ''}{in_order} ")
        zone = "SIM_INTERNAL_ZONE" if internal else "SIM_ZONE"
        self._edit(self.tokens[end].end, self.tokens[end].end, f"{text} {zone}({labels[0]})")

    def _named(self, variable: str) -> str:
        return ", true" if variable.rpartition("::")[2] in self._names_on_host else ""

    @functools.cached_property
    def _names_on_host(self) -> set[str]:
        return {token.text for token in self.tokens if token.start in self.on_host}

    def _register_variable_template(self, declaration: Sequence[Token], end: int) -> None:
        """Register each instantiation of a variable template, such as ``template <int n> __device__ int x``.

        An object of class ``RegisterGlobal`` registers the variable. The variable's alignment attribute refers to this
        object, so that C++ instantiates the object whenever it instantiates the variable.
        """
        if self.scope.kind != "namespace" or not is_variable(declaration):
            return
        qualifier = next(t for t in declaration if t.text in DEVICE_VARIABLES)
        header, names = template_header(declaration), names_of_variables(declaration)
        if header is None or len(names) != 1:
            what = f"this form of a {qualifier.text} variable template is not simulated"
            raise error_at(self.source, qualifier, what, "Name each template parameter, and do not specialize it.")
        [name] = names
        kind = "constant" if any(t.text == "__constant__" for t in declaration) else "device"
        template, known = f"template <{header.parameters}>", f"sim_known_{name.replace('::', '_')}"
        variable = f"{name}<{header.arguments}>"
        before = f"namespace {{ {template} struct {known} {{ static ::sim::RegisterGlobal variable; }}; }} "
        self._edit(declaration[0].start, declaration[0].start, before)
        registered = f"::sim::Known<&{known}<{header.arguments}>::variable>::alignment"
        self._edit(qualifier.start, qualifier.start, f"__attribute__((aligned({registered}))) ")
        text = f" namespace {{ {template} ::sim::RegisterGlobal {known}<{header.arguments}>::variable("
        text += f'"{name}", (void*)&{variable}, sizeof({variable}), ::sim::GlobalKind::{kind}); }}'
        self._edit(self.tokens[end].end, self.tokens[end].end, text)

    # -- inline PTX ------------------------------------------------------------------------------------------------

    def _asm(self, i: int) -> int:
        tokens = self.tokens
        paren = i + 1
        while paren < len(tokens) and tokens[paren].text in ("volatile", "__volatile__", "goto", "inline"):
            paren += 1
        if paren >= len(tokens) or tokens[paren].text != "(":
            return i + 1
        close = closing(tokens, paren)
        if close is None:
            raise error_at(self.source, tokens[i], "this asm statement has no closing ')'")
        if i < self.host_end:
            return close + 1  # host code
        self._refuse_directives(tokens[i].start, tokens[close].end, "an asm statement")
        try:
            call = ptx_asm.translate(tokens[paren + 1 : close], self.source.architecture)
        except ptx_asm.UnknownPtx as problem:
            raise error_at(self.source, tokens[i], str(problem), problem.hint) from None
        self._edit(tokens[i].start, tokens[close].end, call + self._newlines(tokens[i].start, tokens[close].end))
        return close + 1

    # -- text ------------------------------------------------------------------------------------------------------

    def _edit(self, start: int, end: int, text: str) -> None:
        self.source.translated += len(text)
        if self.source.translated > MOST_TRANSLATED:
            place = Token("mark", "", start, end)
            raise error_at(
                self.source,
                place,
                "the file becomes too large in translation",
                "Replace repeated code by loops or functions.",
            )
        self.region.edits.append(Edit(start, end, text))

    def _newlines(self, start: int, end: int) -> str:
        return self.region.newline * self.source.text.count("\n", start, end)

    def _verbatim(self, first: int, last: int) -> str:
        """Return the source text of the tokens ``first`` to ``last``, after the renames of other steps."""
        start, parts = self.tokens[first - 1].end, []
        for token in self.tokens[first:last]:
            member = token.text in ("gridDim", "blockDim") and self.source.text[start : token.start].endswith(
                (".", "->")
            )
            if self.on_host.get(token.start) == token.start:
                parts += [self.source.text[start : token.start], _ON_HOST, token.text, ")"]
                start = token.end
            elif token.start in self.own or member:
                parts += [self.source.text[start : token.start], PREFIX]
                start = token.start
        return "".join([*parts, self.source.text[start : self.tokens[last].start]])
