"""The simulator's front end: turns a CUDA file into C++ that any C++17 compiler takes.

Only what C++ cannot express is touched; headers do the rest (``__global__`` and ``threadIdx`` are macros there).

* ``kernel<<<grid, block, smem, stream>>>(args)`` becomes a call of ``sim::launch``;
* ``__shared__`` and ``extern __shared__`` declarations become references into the block's shared memory;
* ``__device__`` and ``__constant__`` variables are registered, so that their bounds are known;
* ``asm("ptx" : outputs : inputs)`` becomes a call into ``sim::ptx``, for a closed set of instructions.

Every newline stays where it was, so the compiler's line numbers are the learner's. Whatever cannot be simulated is a
:class:`RewriteError` that names the construct and its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.errors import BuildError
from grader.simulator import ptx_asm
from grader.simulator.constructs import check_includes, check_words
from grader.simulator.kernels import Kernel, find_kernels
from grader.toolchain.tokens import Source, Token, closing, join, opening, split_commas

_ATTRIBUTES = {"__attribute__", "alignas", "__align__", "__launch_bounds__", "__declspec", "decltype", "noexcept"}
_ATTRIBUTES |= {"__maxnreg__", "__cluster_dims__", "requires", "explicit"}
_QUALIFIERS = {"__shared__", "static", "extern", "inline", "__device__", "thread_local"}
_LAUNCH_CALLS = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel"}
_DEVICE_VARIABLE = {"__device__": "device", "__constant__": "constant", "__managed__": "device"}


class RewriteError(BuildError):
    """A construct that the simulator does not have, at a line and column of the learner's file."""

    def __init__(self, line: int, column: int, message: str, hint: str = "", *, source_line: str = "") -> None:
        super().__init__(message, hint)
        self.line = line
        self.column = column
        self.source_line = source_line
        self.diagnostics: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Edit:
    """Characters ``start`` to ``end`` of the original were replaced; the new ones begin at ``new_start``."""

    start: int
    end: int
    text: str
    new_start: int = 0


@dataclass(frozen=True)
class Rewritten:
    """The C++ text, and the edits that made it (in order), for mapping a position back."""

    text: str
    original: str
    edits: tuple[Edit, ...] = ()

    def original_position(self, position: int) -> int:
        """The character of the original that a character of the C++ text comes from."""
        shift = 0
        for edit in self.edits:
            if position < edit.new_start:
                break
            if position < edit.new_start + len(edit.text):
                return edit.start
            shift = edit.end - (edit.new_start + len(edit.text))
        return position + shift

    def original_column(self, line: int, column: int) -> int:
        """The column, on the same line of the original, of a column of the C++ text."""
        lines = self.text.split("\n", line)
        if line > len(lines):
            return column
        start = sum(len(part) + 1 for part in lines[: line - 1])
        position = self.original_position(start + column - 1)
        before = self.original.rfind("\n", 0, position) + 1
        if self.original.count("\n", 0, position) + 1 != line:
            return 1
        return position - before + 1


@dataclass
class _Scope:
    """An open brace: what it belongs to, and where the declaration in progress started."""

    kind: str  # namespace, class, function, block, initialiser
    device: bool = False
    start: int = 0
    parens: int = 0


@dataclass
class _Region:
    """A run of tokens that is rewritten on its own: the file, or the body of one ``#define``."""

    tokens: Sequence[Token]
    macro: str = ""
    parameters: tuple[str, ...] = ()
    edits: list[Edit] = field(default_factory=list)

    @property
    def newline(self) -> str:
        return "\\\n" if self.macro else "\n"


def rewrite(text: str, include_dir: Path | None = None) -> Rewritten:
    """Turns CUDA into C++ for the simulator. ``include_dir`` is where the simulator's headers are (for better errors)."""
    source = Source(text)
    check_includes(source, include_dir)
    check_words(source)
    kernels = find_kernels(source)
    regions = [_Region(source.tokens)]
    regions += [_Region(m.body, m.name, m.parameters or ()) for m in source.macros if m.body]
    edits: list[Edit] = []
    for region in regions:
        _RegionRewriter(source, region, kernels).run()
        edits.extend(region.edits)
    return _apply(text, edits)


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


