"""Parser of declarations: kinds of scopes, ``__shared__`` arrays, ``__device__`` variables, template headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.frontend.tokens import DEPTH, Source, Token, Tokens, angle_end, closing, join, split_commas

_ATTRIBUTES = {"__attribute__", "alignas", "__align__", "__launch_bounds__", "__declspec", "decltype", "noexcept"}
_ATTRIBUTES |= {"__maxnreg__", "__cluster_dims__", "requires", "explicit"}
_QUALIFIERS = {"__shared__", "static", "extern", "inline", "__device__", "thread_local"}
DEVICE_VARIABLES = {"__device__": "device", "__constant__": "constant", "__managed__": "device"}


def strip_attributes(declaration: Sequence[Token]) -> list[Token]:
    """Return a declaration without its template header, attributes and alignment."""
    out: list[Token] = []
    declaration = Tokens(declaration)
    i = 0
    while i < len(declaration):
        text = declaration[i].text
        if text == "template" and i + 1 < len(declaration) and declaration[i + 1].text == "<":
            i = angle_end(declaration, i + 1)
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


def kind_of_brace(declaration: Sequence[Token]) -> str:
    """Return what a ``{`` at namespace or class scope begins: a namespace, class, function, initializer or block.

    ``declaration`` are the tokens before it.
    """
    tokens = strip_attributes(declaration)
    texts = [t.text for t in tokens]
    if not texts:
        return "block"
    if "namespace" in texts or (texts[0] == "extern" and len(texts) == 2 and tokens[1].kind == "string"):
        return "namespace"
    depth = 0
    parens, operator = False, "operator" in texts
    for token in tokens:
        depth += DEPTH.get(token.text, 0)
        parens = parens or token.text == "("
        if token.text == "=" and depth == 0 and not operator:
            return "initializer"
    if parens:
        return "function"
    if "enum" in texts:
        return "initializer"
    if any(t in texts for t in ("class", "struct", "union")):
        return "class"
    return "initializer"


def words_before_parameters(declaration: Sequence[Token]) -> list[str]:
    """Return the words of a function's declaration before its parameters, such as ``__device__``, ``float``, ``f``."""
    words = []
    for token in strip_attributes(declaration):
        if token.text == "(":
            break
        if token.kind == "word":
            words.append(token.text)
    return words


def is_variable(declaration: Sequence[Token]) -> bool:
    """Return whether a declaration declares a variable, such as ``__device__ float table[4]``.

    The result is False for a function, and for a statement with a ``__device__`` lambda.
    """
    depth = 0
    for i, token in enumerate(tokens := strip_attributes(declaration)):
        if token.kind != "mark":
            if token.text == "operator":
                return False
            continue
        if token.text == "<":
            depth += 1
        elif token.text == ">":
            depth = max(0, depth - 1)
        elif token.text in ("=", "[", "{"):
            return any(t.text in DEVICE_VARIABLES for t in tokens[:i])
        elif token.text == "(" and depth == 0:
            return False
    return True


def is_constant(declaration: Sequence[Token]) -> bool:
    """Return whether all variables of a declaration are constant, or in shared memory.

    The pointer of ``const int* p`` is not constant, but that of ``const int* const p`` is.
    """
    tokens = strip_attributes(declaration)
    if any(t.text in ("constexpr", "__shared__") for t in tokens):
        return True
    parts = split_commas(tokens)
    first = _declarator(parts[0]) if parts else []
    pointer = next((k for k, t in enumerate(first) if t.text == "*"), len(first))
    constant = any(t.text == "const" for t in first[:pointer])
    for part in [first[pointer:], *map(_declarator, parts[1:])]:
        stars = [k for k, t in enumerate(part) if t.text == "*"]
        if not (any(t.text == "const" for t in part[stars[-1] :]) if stars else constant):
            return False
    return True


def _declarator(part: Sequence[Token]) -> list[Token]:
    """Return the tokens of a declarator and of the type before it, without template arguments and the initializer."""
    out: list[Token] = []
    depth = 0
    for token, after in zip(part, [*part[1:], None]):
        if token.kind == "mark":
            if depth == 0 and (token.text in ("=", "{", "[") or (token.text == "(" and _text(after) not in ("*", "&"))):
                break
            depth = max(0, depth + {"<": 1, ">": -1}.get(token.text, 0))
        if depth == 0:
            out.append(token)
    return out


def _text(token: Token | None) -> str:
    return token.text if token else ""


def names_of_variables(declaration: Sequence[Token]) -> list[str]:
    """Return the names of the variables in a declaration; ``Owner::name`` for a static member of a class."""
    names = []
    for part in split_commas(_without_type_body(strip_attributes(declaration))):
        name: list[str] = []
        owned = False
        for token in part:
            if token.kind == "mark" and token.text in ("[", "=", "{", "("):
                break
            if token.kind == "word":
                if not owned:
                    name = []
                name.append(token.text)
            owned = token.text in ("::", ":")  # ``::`` may be one token or two
        if name:
            names.append("::".join(name))
    return names


@dataclass(frozen=True)
class TemplateHeader:
    """A header such as ``template <typename T, int n = 4>``, as text for another declaration of the same template."""

    parameters: str
    """The parameters without default values: ``typename T, int n``."""
    arguments: str
    """The parameters' names, as arguments of the template: ``T, n``."""


def template_header(declaration: Sequence[Token]) -> TemplateHeader | None:
    """Return the declaration's template header; None if it has no or several headers, or an unnamed parameter."""
    texts = [token.text for token in declaration]
    if texts[:2] != ["template", "<"] or texts.count("template") > 1:
        return None
    parameters, arguments = [], []
    for part in split_commas(list(declaration[2 : angle_end(declaration, 1) - 1])):
        words = [token.text for token in part]
        words = words[: words.index("=")] if "=" in words else words
        if len(words) < 2 or part[len(words) - 1].kind != "word" or words[-1] in ("typename", "class"):
            return None
        parameters.append(" ".join(words))
        arguments.append(words[-1] + ("..." if "." in "".join(words) else ""))
    return TemplateHeader(", ".join(parameters), ", ".join(arguments)) if parameters else None


def _without_type_body(tokens: list[Token]) -> list[Token]:
    """Return the tokens of ``struct Name { ... } variable`` without the braces and the text between them."""
    for i, token in enumerate(tokens):
        if token.text == "{" and token.kind == "mark":
            if any(t.text in ("struct", "union", "class", "enum") for t in tokens[:i]):
                return tokens[:i] + tokens[(closing(tokens, i) or i) + 1 :]
            break
    return tokens


@dataclass(frozen=True)
class SharedDeclaration:
    """A parsed ``__shared__`` declaration."""

    declarators: tuple[tuple[str, str, bool], ...]  # of each variable: name, type, whether it has an initializer
    alignment: str = ""
    inline_type: str = ""


def parse_shared(source: Source, declaration: Sequence[Token]) -> SharedDeclaration:
    """Parse a ``__shared__`` declaration.

    In ``__shared__ __align__(16) float a[4][8], *b``, the type of ``a`` is ``float[4][8]`` and that of ``b``
    ``float*``.
    """
    declaration = Tokens(declaration)
    aligned = [
        k + 1
        for k, token in enumerate(declaration[:-1])
        if token.text in ("__align__", "alignas", "aligned", "__aligned__") and declaration[k + 1].text == "("
    ]
    alignment = join(declaration[aligned[-1] + 1 : closing(declaration, aligned[-1])]) if aligned else ""
    dynamic = any(t.text == "extern" for t in declaration)
    tokens = [t for t in strip_attributes(declaration) if t.text not in _QUALIFIERS]
    parts = split_commas(tokens)
    if not parts:
        raise source.error(declaration[0], "a __shared__ declaration without a name")
    base: list[Token] | None = None
    out = []
    for part in parts:
        stop = _first_outside(part, ("[", "="))
        head = part[:stop]
        if not head or head[-1].kind != "word":
            raise source.error(
                part[0],
                f"the simulator cannot read this __shared__ declaration: {join(part)}",
                "Name the type first (using Row = float[32];), then declare: __shared__ Row rows[8];",
            )
        name = head[-1].text
        pointers = head[:-1]
        if base is None:
            cut, starred = len(pointers), False
            while cut and pointers[cut - 1].text in ("*", "&", "const", "__restrict__"):
                starred = starred or pointers[cut - 1].text == "*"
                if not starred:
                    break
                cut -= 1
            base, pointers = pointers[:cut], pointers[cut:]
            if not base:
                raise source.error(part[0], f"the __shared__ variable {name} has no type")
        dimensions = part[stop:]
        size = _first_outside(dimensions, ("=", "{"))
        dimensions, initialized = dimensions[:size], size < len(dimensions)
        shape = join(dimensions)
        if dynamic and shape.startswith("[]"):
            shape = shape[2:]
        out.append((name, join(base) + "".join(t.text for t in pointers) + shape, initialized))
    assert base is not None
    inline_type = join(base) if any(t.text == "{" for t in base) else ""
    return SharedDeclaration(tuple(out), alignment, inline_type)


def _first_outside(tokens: Sequence[Token], marks: tuple[str, ...]) -> int:
    """Return the index of the first of ``marks`` that is not inside brackets of any kind; the length if none is."""
    depth = 0
    for k, t in enumerate(tokens):
        if depth == 0 and t.text in marks:
            return k
        depth += (DEPTH | {"<": 1, ">": -1}).get(t.text, 0)
    return len(tokens)
