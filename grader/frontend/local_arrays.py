"""Adds red zones to local arrays whose address is taken: ``int a[4]; int* p = a;``, ``fill(a)``, ``&a[1]``.

Compilers do not check accesses through such a pointer. The front end therefore replaces the array by one with a red
zone on each side, where an access is reported (``sim/local_arrays.h``)::

    int a[4] = {1};   ->   typedef int sim_local_a[4]; ::sim::LocalArray<sim_local_a> sim_array_a = {{}, {}, {1}};
                           auto& a = sim_array_a.begin("a");

The replacement stays on the same line. An array that is only indexed is not replaced, because ``-fsanitize=bounds``
checks its indices.

Compilers do not instrument accesses to a variable if they can prove that its address does not leave the function. The
code in the header prevents this proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.frontend.tokens import Source, Token, angle_end, closing, join, opening, word_set

NO_TYPES = word_set("""
return delete new throw goto case default else do if for while switch sizeof static constexpr extern thread_local using
typedef template friend operator namespace asm auto enum union class not __shared__ __device__ __constant__ __managed__
""")
"""Words that do not begin a declaration of a local array, because they begin a statement or another declaration."""
_ALIGNMENTS = {"alignas", "__align__", "__builtin_align__"}
_MOST_TYPE_TOKENS = 64


def is_address_of(tokens: Sequence[Token], i: int) -> bool:
    """Return whether the ``&`` at index ``i`` takes an address, as in ``f(&a)`` and ``(float4*)&a``."""
    before = tokens[i - 1]
    if before.text == ")":
        return tokens[i - 2].text == "*"
    return before.kind not in ("word", "number") and before.text != "]"


@dataclass(frozen=True)
class _Declarator:
    """A declarator such as ``*name[4][8] = {...}``.

    ``first`` is the index of its first token, ``name`` of its name, ``shape_end`` of the token after the dimensions,
    and ``end`` of the token after the declarator.
    """

    first: int
    name: int
    shape_end: int
    end: int


class LocalArrays:
    """Finds the local arrays of a device function. Its body is the tokens from ``begin`` to ``end``."""

    def __init__(self, source: Source, tokens: Sequence[Token], begin: int, end: int) -> None:
        self.source, self.tokens, self.begin, self.end = source, tokens, begin, end
        self.indexed = self._indexed()

    def edits(self) -> Iterator[tuple[int, int, str]]:
        """Yield the edits of the text: start, end, and the text that replaces the characters between."""
        if self._words & {"goto", "decltype"}:
            # The replacement of an array has a constructor, which a goto must not skip, and another type, which a
            # decltype would return.
            return
        # For each open brace, whether it begins a switch. Arrays directly in a switch are not replaced, because a case
        # label must not skip a constructor.
        switches: list[bool] = []
        starts = True
        for i in range(self.begin, self.end):
            token = self.tokens[i]
            mark = token.text if token.kind == "mark" else ""
            if starts and token.kind == "word" and not (switches and switches[-1]):
                yield from self._declaration(i)
            if mark == "{":
                switches.append(self._of_switch(i))
            elif mark == "}" and switches:
                switches.pop()
            starts = mark in ("{", "}", ";")

    def _indexed(self) -> dict[str, int]:
        """Return for each name the smallest number of indices after it: 1 if ``a[i]`` and ``a[i][j]`` occur.

        The number is -1 if the array's type matters, as in ``size(a)``; such an array cannot be replaced.
        """
        tokens, least = self.tokens, dict[str, int]()
        self._words = {tokens[i].text for i in range(self.begin, self.end) if tokens[i].kind == "word"}
        for i in range(self.begin, self.end):
            before = tokens[i - 1].text
            if tokens[i].kind != "word" or before in (".", "->", "::", "sizeof"):
                continue
            callee = tokens[i - 2].text if before == "(" else ""
            count, k = 0, i + 1
            while k < self.end and tokens[k].text == "[" and (close := closing(tokens, k)):
                count, k = count + 1, close + 1
            if before == "&" and is_address_of(tokens, i - 1):
                count = 0
            if callee == "sizeof":
                continue
            least[tokens[i].text] = min(-1 if callee == "size" else count, least.get(tokens[i].text, count))
        return least

    def _of_switch(self, brace: int) -> bool:
        paren = opening(self.tokens, brace - 1) if self.tokens[brace - 1].text == ")" else None
        return paren is not None and self.tokens[paren - 1].text == "switch"

    def _declaration(self, first: int) -> Iterator[tuple[int, int, str]]:
        """Yield the edits for the statement that begins at ``first``, if it declares arrays whose address is taken."""
        tokens, start = self.tokens, first
        while tokens[start].text in _ALIGNMENTS and tokens[start + 1].text == "(":
            start = (closing(tokens, start + 1) or start) + 1
        if (names := self._declarators(start)) is None:
            return
        end = names[-1].end
        guarded = [self._leads_out(one) for one in names]
        if not any(guarded) or (start > first and len(names) > 1):
            return
        if self.source.directive_between(tokens[first].start, tokens[end].start):
            return
        aligned = join(tokens[first:start]) + " " if start > first else ""
        base = join(tokens[start : names[0].first])
        split = False
        for k, (one, guard) in enumerate(zip(names, guarded)):
            if k and (guard or split):
                comma = tokens[names[k - 1].end]
                yield comma.start, comma.end, f"; {'typedef ' * guard}{base} "
            elif guard:
                yield tokens[first].start, tokens[start].start, "typedef "
            if not guard:
                continue
            split = True
            name, value = tokens[one.name], one.end > one.shape_end
            yield name.start, name.end, f"sim_local_{name.text}"
            array = f"; {aligned}::sim::LocalArray<sim_local_{name.text}> sim_array_{name.text}"
            assigned = value and tokens[one.shape_end].text == "="
            behind = tokens[one.shape_end if assigned else one.shape_end - 1].end
            yield (tokens[one.shape_end].start if assigned else behind, behind, array + " = {{}, {}, " * value)
            last = tokens[one.end - 1].end
            yield (
                last,
                last,
                "}" * value + f'; auto& {name.text} = sim_array_{name.text}.begin("{name.text}")',
            )

    def _leads_out(self, one: _Declarator) -> bool:
        dimensions, k = 0, one.name + 1
        while k < one.shape_end:
            dimensions, k = dimensions + 1, (closing(self.tokens, k) or k) + 1
        return 0 <= self.indexed.get(self.tokens[one.name].text, dimensions) < dimensions

    def _declarators(self, start: int) -> list[_Declarator] | None:
        """Return the declarators of the declaration that begins at ``start``; None if its first is not an array."""
        tokens, k, spelled = self.tokens, start, list[str]()
        while tokens[k].kind == "word" or tokens[k].text in ("::", "<"):
            if tokens[k].text in NO_TYPES or k - start > _MOST_TYPE_TOKENS:
                return None
            if tokens[k].text == "<":
                k = angle_end(tokens, k, _MOST_TYPE_TOKENS, (";", "{", "}", "="))
                if k >= self.end:
                    return None
                continue
            spelled.append(tokens[k].text)
            k += 1
        names: list[_Declarator] = []
        first = k if tokens[k].text == "*" else k - 1  # the start of the declarator
        if first <= start or (tokens[k].text != "*" and "const" in spelled):
            return None
        while True:
            name = first
            while tokens[name].text in ("*", "const", "__restrict__"):
                name += 1
            one = self._declarator(first, name)
            if one is None or tokens[one.end].text not in (",", ";"):
                return None
            names.append(one)
            if tokens[one.end].text == ";":
                return names
            first = one.end + 1

    def _declarator(self, first: int, name: int) -> _Declarator | None:
        tokens = self.tokens
        if tokens[name].kind != "word":
            return None
        k = name + 1
        while tokens[k].text == "[":
            close = closing(tokens, k)
            if close is None or close == k + 1:
                return None
            k = close + 1
        shape_end = k
        if tokens[k].text == "=" and shape_end > name + 1:
            k += 1
            if tokens[k].kind == "string":
                return _Declarator(first, name, shape_end, k + 1)
        elif tokens[k].text == "=":
            while k < self.end and tokens[k].text not in (",", ";", "<"):
                k = (closing(tokens, k) or k) + 1
            return _Declarator(first, name, shape_end, k)
        if tokens[k].text == "{":
            k = (closing(tokens, k) or k) + 1
        return _Declarator(first, name, shape_end, k)