def error_at(source: Source, token: Token, message: str, hint: str = "") -> RewriteError:
    """An error at a token, with its line of source."""
    line = source.line(token.start)
    return RewriteError(line, source.column(token.start), message, hint, source_line=source.line_text(line))


class _RegionRewriter:
    """One pass over the tokens of a region, with the open braces known at each token."""

    def __init__(self, source: Source, region: _Region, kernels: Mapping[str, list[Kernel]]) -> None:
        self.source = source
        self.kernels = kernels
        self.region = region
        self.tokens = region.tokens
        # A macro's body is taken as the inside of a function: that is where launches and shared arrays stand.
        self.scopes = [_Scope("block" if region.macro else "namespace")]
        self.dynamic_arrays: list[tuple[str, str, int]] = []  # extern __shared__ at namespace scope: name, type, from
        self.branches = [d for d in source.directives if d.name in ("if", "ifdef", "ifndef", "else", "elif", "endif")]
        self.saved: list[list[_Scope]] = []

    def run(self) -> None:
        i = 0
        while i < len(self.tokens):
            if not self.region.macro:
                self._follow_branches(self.tokens[i].start)
            i = self._step(i)

    # -- where we are --------------------------------------------------------------------------------------------

    def _follow_branches(self, position: int) -> None:
        """``#if`` branches open the same braces twice; each branch starts from the scopes before the ``#if``."""
        while self.branches and self.branches[0].start < position:
            name = self.branches.pop(0).name
            if name.startswith("if"):
                self.saved.append([_Scope(**vars(s)) for s in self.scopes])
            elif name == "endif":
                if self.saved:
                    self.saved.pop()
            elif self.saved:
                self.scopes = [_Scope(**vars(s)) for s in self.saved[-1]]

    def _step(self, i: int) -> int:
        token, scope = self.tokens[i], self.scopes[-1]
        text = token.text
        if token.kind == "word":
            if text == "__shared__":
                return self._shared(i)
            if text in ("asm", "__asm__", "__asm"):
                return self._asm(i)
            if text in _LAUNCH_CALLS:
                self._strip_cast(i)
            return i + 1
        if token.kind != "mark":
            return i + 1
        if text in ("(", "["):
            scope.parens += 1
        elif text in (")", "]"):
            scope.parens = max(0, scope.parens - 1)
        elif text == "{":
            self._open(i)
        elif text == "}":
            self._close(i)
        elif text == ";" and scope.parens == 0:
            if scope.kind in ("namespace", "class"):
                self._register_globals(scope.start, i)
            scope.start = i + 1
        elif text == ":" and scope.parens == 0 and scope.kind in ("class", "function", "block"):
            if i - scope.start <= 1 or self.tokens[scope.start].text == "case":
                scope.start = i + 1
        elif text == "<" and self._three(i, "<"):
            return self._launch(i)
        return i + 1

    def _three(self, i: int, mark: str) -> bool:
        group = self.tokens[i : i + 3]
        return (
            len(group) == 3
            and all(t.text == mark and t.kind == "mark" for t in group)
            and group[2].end - group[0].start == 3
        )

    def _open(self, i: int) -> None:
        scope = self.scopes[-1]
        if scope.kind not in ("namespace", "class"):
            self.scopes.append(_Scope("block", scope.device, i + 1))
            return
        declaration = self.tokens[scope.start : i]
        kind = _kind_of_brace(declaration)
        device = any(t.text in ("__global__", "__device__") for t in declaration)
        self.scopes.append(_Scope(kind, device, i + 1))
        if kind == "function" and self.dynamic_arrays:
            self._declare_dynamic_arrays(declaration, i)

    def _close(self, i: int) -> None:
        if len(self.scopes) == 1:
            return
        closed = self.scopes.pop()
        outer = self.scopes[-1]
        ends = closed.kind in ("function", "namespace") or outer.kind not in ("namespace", "class")
        if ends and outer.parens == 0:
            outer.start = i + 1

    # -- launches ------------------------------------------------------------------------------------------------

    def _launch(self, i: int) -> int:
        tokens = self.tokens
        first = self._callee_start(i)
        if first is None:
            raise error_at(self.source, tokens[i], "'<<<' without the name of a kernel before it")
        end = self._configuration_end(i + 3)
        if end is None:
            raise error_at(self.source, tokens[i], "the launch has no '>>>(' after its '<<<'")
        if self.scopes[-1].device:
            raise error_at(
                self.source,
                tokens[i],
                "a kernel launched from a kernel (dynamic parallelism) is not simulated",
                "Launch it from the launcher, on the host.",
            )
        paren = end + 3
        close = closing(tokens, paren)
        if close is None:
            raise error_at(self.source, tokens[paren], "the arguments of the launch have no closing ')'")
        callee = join(tokens[first:i])
        configuration = self._verbatim(tokens[i + 2].end, tokens[end].start)
        if not tokens[i + 3 : end]:
            raise error_at(self.source, tokens[i], "the launch has no grid and block between '<<<' and '>>>'")
        count = len(split_commas(tokens[i + 3 : end]))
        if not 2 <= count <= 4:
            raise error_at(
                self.source,
                tokens[i],
                f"the launch has {count} value{'s' if count > 1 else ''} between '<<<' and '>>>'",
                "It takes the grid, the block, and optionally the bytes of dynamic shared memory and the stream.",
            )
        name = self._literal(tokens[first:i], callee)
        address = f".of((const void*)({callee}))" if self._has_address(tokens[first:i]) else ""
        newlines = self._newlines(tokens[first].start, tokens[i].start)
        gap = self._newlines(tokens[end + 2].end, tokens[paren].start)
        comma = ", " if close > paren + 1 else ""
        head = f"::sim::launch({newlines}::sim::LaunchConfig({configuration}){address}, {name}, "
        head += f"[=](auto... sim_args) {{ {callee}(sim_args...); }}{gap}{comma}"
        self._edit(tokens[first].start, tokens[paren].end, head)
        # The arguments themselves stay as they are, up to the ")" that now closes sim::launch.
        return paren + 1

    def _literal(self, callee: Sequence[Token], text: str) -> str:
        """The kernel's name as a string; a macro's parameters in it are stringized."""
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        if not {t.text for t in callee} & set(self.region.parameters):
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
        """Whether ``(const void*)(callee)`` names one function: not when template arguments are left to be deduced."""
        if any(t.text == "##" for t in callee):
            return False
        given = None
        if callee[-1].text == ">":
            opened = self._angle_opening_in(callee)
            given = len(split_commas(callee[opened + 1 : -1]))
            name = callee[opened - 1].text
        else:
            name = callee[-1].text
        known = self.kernels.get(name)
        if known is None:
            if name in self.region.parameters:
                return given is not None and all(given >= k.needed for ks in self.kernels.values() for k in ks)
            return True
        if len({k.signature for k in known}) > 1:
            return False
        return all((given or 0) >= k.needed for k in known)

    @staticmethod
    def _angle_opening_in(callee: Sequence[Token]) -> int:
        depth = 0
        for k in range(len(callee) - 1, -1, -1):
            depth += {">": 1, "<": -1}.get(callee[k].text, 0)
            if depth == 0:
                return k
        return 0

    def _callee_start(self, i: int) -> int | None:
        """The index of the first token of what is launched: ``ns::kernel<T, (N > 4)>``, ``table[i]``, ``(*pointer)``."""
        tokens, k = self.tokens, i - 1
        while k >= 0:
            text = tokens[k].text
            if tokens[k].kind == "mark" and text == ">":
                opened = self._angle_opening(k)
                if opened is None:
                    return None
                k = opened - 1
                continue
            if text in (")", "]"):
                opened = opening(tokens, k)
                if opened is None:
                    return None
                before = tokens[opened - 1] if opened else None
                if (
                    before is None
                    or not (before.kind == "word" or before.text in (")", "]"))
                    or before.text == "return"
                ):
                    return opened
                k = opened - 1
                continue
            if tokens[k].kind != "word" or text == "return":
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
                if k > 1 and (
                    (tokens[k - 2].kind == "word" and tokens[k - 2].text != "return") or tokens[k - 2].text == ">"
                ):
                    k -= 2
                    continue
                return k - 1
            return k
        return None

    def _angle_opening(self, k: int) -> int | None:
        """The ``<`` that opens the template arguments closed by the ``>`` at ``k``."""
        tokens, depth = self.tokens, 0
        while k >= 0:
            text = tokens[k].text if tokens[k].kind == "mark" else ""
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
                    k -= 2  # a shift inside template arguments
                    continue
                depth -= 1
                if depth == 0:
                    return k
            k -= 1
        return None

    def _configuration_end(self, i: int) -> int | None:
        """The index of the first ``>`` of the ``>>>`` that ends the configuration starting at ``i``."""
        tokens, depth = self.tokens, 0
        while i < len(tokens):
            text = tokens[i].text if tokens[i].kind == "mark" else ""
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
                if depth < 0:
                    return None
            elif text == ";" and depth == 0:
                return None
            elif text == ">" and depth == 0 and self._three(i, ">"):
                run = i
                while run < len(tokens) and tokens[run].text == ">" and tokens[run].start - tokens[i].start == run - i:
                    run += 1
                if run < len(tokens) and tokens[run].text == "(":
                    return run - 3
                i = run
                continue
            i += 1
        return None

    def _strip_cast(self, i: int) -> None:
        """``cudaLaunchCooperativeKernel((void*)kernel, ...)``: the simulator's takes the kernel with its type."""
        tokens = self.tokens
        if i + 2 >= len(tokens) or tokens[i + 1].text != "(":
            return
        first = i + 2
        if tokens[first].text == "(" and (close := closing(tokens, first)):
            if "".join(t.text for t in tokens[first + 1 : close]) in ("void*", "constvoid*", "voidconst*"):
                self._edit(
                    tokens[first].start, tokens[close].end, self._newlines(tokens[first].start, tokens[close].end)
                )
        elif tokens[first].text in ("reinterpret_cast", "static_cast") and tokens[first + 1].text == "<":
            end = first + 1
            while tokens[end].text not in (">", ")", ";"):
                end += 1
            if "".join(t.text for t in tokens[first + 2 : end]) in ("void*", "constvoid*", "voidconst*"):
                self._edit(tokens[first].start, tokens[end].end, self._newlines(tokens[first].start, tokens[end].end))

    # -- shared memory -------------------------------------------------------------------------------------------

    def _shared(self, i: int) -> int:
        tokens, scope = self.tokens, self.scopes[-1]
        start = scope.start
        if self.region.macro and scope.parens == 0 and len(self.scopes) == 1:
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
            raise error_at(self.source, tokens[i], "a __shared__ declaration with nothing in it")
        dynamic = any(t.text == "extern" for t in declaration)
        if scope.kind in ("namespace", "class") and not dynamic:
            raise error_at(
                self.source,
                tokens[i],
                "a __shared__ array outside a kernel",
                "Declare it inside the kernel, or as 'extern __shared__ T name[];'.",
            )
        parsed = _parse_declaration(self.source, declaration)
        statements = []
        for name, type_id, initialiser in parsed.declarators:
            if initialiser:
                raise error_at(
                    self.source,
                    tokens[i],
                    f"the __shared__ variable {name} has an initialiser",
                    "CUDA does not allow one: let threads write it, then __syncthreads().",
                )
            label = f"#{name}" if name in self.region.parameters else f'"{name}"'
            if dynamic:
                if scope.kind == "namespace":
                    self.dynamic_arrays.append((name, type_id, end))
                else:
                    statements.append(f"auto* {name} = ::sim::dynamic_shared<{type_id}>({label})")
            else:
                # Every array is 16-byte aligned anyway.
                needed = parsed.alignment and parsed.alignment not in ("1", "2", "4", "8", "16")
                alignment = f", {parsed.alignment}" if needed else ""
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

    def _declare_dynamic_arrays(self, declaration: Sequence[Token], brace: int) -> None:
        """An ``extern __shared__`` array of the file becomes a pointer at the start of each function that names it."""
        end = closing(self.tokens, brace) or len(self.tokens)
        used = {t.text for t in self.tokens[brace:end] if t.kind == "word"}
        parameters = {t.text for t in declaration if t.kind == "word"}
        text = "".join(
            f' auto* {name} = ::sim::dynamic_shared<{type_id}>("{name}");'
            for name, type_id, _ in self.dynamic_arrays
            if name in used and name not in parameters
        )
        if text:
            self._edit(self.tokens[brace].end, self.tokens[brace].end, text)

    # -- __device__ and __constant__ variables ---------------------------------------------------------------------

    def _register_globals(self, start: int, end: int) -> None:
        declaration = list(self.tokens[start:end])
        kinds = [_DEVICE_VARIABLE[t.text] for t in declaration if t.text in _DEVICE_VARIABLE]
        words = {t.text for t in declaration}
        if not kinds or "extern" in words or "template" in words or "using" in words or "typedef" in words:
            return
        if not _is_variable(declaration):
            return
        names = _names_of_variables(declaration)
        kind = "constant" if "constant" in kinds else kinds[0]
        if self.scopes[-1].kind == "class":
            return
        text = "".join(
            f" static ::sim::RegisterGlobal sim_global_{name}("
            f'"{name}", (void*)&{name}, sizeof({name}), ::sim::GlobalKind::{kind});'
            for name in names
        )
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
            raise error_at(self.source, tokens[i], "an asm statement with no closing ')'")
        try:
            call = ptx_asm.translate(tokens[paren + 1 : close])
        except ptx_asm.UnknownPtx as problem:
            raise error_at(self.source, tokens[i], str(problem), problem.hint) from None
        self._edit(tokens[i].start, tokens[close].end, call + self._newlines(tokens[i].start, tokens[close].end))
        return close + 1

    # -- text ------------------------------------------------------------------------------------------------------

    def _edit(self, start: int, end: int, text: str) -> None:
        self.region.edits.append(Edit(start, end, text))

    def _newlines(self, start: int, end: int) -> str:
        return self.region.newline * self.source.text.count("\n", start, end)

    def _verbatim(self, start: int, end: int) -> str:
        return self.source.text[start:end]


