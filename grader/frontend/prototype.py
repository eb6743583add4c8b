"""Parses the prototypes of launchers (``extern "C"`` functions), and compares them with the prototype of a task.

A launcher's parameters are pointers and scalars, followed by a ``cudaStream_t``. Because the prototype is known, Python
can check every argument before a call. A launcher with wrong parameters causes an error message instead of a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.frontend.tokens import Source, Token, closing, join, split_commas
from grader.setup.errors import BuildError

_SPELLINGS = {
    "f64": "double, double2, double4",
    "f32": "float, float2, float3, float4",
    "f16": "__half, half, __half2, half2",
    "bf16": "__nv_bfloat16, nv_bfloat16, __nv_bfloat162, nv_bfloat162",
    "f8e4m3": "__nv_fp8_e4m3",
    "f8e5m2": "__nv_fp8_e5m2",
    "i64": "long, long int, long long, long long int, int64_t, ptrdiff_t, ssize_t",
    "u64": "unsigned long, unsigned long int, unsigned long long, unsigned long long int, size_t, uint64_t",
    "i32": "int, signed, signed int, int32_t, int2, int4",
    "u32": "unsigned, unsigned int, uint, uint32_t, uint2, uint4",
    "i16": "short, short int, int16_t",
    "u16": "unsigned short, unsigned short int, uint16_t",
    "i8": "char, signed char, int8_t",
    "u8": "unsigned char, uint8_t",
    "bool": "bool",
}
"""The C++ types for each short name (see ``dtypes.py``). A pointer to a vector type takes a tensor of scalars."""
DTYPE_OF = {" ".join(sorted(each.split())): name for name, types in _SPELLINGS.items() for each in types.split(", ")}
"""The short name of each C++ type, which is spelled without const, with its words sorted."""

_ARITHMETIC_WORDS = {"signed", "unsigned", "int", "long", "short", "char", "double", "float", "bool"}
_RESTRICT = {"__restrict__", "__restrict", "restrict"}
_STREAM_TYPES = {"cudaStream_t", "CUstream"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a launcher.

    ``kind`` is pointer, scalar or stream; ``dtype`` is the short name of the element type (f32, f16, i64...), or "any"
    for ``void*``. ``type`` is the preferred spelling of the type ("const float*").
    """

    name: str
    type: str
    kind: str
    dtype: str
    const: bool = False

    @property
    def is_pointer(self) -> bool:
        """True for a pointer, which takes a tensor."""
        return self.kind == "pointer"

    @property
    def is_stream(self) -> bool:
        """True for the stream, the last parameter of a launcher."""
        return self.kind == "stream"

    @property
    def same_as(self) -> tuple[str, str, bool, bool]:
        """A key that is equal for parameters of the same type, however it is spelled.

        ``int64_t`` and ``long long`` have the same key; ``int`` has another.
        """
        vector = self.kind == "pointer" and self.type.rstrip("*2345678")[-1:] != self.type.rstrip("*")[-1:]
        return self.kind, self.dtype, self.const, vector and not self.type.endswith(("_t*", "16*"))

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else self.type


@dataclass(frozen=True)
class Prototype:
    """A launcher: its name, its parameters, and its line in the file."""

    name: str
    parameters: tuple[Parameter, ...]
    line: int = 0
    return_type: str = "void"

    def __str__(self) -> str:
        return f"{self.return_type} {self.name}({', '.join(map(str, self.parameters))})"

    @property
    def takes_stream(self) -> bool:
        return bool(self.parameters) and self.parameters[-1].kind == "stream"


class PrototypeError(BuildError):
    """A launcher that is missing or has the wrong parameter list."""

    def __init__(self, message: str, hint: str = "") -> None:
        # Limit the length, because the message quotes the file.
        super().__init__(message if len(message) <= 4000 else message[:4000] + "...", hint)


def parse_prototype(text: str) -> Prototype:
    """Parse the prototype in a task, such as ``void name(const float* x, int n, cudaStream_t stream)``."""
    found = find_launchers(f'extern "C" {text.rstrip().rstrip(";")};')
    if len(found) != 1:
        raise PrototypeError(f"this is not a launcher's prototype: {text}")
    return found[0]


