"""Adds to device functions what a GPU does by itself: checks of launches, bounds of local arrays, a heap."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from grader.frontend.declarations import is_constant, kind_of_brace, strip_attributes, words_before_parameters
from grader.frontend.kernel_definitions import CLUSTER_DIMS, LAUNCH_BOUNDS, KernelAttribute, KernelDefinition
from grader.frontend.limits import spend
from grader.frontend.local_arrays import LocalArrays, is_address_of
from grader.frontend.region import Region
from grader.frontend.tokens import Token, closing

_LAST_WORDS_OF_TYPES = {"bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double"}


class DeviceFunctions:
    """Translates the declarations and bodies of device functions. It knows the kernels and their launch bounds."""

    def __init__(
        self,
        region: Region,
        kernels: Mapping[str, list[KernelDefinition]],
        attributes: Mapping[str, KernelAttribute],
    ) -> None:
        self.region = region
        self.source, self.tokens = region.source, region.tokens
        self.kernels = kernels
        self.launch_bounds, self.clusters = attributes[LAUNCH_BOUNDS], attributes[CLUSTER_DIMS]

    def translate(self, declaration: Sequence[Token], brace: int) -> str:
        """Translate the function whose body begins at ``brace``. Return the text that follows the function."""
        after = self._register_clusters(declaration, brace)
        self.check_launch_bounds(declaration, brace)
        words = set(words_before_parameters(declaration))
        if words & {"__device__", "__global__"}:
            closed = closing(self.tokens, brace)
            end = len(self.tokens) if closed is None else closed
            spend(self.source, self.tokens[brace], 3 * (end - brace) // 8)
            if closed is not None and not words & {"constexpr", "consteval"}:
                for start, stop, text in LocalArrays(self.source, self.tokens, brace, end).edits():
                    self.region.edit(start, stop, text)
            self._take_from_heap(brace, end)
            if self._takes_address(brace, end):
                for word in declaration:
                    if word.text == "__global__":
                        self.region.edit(word.start, word.end, "SIM_GLOBAL")
            if self.region.alone:
                self._refuse_static_variables(brace, end)
        return after

    def _register_clusters(self, declaration: Sequence[Token], brace: int) -> str:
        """Register the dimensions in ``__cluster_dims__`` by the kernel's address, so that a launch can look them up.

        A kernel template is not registered; instead, the dimensions are passed to each of its launches. In both cases
        the kernel's threads check that the launch used the dimensions. Return the text that follows the kernel.
        """
        words = words_before_parameters(self.clusters.expanded(declaration))
        cluster = ", ".join(self.clusters.arguments(declaration))
        if "__global__" not in words or not cluster:
            return ""
        check = f" ::sim::require_clusters(::sim::Site{{__LINE__, 0}}, {cluster});"
        self.region.edit(self.tokens[brace].end, self.tokens[brace].end, check)
        if any(t.text == "template" for t in declaration):
            return ""
        name = words[-1]
        return f" static ::sim::RegisterClusters sim_clusters_{name}_{brace}((const void*)&{name}, {cluster});"

    def check_launch_bounds(self, declaration: Sequence[Token], brace: int) -> None:
        """Insert a check of ``__launch_bounds__`` into the kernel: a GPU refuses a launch with more threads."""
        words = words_before_parameters(self.launch_bounds.expanded(declaration))
        if "__global__" not in words:
            return
        most = next(iter(self.launch_bounds.arguments(declaration)), "")
        if not most:  # another declaration of the kernel may have it
            name = next((t for t in declaration if t.text == words[-1]), declaration[-1])
            line = self.source.line(name.start)
            most = next((k.most_threads for k in self.kernels.get(name.text, ()) if k.line == line), "")
        if most:
            end = self.tokens[brace].end
            self.region.edit(end, end, f" ::sim::require_launch_bounds(static_cast<unsigned>({most}));")

    def _takes_address(self, brace: int, end: int) -> bool:
        """Return whether a function takes the address of a variable: ``&v``, ``&v.x`` or ``float* p = v.values``.

        A macro of the file may do so as well. Addresses of elements (``&tile[i]``) do not count: local arrays have
        their own checks (``local_arrays.py``).
        """
        tokens = self.tokens
        for i in range(brace + 1, end - 2):
            if tokens[i].text in self._addressing_macros:
                return True
            if tokens[i].text == "&" and tokens[i + 2].text != "[" and is_address_of(tokens, i):
                return True
            if tokens[i].text == "=" and tokens[i - 2].text == "*" and tokens[i + 2].text == ".":
                return True
        return False

    @functools.cached_property
    def _addressing_macros(self) -> set[str]:
        return {macro.name for macro in self.source.macros if any(t.text == "&" for t in macro.body)}

    def _take_from_heap(self, brace: int, end: int) -> None:
        """Make ``new`` in device code allocate from the simulated device heap (``sim/heap.h``)."""
        for token, after in zip(self.tokens[brace:end], self.tokens[brace + 1 : end]):
            if token.kind == "word" and token.text == "new" and after.text != "(":
                self.region.edit(token.end, token.end, " (::sim::heap)")

    def _refuse_static_variables(self, brace: int, end: int) -> None:
        """Raise RewriteError for a static variable in device code, unless it is constant or in shared memory.

        On a GPU it lives in global memory, but here it would lie among the variables of the host.
        """
        classes: list[bool] = []  # for each open brace: whether it is the body of a class, with static functions
        first = brace + 1  # of the statement
        for i in range(brace, end):
            text = self.tokens[i].text
            if text == "{":
                classes.append(i > brace and kind_of_brace(self.tokens[first:i]) == "class")
            elif text == "}" and classes:
                classes.pop()
            elif text == "static" and classes and not classes[-1]:
                stop = next((k for k in range(i, end) if self.tokens[k].text == ";"), end)
                spend(self.source, self.tokens[i], stop - first)
                after_if = any(t.text == "(" for t in strip_attributes(self.tokens[first:i]))
                if not is_constant(self.tokens[i if after_if else first : stop]):
                    raise self.source.error(
                        self.tokens[i],
                        "a static variable in device code is not simulated",
                        "Declare it before the function, as a __device__ variable, or make it const.",
                    )
            if text in (";", "{", "}"):
                first = i + 1

    @functools.cached_property
    def _macros(self) -> set[str]:
        return {macro.name for macro in self.source.macros}

    def make_inline(self, declaration: Sequence[Token]) -> None:
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
        self.region.edit(head[at].start, head[at].start, "SIM_HELPER ")


def translate_grid_constant(region: Region, i: int) -> None:
    """Turn ``const __grid_constant__ T name`` into ``const T& name``, so that all threads see one address."""
    first = last = i
    while first > 0 and region.tokens[first - 1].text not in ("(", ","):
        first -= 1
    depth = 0
    while last + 1 < len(region.tokens):
        text = region.tokens[last + 1].text
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(text, 0)
        if depth < 0 or (depth == 0 and text in (",", "=")):
            break
        last += 1
    parameter = [t for t in region.tokens[first : last + 1] if t.text != "__grid_constant__"]
    if not any(t.text == "const" for t in parameter) or any(t.text in ("&", "&&") for t in parameter):
        raise region.source.error(
            region.tokens[i],
            "a __grid_constant__ parameter must be const and must not be a reference",
            "Write const __grid_constant__ TYPE name.",
        )
    words = [t for t in parameter if t.text != "const"]
    named = len(words) > 1 and words[-1].kind == "word" and words[-2].text != "::"
    named = named and words[-1].text not in _LAST_WORDS_OF_TYPES
    place = words[-1].start if named else words[-1].end
    region.edit(place, place, "&")