def _strip(declaration: Sequence[Token]) -> list[Token]:
    """A declaration without its template header, attributes and alignment."""
    out: list[Token] = []
    i = 0
    while i < len(declaration):
        text = declaration[i].text
        if text == "template" and i + 1 < len(declaration) and declaration[i + 1].text == "<":
            depth = 0
            i += 1
            while i < len(declaration):
                depth += {"<": 1, ">": -1}.get(declaration[i].text, 0)
                i += 1
                if depth == 0:
                    break
            continue
        if text in _ATTRIBUTES and i + 1 < len(declaration) and declaration[i + 1].text == "(":
            i = (closing(declaration, i + 1) or i) + 1
            continue
        if text == "[" and i + 1 < len(declaration) and declaration[i + 1].text == "[":
            i = (closing(declaration, i) or i) + 1
            continue
        out.append(declaration[i])
        i += 1
    return out


def _kind_of_brace(declaration: Sequence[Token]) -> str:
    """What a ``{`` at namespace or class scope opens, from the tokens of its declaration."""
    tokens = _strip(declaration)
    texts = [t.text for t in tokens]
    if not texts:
        return "block"
    if "namespace" in texts or (texts[0] == "extern" and len(texts) == 2 and tokens[1].kind == "string"):
        return "namespace"
    depth = 0
    parens = False
    for token in tokens:
        if token.kind != "mark":
            continue
        if token.text in ("(", "["):
            parens = parens or token.text == "("
            depth += 1
        elif token.text in (")", "]"):
            depth -= 1
        elif token.text == "=" and depth == 0 and "operator" not in texts:
            return "initialiser"
    if parens:
        return "function"
    if "enum" in texts:
        return "initialiser"
    if any(t in texts for t in ("class", "struct", "union")):
        return "class"
    return "initialiser"


