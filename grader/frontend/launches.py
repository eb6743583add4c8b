"""Translates ``kernel<<<grid, block, smem, stream>>>(args)``, and the address of a kernel in a call of the runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from grader.frontend.kernel_definitions import KernelDefinition
from grader.frontend.launch_syntax import angle_opening, callee_start, configuration_end
from grader.frontend.limits import spend
from grader.frontend.region import Region
from grader.frontend.tokens import Token, closing, join, opening, split_commas

LAUNCH_CALLS = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC"}
# An attribute for the lambda that calls a kernel. It only passes the arguments, so its accesses are not checked.
_UNCHECKED = '__attribute__((no_sanitize("thread", "object-size")))'
_LONGEST_TEMPLATE_ARGUMENTS = 64
"""The maximum number of tokens in the template arguments after a kernel's name, where it is cast to a pointer."""


class Launches:
    """Translates the launches in a region. It knows the file's kernels."""

    def __init__(self, region: Region, kernels: Mapping[str, list[KernelDefinition]]) -> None:
        self.region = region
        self.source, self.tokens = region.source, region.tokens
        self.kernels = kernels
        self.launched = 0  # the index after the "(" of the last launch's arguments
        self.uncast = -1  # the index after the last cast that was removed

    def translate(self, i: int) -> int:
        """Translate the launch whose ``<<<`` begins at ``i``. Return the index from which to go on."""
        tokens = self.tokens
        first = callee_start(tokens, i)
        if first is None:
            raise self.source.error(tokens[i], "there is no kernel's name before '<<<'")
        if first < self.launched:
            raise self.source.error(
                tokens[i],
                "the expression before '<<<' contains another launch",
                "Write only the kernel's name before '<<<'.",
            )
        end = configuration_end(tokens, i + 3)
        if end is None:
            raise self.source.error(tokens[i], "the launch has '<<<' without a matching '>>>('")
        paren = end + 3
        close = closing(tokens, paren)
        if close is None:
            raise self.source.error(tokens[paren], "the argument list of the launch has no closing ')'")
        callee = join(tokens[first:i])
        configuration = self.region.verbatim(i + 3, end)
        if not tokens[i + 3 : end]:
            raise self.source.error(tokens[i], "the launch has no grid and block between '<<<' and '>>>'")
        count = len(split_commas(tokens[i + 3 : end]))
        if not 2 <= count <= 4:
            raise self.source.error(
                tokens[i],
                f"the launch has {count} value{'s' if count > 1 else ''} between '<<<' and '>>>'",
                "A launch takes the grid, the block, and optionally the bytes of dynamic shared memory and the stream.",
            )
        name = self._literal(tokens[first:i], callee)
        address = f".of((const void*)({callee}))" if self._has_address(tokens[first:i]) else ""
        address += self._clusters_of_template(tokens[first:i])
        newlines = self.region.newlines(tokens[first].start, tokens[i].start)
        gap = self.region.newlines(tokens[end + 2].end, tokens[paren].start)
        comma = ", " if close > paren + 1 else ""
        self._zeros(tokens[first:i], paren + 1, close)
        head = f"::sim::launch({newlines}::sim::LaunchConfig({configuration}){address}, {name}, "
        head += f"[=](const auto&... sim_args) {_UNCHECKED} {{ {callee}(sim_args...); }}{gap}{comma}"
        self.region.edit(tokens[first].start, tokens[paren].end, head)
        # The arguments stay as they are. The ")" after them now closes the call of sim::launch.
        self.launched = paren + 1
        return paren + 1

    def _zeros(self, callee: Sequence[Token], start: int, close: int) -> None:
        """Replace the arguments ``NULL``, ``0`` (for a pointer) and ``{}`` of a launch by objects of the simulator.

        ``sim::launch`` is a template, which could not deduce the type of the original arguments.
        """
        known = self.kernels.get(_name_and_arguments(callee)[0], [])
        for k, part in enumerate(split_commas(self.tokens[start:close])):
            text = "".join(token.text for token in part)
            pointer = bool(known) and all(kernel.takes_pointer(k) for kernel in known)
            if text == "NULL" or (text == "0" and pointer):
                self.region.edit(part[0].start, part[-1].end, "::sim::Zero()")
            elif text == "{}":
                self.region.edit(part[0].start, part[-1].end, "::sim::Empty()")

    def _clusters_of_template(self, callee: Sequence[Token]) -> str:
        known = self.kernels.get(_name_and_arguments(callee)[0], [])
        cluster = next((k.cluster for k in known if k.cluster and k.is_template), "")
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
        name, given = _name_and_arguments(callee)
        if not name or any(t.text == "##" for t in callee):
            return False
        known = self.kernels.get(name)
        spend(self.source, callee[0], len(self.kernels if known is None else known))
        if known is None:
            if name in self.region.parameters:
                return given is not None and all(given >= k.needed for ks in self.kernels.values() for k in ks)
            return True
        if len({k.signature for k in known}) > 1 or not all(k.alone for k in known):
            return False
        return all((given or 0) >= k.needed for k in known)

    def strip_cast(self, i: int) -> None:
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
            self.region.replace(tokens[first].start, tokens[end].end, "")
            self.uncast = end + 1

    def know_kernel(self, i: int) -> None:
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
        self.region.edit(tokens[first].start, tokens[first].start, f"::sim::known_kernel({name}, ")
        self.region.edit(tokens[last].end, tokens[last].end, ")")


def _name_and_arguments(callee: Sequence[Token]) -> tuple[str, int | None]:
    """Return a callee's name, empty if unknown, and the number of its template arguments, None without a list."""
    if callee[-1].text != ">":
        return callee[-1].text, None
    opened = angle_opening(callee, len(callee) - 1)
    return ("", None) if opened is None else (callee[opened - 1].text, len(split_commas(callee[opened + 1 : -1])))