def find_launchers(text: str | Source) -> list[Prototype]:
    """Return the ``extern "C"`` functions of a file in order. A function that is declared twice is returned once."""
    source = text if isinstance(text, Source) else Source(text)
    found: dict[str, Prototype] = {}
    tokens = source.tokens
    i = 0
    while i + 1 < len(tokens):
        if tokens[i].text != "extern" or tokens[i + 1].text != '"C"':
            i += 1
            continue
        i += 2
        block = i < len(tokens) and tokens[i].text == "{"
        end = (closing(tokens, i) if block else None) or len(tokens)
        i += block
        while i < end:
            prototype, i = _function_at(source, tokens, i, end)
            if prototype:
                found[prototype.name] = prototype
            if not block:
                break
    return list(found.values())


def find_main(text: str | Source) -> tuple[Prototype, bool] | None:
    """Return the function ``main`` of a program as a launcher without parameters, and whether it takes argc and argv.

    Return None if the file has no ``int main``.
    """
    source = text if isinstance(text, Source) else Source(text)
    tokens = source.tokens
    for i in range(1, len(tokens) - 2):
        if tokens[i].text == "main" and tokens[i - 1].text == "int" and tokens[i + 1].text == "(":
            close = closing(tokens, i + 1)
            if close is not None and close + 1 < len(tokens) and tokens[close + 1].text == "{":
                inside = [t.text for t in tokens[i + 2 : close]]
                return Prototype("main", (), source.line(tokens[i].start), "int"), inside not in ([], ["void"])
    return None


def _function_at(source: Source, tokens: Sequence[Token], start: int, end: int) -> tuple[Prototype | None, int]:
    """Parse the declaration or definition at ``start``.

    Return its prototype, or None if it is not a function, and the index after it.
    """
    i = start
    while i < end and tokens[i].text not in ("(", ";", "{", "="):
        if tokens[i].text in ("__attribute__", "__launch_bounds__", "alignas", "__align__", "__declspec"):
            i = closing(tokens, i + 1) or i
        i += 1
    if i >= end or tokens[i].text != "(" or i == start or tokens[i - 1].kind != "word":
        while i < end and tokens[i].text != ";":
            if tokens[i].text == "{":
                i = closing(tokens, i) or end
                if i + 1 < end and tokens[i + 1].text != ";":
                    break
            i += 1
        return None, i + 1
    close = closing(tokens, i)
    if close is None:
        raise PrototypeError(
            f"line {source.line(tokens[i].start)}: the parameter list of {tokens[i - 1].text} has no closing ')'"
        )
    words = [t for t in tokens[start : i - 1] if t.text not in ("static", "inline", "__host__", "extern")]
    after = close + 1
    while after < end and tokens[after].text not in (";", "{"):
        after += 1
    stop = closing(tokens, after) if after < end and tokens[after].text == "{" else after
    stop = end if stop is None else stop
    if any(t.text == "__global__" for t in words):
        return None, stop + 1
    line = source.line(tokens[i - 1].start)
    parameters = tuple(
        _parameter(part, f"line {line}: launcher {tokens[i - 1].text}") for part in split_commas(tokens[i + 1 : close])
    )
    if len(parameters) == 1 and parameters[0].type == "void" and not parameters[0].name:
        parameters = ()
    return Prototype(tokens[i - 1].text, parameters, line, join(words) or "void"), stop + 1


