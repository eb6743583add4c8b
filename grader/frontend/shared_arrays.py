"""Translates ``__shared__`` declarations to references into the block's shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from grader.frontend.declarations import parse_shared
from grader.frontend.limits import spend
from grader.frontend.region import Region
from grader.frontend.tokens import DEPTH, Token, closing


class SharedArrays:
    """Translates the ``__shared__`` arrays of a region. It knows those at namespace scope."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.source, self.tokens = region.source, region.tokens
        # The text that declares a __shared__ array at namespace scope inside a function, by the array's name.
        self.file_arrays: dict[str, str] = {}

    def translate(self, i: int, start: int, scope: str) -> int:
        """Translate the declaration from ``start`` on that has ``__shared__`` at ``i``, in a scope of this kind.

        Return the index after it.
        """
        tokens = self.tokens
        end, depth = i, 0
        while end < len(tokens):
            depth += DEPTH.get(tokens[end].text, 0)
            if depth < 0 or (tokens[end].text == ";" and depth == 0):
                break
            end += 1
        declaration = list(tokens[start:end])
        if not declaration:
            raise self.source.error(tokens[i], "this __shared__ declaration is empty")
        spend(self.source, tokens[i], len(declaration))
        self.region.refuse_directives(declaration[0].start, declaration[-1].end, "a __shared__ declaration")
        dynamic = any(t.text == "extern" for t in declaration)
        if (scope == "class" or (scope == "namespace" and self.region.alone)) and not dynamic:
            raise self.source.error(
                tokens[i],
                "a __shared__ array is declared outside a kernel",
                "Declare it inside the kernel, or as 'extern __shared__ T name[];'.",
            )
        parsed = parse_shared(self.source, declaration)
        statements = []
        for name, type_id, initializer in parsed.declarators:
            if initializer:
                raise self.source.error(
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
                if scope == "namespace":
                    self.file_arrays[name] = pointer
                else:
                    statements.append(pointer)
            elif scope == "namespace":  # all functions that name it share one array
                statements.append(f"struct sim_shared_{name} {{}}")
                site = f"sim_shared_{name}()"
                self.file_arrays[name] = f"auto& {name} = ::sim::shared_array<{type_id}>({label}, {site}{alignment})"
            else:
                if parsed.inline_type:
                    statements.append(f"typedef {parsed.inline_type} sim_type_{name}")
                    type_id = type_id.replace(parsed.inline_type, f"sim_type_{name}", 1)
                statements.append(f"auto& {name} = ::sim::shared_array<{type_id}>({label}, SIM_SITE{alignment})")
        stop = tokens[end].start if end < len(tokens) else declaration[-1].end
        self.region.replace(declaration[0].start, stop, "; ".join(statements))
        return end

    def declare_in_function(self, declaration: Sequence[Token], brace: int) -> None:
        """Insert the declaration of each ``__shared__`` array at namespace scope into a function that names it."""
        if not self.file_arrays:
            return
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
            self.region.edit(self.tokens[brace].end, self.tokens[brace].end, text)