def _is_variable(declaration: Sequence[Token]) -> bool:
    """True for ``__device__ float table[4]``, false for a function or a lambda's marker."""
    depth = 0
    for i, token in enumerate(tokens := _strip(declaration)):
        if token.kind != "mark":
            if token.text == "operator":
                return False
            continue
        if token.text == "<":
            depth += 1
        elif token.text == ">":
            depth = max(0, depth - 1)
        elif token.text in ("=", "[", "{"):
            return any(t.text in _DEVICE_VARIABLE for t in tokens[:i])
        elif token.text == "(" and depth == 0:
            return False
    return True


def _names_of_variables(declaration: Sequence[Token]) -> list[str]:
    """The names that a variable declaration introduces."""
    names = []
    for part in split_commas(_strip(declaration)):
        name = ""
        for token in part:
            if token.kind == "mark" and token.text in ("[", "=", "{", "("):
                break
            if token.kind == "word":
                name = token.text
        if name:
            names.append(name)
    return names


@dataclass(frozen=True)
class _SharedDeclaration:
    declarators: tuple[tuple[str, str, bool], ...]  # name, type-id, has an initialiser
    alignment: str = ""
    inline_type: str = ""


def _parse_declaration(source: Source, declaration: Sequence[Token]) -> _SharedDeclaration:
    """Splits ``__shared__ __align__(16) float a[4][8], *b`` into names and type-ids (``float[4][8]``, ``float*``)."""
    alignment = ""
    for k, token in enumerate(declaration[:-1]):
        if token.text in ("__align__", "alignas", "aligned", "__aligned__") and declaration[k + 1].text == "(":
            alignment = join(declaration[k + 2 : closing(declaration, k + 1)])
    tokens = [t for t in _strip(declaration) if t.text not in _QUALIFIERS]
    parts = split_commas(tokens)
    if not parts:
        raise error_at(source, declaration[0], "a __shared__ declaration without a name")
    base: list[Token] | None = None
    out = []
    for part in parts:
        stop = next(
            (k for k, t in enumerate(part) if t.kind == "mark" and t.text in ("[", "=") and _outside(part, k)),
            len(part),
        )
        head = part[:stop]
        if not head or head[-1].kind != "word":
            raise error_at(
                source,
                part[0],
                f"the simulator cannot read this __shared__ declaration: {join(part)}",
                "Name the type first (using Row = float[32];), then declare: __shared__ Row rows[8];",
            )
        name = head[-1].text
        pointers = head[:-1]
        if base is None:
            cut = len(pointers)
            while (
                cut and pointers[cut - 1].text in ("*", "&", "const", "__restrict__") and _has_star(pointers[cut - 1 :])
            ):
                cut -= 1
            base, pointers = pointers[:cut], pointers[cut:]
            if not base:
                raise error_at(source, part[0], f"the __shared__ variable {name} has no type")
        dimensions, initialised = part[stop:], False
        for k, token in enumerate(dimensions):
            if token.text in ("=", "{") and _outside(dimensions, k):
                dimensions, initialised = dimensions[:k], True
                break
        shape = join(dimensions)
        if "extern" in {t.text for t in declaration} and shape.startswith("[]"):
            shape = shape[2:]
        out.append((name, join(base) + "".join(t.text for t in pointers) + shape, initialised))
    assert base is not None
    inline_type = join(base) if any(t.text == "{" for t in base) else ""
    return _SharedDeclaration(tuple(out), alignment, inline_type)


def _has_star(tokens: Sequence[Token]) -> bool:
    return any(t.text == "*" for t in tokens)


def _outside(tokens: Sequence[Token], k: int) -> bool:
    """Whether token ``k`` is outside any bracket and template bracket that opens before it."""
    depth = 0
    for t in tokens[:k]:
        if t.kind == "mark":
            depth += {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}.get(t.text, 0)
    return depth == 0