def _parameter(tokens: Sequence[Token], where: str) -> Parameter:
    written = join(tokens)
    if any(t.text == "=" for t in tokens):
        raise PrototypeError(
            f"{where}: the parameter '{written}' has a default value",
            "Remove the default value: Python passes every argument.",
        )
    words = [t for t in tokens if t.text not in _RESTRICT]
    array = any(t.text == "[" for t in words)
    if array:
        words = words[: next(i for i, t in enumerate(words) if t.text == "[")]
    stars = sum(t.text == "*" for t in words) + array
    if any(t.text == "&" or t.text == "&&" for t in words):
        raise PrototypeError(
            f"{where}: the parameter '{written}' is a reference", "Instead of a reference, use a pointer or a number."
        )
    if stars > 1:
        raise PrototypeError(
            f"{where}: the parameter '{written}' is a pointer to a pointer",
            "Instead of a pointer to pointers, use a parameter for each tensor.",
        )
    last_star = max((i for i, t in enumerate(words) if t.text == "*"), default=-1)
    base = [t.text for t in (words[:last_star] if last_star >= 0 else words)]
    tail = [t.text for t in words[last_star + 1 :] if t.text not in ("const", "volatile")] if last_star >= 0 else []
    const = "const" in base
    base = [t for t in base if t not in ("const", "volatile", "struct", "std", "::")]
    name = tail[-1] if tail else ""
    # The last word is the parameter's name, unless all words belong to the type, as in "long long".
    if (stars == 0 or array) and len(base) > 1 and base[-1] not in _ARITHMETIC_WORDS:
        name, base = base[-1], base[:-1]
    if base and base[0] in _STREAM_TYPES and stars == 0:
        return Parameter(name, "cudaStream_t", "stream", "")
    spelled = " ".join(base)
    dtype = DTYPE_OF.get(" ".join(sorted(base)), "any" if spelled == "void" else "")
    if not dtype:
        raise PrototypeError(
            f"{where}: the parameter '{written}' has a type that Python cannot pass",
            "Use pointers to float, double, __half, __nv_bfloat16 or an integer type, scalars, and cudaStream_t.",
        )
    if stars:
        return Parameter(name, f"{'const ' if const else ''}{spelled}*", "pointer", dtype, const)
    return Parameter(name, spelled, "scalar", dtype)


def require_launcher(found: Sequence[Prototype], expected: Prototype, file: str) -> Prototype:
    """Return the launcher that a task requires. Raise PrototypeError if it is missing or has other parameters."""
    actual = next((p for p in found if p.name == expected.name), None)
    wanted = f'expected:\n  extern "C" {expected}'
    if actual is None:
        others = ", ".join(p.name for p in found)
        has = f"it has {others}" if found else 'it has no extern "C" function at all'
        raise PrototypeError(
            f"{file} has no launcher {expected.name}: {has}\n{wanted}",
            'Write the launcher with this prototype. It is not found without extern "C", or if a macro defines it.',
        )
    differences = explain_difference(actual, expected)
    if differences:
        listed = "\n".join(f"  {d}" for d in differences)
        raise PrototypeError(
            f"{file}:{actual.line}: the launcher {actual.name} has the wrong parameters:\n{listed}\n{wanted}",
            "Write the launcher with the expected prototype. You may choose other names for the parameters.",
        )
    return actual


def explain_difference(actual: Prototype, expected: Prototype) -> list[str]:
    """Describe each difference between two prototypes that matters to a caller. Other names do not matter."""
    out: list[str] = []
    if actual.return_type != expected.return_type:
        out.append(f"it returns {actual.return_type}, expected {expected.return_type}")
    mine, theirs = actual.parameters, expected.parameters
    if len(mine) != len(theirs):
        out.append(f"it has {_count(len(mine))}, expected {_count(len(theirs))}")
    names, wanted = [p.name for p in mine], [p.name for p in theirs]
    if len(mine) < len(theirs):
        missing = [p for p in theirs if p.name not in names]
        out.extend(f"missing: {p}" for p in missing)
        if missing:
            return out
    if len(mine) > len(theirs):
        extra = [p for p in mine if p.name not in wanted]
        out.extend(f"not expected: {p}" for p in extra)
        if extra:
            return out
    swapped = sorted(names) == sorted(wanted) and names != wanted
    for number, (a, e) in enumerate(zip(mine, theirs), 1):
        if a.same_as != e.same_as:
            out.append(f"parameter {number} is '{a}', expected '{e}'{_reason(a, e)}")
        elif swapped and a.name != e.name:
            out.append(f"parameter {number} is '{a}', expected '{e}': the order is different")
    return out


def _count(n: int) -> str:
    return f"{n} parameter" if n == 1 else f"{n} parameters"


def _reason(a: Parameter, e: Parameter) -> str:
    if a.kind == e.kind == "pointer" and a.dtype == e.dtype and a.const != e.const:
        return ": an input is read only" if e.const else ": an output cannot be const"
    if {a.kind, e.kind} == {"pointer", "scalar"}:
        return f": the caller passes a {'number' if e.kind == 'scalar' else 'pointer'}"
    if a.kind == e.kind == "scalar" and {a.dtype, e.dtype} == {"i32", "i64"}:
        return ": that is 4 bytes, not 8" if a.dtype == "i32" else ": that is 8 bytes, not 4"
    return ""
