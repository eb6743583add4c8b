"""Compiler messages for learners: errors first, with the learner's file and line, without the simulator's internals.

The formats of g++, clang++ and nvcc are parsed. A message about generated text is moved to the line and column of the
learner's file; a message inside a header is moved to the line of the learner's file that led there.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.frontend.brackets import unpaired
from grader.frontend.messages import CompilerMessage, RewriteError
from grader.frontend.tokens import Source
from grader.setup.errors import BuildError

if TYPE_CHECKING:
    from grader.frontend.edits import Rewritten
    from grader.frontend.toolchain.compilers import Compiler

THUNKS = "launchers"
"""The file name that compiler messages use for the generated entry points, which follow the learner's text."""
_SHOWN = 8  # the most errors that are shown
_NOTES = 4  # the most notes that are shown for an error


class CompileError(BuildError):
    """A kernel file that does not compile: all of the compiler's messages, with the learner's lines."""

    def __init__(self, message: str, hint: str = "", diagnostics: tuple[CompilerMessage, ...] = ()) -> None:
        super().__init__(message, hint)
        self.diagnostics = diagnostics


def located(path: Path, problem: RewriteError) -> RewriteError:
    """Return an error of the front end as if a compiler had reported it."""
    text = CompilerMessage("error", problem.message, path.name, problem.line, problem.column, problem.source_line)
    shown = RewriteError(problem.line, problem.column, str(text), problem.hint, source_line=problem.source_line)
    shown.diagnostics = (text,)
    return shown


def explain(output: str, path: Path, original: str, rewritten: Rewritten | None, compiler: Compiler) -> CompileError:
    """Return the output of a failed compiler as one error."""
    found = read_messages(output, path, original, rewritten)
    errors = [d for d in found if d.severity == "error"]
    if not errors:
        return CompileError(_unexplained(output, path, compiler), _hint_for_output(output))
    unclosed = [replace(message, severity="error") for message in found if _UNCLOSED in message.message]
    if unclosed:  # the brackets that seem to be missing are inside the unclosed string
        errors = unclosed[:1]
    elif bracket := _unpaired_bracket(path, original):
        return bracket
    shown: list[CompilerMessage] = []
    for error in errors[:_SHOWN]:
        advice = _advice(error, rewritten is not None)
        shown.append(error if any(advice == earlier.advice for earlier in shown) else replace(error, advice=advice))
    text = "\n".join(map(str, shown))
    if len(errors) > len(shown):
        text += f"\n... and {len(errors) - len(shown)} more errors"
    advice = next((error.advice for error in shown if error.advice), "")
    return CompileError(text, advice, (*shown, *errors[len(shown) :], *(d for d in found if d.severity != "error")))


def _unpaired_bracket(path: Path, original: str) -> CompileError | None:
    """Return an error about an unmatched bracket, which explains the compiler's messages; None if all brackets match.

    The branches of an ``#if`` may contain different brackets. So a file with branches is left to the compiler.
    """
    if _BRANCH.search(original):
        return None
    problem = unpaired(Source(original))
    if problem is None:
        return None
    message = located(path, problem)
    return CompileError(message.message, message.hint, message.diagnostics)


def read_messages(output: str, path: Path, original: str, rewritten: Rewritten | None) -> list[CompilerMessage]:
    """Return the errors and warnings in a compiler's output, errors first, each with its notes."""
    reader = _Reader(path.name, original, rewritten)
    found = reader.read(output)
    unique: dict[tuple[str, int, str], CompilerMessage] = {}
    for diagnostic in found:
        unique.setdefault((diagnostic.severity, diagnostic.line, diagnostic.message), diagnostic)
    order = {"error": 0, "warning": 1}
    messages = _first_of_each_place(sorted(unique.values(), key=lambda d: order.get(d.severity, 2)))
    # An error in the generated entry points is a consequence of an error in the learner's text, if there is one.
    return [d for d in messages if d.file != THUNKS] or messages


def _first_of_each_place(messages: list[CompilerMessage]) -> list[CompilerMessage]:
    """Return the messages without errors that an earlier error of their line causes.

    A compiler reports an error in a template once for each type, and an unknown name for each of its uses. Other
    errors may name the same type at two columns and are different errors.
    """
    places: set[tuple[str, int, int | str]] = set()
    kept = []
    for message in messages:
        about: list[int | str] = [message.column] if message.column else []
        if undeclared := _UNDECLARED.search(message.message):
            about += filter(None, undeclared.groups())
        here = {(message.file, message.line, part) for part in about}
        if message.severity == "error" and message.line:
            if here & places:
                continue
            places |= here
        kept.append(message)
    return kept


# -- reading -----------------------------------------------------------------------------------------------------------

_GNU = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>[0-9]{1,9}):(?:(?P<column>[0-9]{1,9}):)? "
    r"(?P<kind>fatal error|error|warning|note): (?P<text>.*)$"
)
_NVCC = re.compile(
    r"^(?P<file>[^(\n]+)\((?P<line>[0-9]{1,9})\): "
    r"(?P<kind>catastrophic error|error|warning|note)(?: #[\w-]+)?: (?P<text>.*)$"
)
_CONTEXT = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>[0-9]{1,9}):(?:(?P<column>[0-9]{1,9}):)?\s+(?:required (?:from|by)|  recursively)"
)
_INCLUDED = re.compile(r"^(?:In file included|\s+) from (?P<file>[^:\n]+):(?P<line>[0-9]{1,9})")
_INSTANTIATION = re.compile(r"in instantiation of |requested here|in expansion of macro|expanded from macro")
_LINKER = re.compile(
    r"^(?:\S*?(?P<file>[^/\s:(]+)):(?:(?P<line>[0-9]{1,9})|\([^)]*\)): (?P<text>undefined reference to .*)$"
)
_PTXAS = re.compile(r"^ptxas (?:(?P<where>.*), line \d+; )?(?P<kind>error|fatal)\s*: (?P<text>.*)$")
_BRANCH = re.compile(r"^[ \t]*#[ \t]*(?:if|el)", re.MULTILINE)
_UNCLOSED = "missing terminating"
_INTERNAL = re.compile(r"internal compiler error|PLEASE submit a bug report|died due to signal", re.IGNORECASE)
_LONGEST = 2000
"""The characters of an output line, or of a line of a kernel, that are parsed; the rest is ignored."""
_GENERATED = ("kernel.cpp", "kernel.cu", "main.cpp", "cuda.cu")
_QUOTES = str.maketrans({"‘": "'", "’": "'"})
_OPENING = re.compile(r"`(?=\w[^`'\n]*')")
"""The quotation mark with which ld begins a name."""


@dataclass
class _Raw:
    """A message as the compiler printed it, before its place is mapped to the learner's file."""

    kind: str
    file: str
    line: int
    column: int
    text: str
    context: list[tuple[str, int, int]] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    caret: tuple[str, int] | None = None


class _Reader:
    def __init__(self, name: str, original: str, rewritten: Rewritten | None) -> None:
        self.name = name
        self.lines = original.split("\n")
        self.rewritten = rewritten

    def read(self, output: str) -> list[CompilerMessage]:
        groups: list[list[_Raw]] = []  # each error or warning with its notes
        for raw in self._raw(_OPENING.sub("'", output).translate(_QUOTES)):
            if raw.kind != "note":
                groups.append([raw])
            elif groups:
                groups[-1].append(raw)
        return [self._finish(group) for group in groups]

    def _raw(self, output: str) -> list[_Raw]:
        context: list[tuple[str, int, int]] = []
        found: list[_Raw] = []
        previous = ""
        for line in output.splitlines():
            line = line[:_LONGEST]
            match = _GNU.match(line) or _NVCC.match(line)
            if match:
                groups = match.groupdict()
                kind = groups["kind"].split()[-1]
                column = int(groups.get("column") or 0)
                found.append(_Raw(kind, groups["file"], int(groups["line"]), column, groups["text"], context))
                context = []
            elif inside := (_CONTEXT.match(line) or _INCLUDED.match(line)):
                context.append((inside["file"], int(inside["line"]), int(inside.groupdict().get("column") or 0)))
            elif linker := _LINKER.match(line):
                # The linker may name the generated file. Its line numbers are still those of the learner's file.
                ours = linker["line"] and linker["file"] in (self.name, *_GENERATED)
                place = (self.name, int(linker["line"])) if ours else ("", 0)
                found.append(_Raw("error", *place, 0, linker["text"]))
            elif ptxas := _PTXAS.match(line):
                found.append(_Raw("error", "", 0, 0, f"ptxas: {ptxas['text']}"))
            elif found and re.fullmatch(r"\s*[~^][\s~^]*", line):
                found[-1].caret = (previous, line.index("^") if "^" in line else 0)
            elif found and _is_continuation(line):
                found[-1].extra.append(line.strip())
            previous = line
        return found

    def _finish(self, group: list[_Raw]) -> CompilerMessage:
        head, notes = group[0], group[1:]
        file, line, column = self._place(head, notes)
        shown: list[CompilerMessage] = []
        for note in notes:
            if note.file != self.name or _INSTANTIATION.search(note.text):
                continue
            if (note.line, note.text) in [(n.line, n.message) for n in shown] or _is_noise(note.text):
                continue
            at = self._column(note.line, note.column, note.caret)
            source = self._source(note.line) if note.line != line else ""
            shown.append(CompilerMessage("note", _clean(note.text), self.name, note.line, at, source))
        text = head.text
        if head.extra:
            text += " (" + "; ".join(head.extra) + ")"
        if text.startswith("undefined reference to"):
            text = text.replace("undefined reference to", "used but not defined:")
        source = self._source(line) if file == self.name else ""
        severity = "warning" if head.kind == "warning" else "error"
        return CompilerMessage(severity, _clean(text), file, line, column, source, tuple(shown[:_NOTES]))

    def _place(self, head: _Raw, notes: list[_Raw]) -> tuple[str, int, int]:
        """Return the place in the learner's file that a message is about."""
        if head.file == self.name and head.line:
            return self.name, head.line, self._column(head.line, head.column, head.caret, head.text)
        # For a message in a header or in generated text, use the line of the learner's file that led there.
        for note in notes:
            if note.file == self.name and _INSTANTIATION.search(note.text):
                return self.name, note.line, self._column(note.line, note.column, note.caret, head.text)
        for file, line, column in reversed(head.context):
            if file == self.name:
                return self.name, line, self._column(line, column, None, head.text)
        if "undefined reference" in head.text:
            word = re.search(r"'(\w+)", head.text)
            number = self._first_lines.get(word[1], 0) if word else 0
            return self.name, number, self._column(number, 0, None, head.text) if number else 0
        return Path(head.file).name, head.line, head.column

    @functools.cached_property
    def _first_lines(self) -> dict[str, int]:
        """The number of the first line that contains a word, for each word of the file."""
        first: dict[str, int] = {}
        for number, text in enumerate(self.lines, 1):
            for word in re.findall(r"\w+", text):
                first.setdefault(word, number)
        return first

    def _source(self, line: int) -> str:
        return self.lines[line - 1].rstrip("\r") if 1 <= line <= len(self.lines) else ""

    def _column(self, line: int, column: int, caret: tuple[str, int] | None, text: str = "") -> int:
        """Return the column in the learner's line for a column that a compiler reports.

        A compiler counts bytes, not characters, and counts them in the generated text. nvcc reports no column (0), but
        prints a caret below the line.
        """
        source = self._source(line)
        if column == 0:
            if caret and caret[0].strip() == source.strip() and source.strip():
                return caret[1] - _indent(caret[0]) + _indent(source) + 1
            word = re.search(r"""['"](\w+)['"]""", text)
            found = re.search(rf"\b{re.escape(word.group(1))}\b", source) if word else None
            return found.start() + 1 if found else 0
        generated = source
        if self.rewritten:
            generated = self.rewritten.line(line) or source
        characters = len(generated.encode()[: column - 1].decode(errors="ignore")) + 1
        if self.rewritten and generated != source:
            return self.rewritten.original_column(line, characters)
        return characters


def _is_continuation(line: str) -> bool:
    return bool(re.match(r"^\s+(argument types are|object type is|detected during|types? )", line))


def _is_noise(text: str) -> bool:
    return bool(
        re.search(
            r"template argument deduction/substitution failed|suppressed|this diagnostic|each undeclared identifier",
            text,
        )
    )


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _clean(text: str) -> str:
    """Return a message in which the names of the generated text are replaced by the learner's."""
    text = text.replace("\\U000000", "\\u")
    text = re.sub(r"::?sim_args|sim_args#\d+|sim_args", "arguments", text)
    text = re.sub(r"\bsim::Half\b|\bsim::half\b", "__half", text)
    text = re.sub(r"\bsim_type_(\w+)", r"the type of \1", text)
    text = re.sub(r"\bsim_(?:local|math)_(\w+)", r"\1", text)
    text = re.sub(r"\s*\[-[\w=,-]+\]$", "", text)
    text = text.replace(" (detected during:)", "")  # the list of instantiations that follows is not read
    text = re.sub(r"^there are no arguments to ('\w+') that depend on .*", r"\1 was not declared in this scope", text)
    if text.startswith("no matching function for call to '"):
        text = re.sub(r"\bconst ([\w ]+)&|(?: const)?&", r"\1", text)  # sim::launch passes constant references
    return text.strip()


# -- advice ------------------------------------------------------------------------------------------------------------


_UNDECLARED = re.compile(
    r"'(\w+)' (?:was not declared|has not been declared|does not name a type)|"
    r"(?:undeclared identifier|unknown type name) '(\w+)'|identifier \"(\w+)\" is undefined"
)
_OF_VECTORS = re.compile(
    r"(?:no match for 'operator|invalid operands to binary expression).*'(?:const )?((?:float|double|u?int)[234])['&]"
)
_HEADERS = {
    r"(__)?half2?|__\w+2half\w*|__half\w+": "cuda_fp16.h",
    r"(__)?nv_bfloat162?|__\w*bfloat16\w*": "cuda_bf16.h",
}
"""The header that declares the names that match a pattern."""


def _advice(error: CompilerMessage, simulated: bool) -> str:
    """Return how to fix a common mistake; empty for other errors."""
    undeclared = _UNDECLARED.search(error.message)
    unknown = next(filter(None, undeclared.groups()), "") if undeclared else ""
    for names, header in _HEADERS.items():
        if re.fullmatch(names, unknown):
            return f"Add #include <{header}>, or check the spelling of {unknown}."
    if re.fullmatch(r"__shfl(_up|_down|_xor)?|__(ballot|any|all)", unknown):
        return f"GPUs since Volta have no {unknown}: write {unknown}_sync(0xffffffff, ...) for all 32 lanes."
    if re.search(r"ambiguous|more than one operator", error.message) and re.search(
        r"(operator|overloaded '\w+\().*(__half|__nv_bfloat16)", error.message
    ):
        return "Convert the half-precision number first: static_cast<float>(x)."
    if vector := _OF_VECTORS.match(error.message):
        kind = vector[1]
        return f"CUDA has no operators for {kind}. Use the members: make_{kind}(a.x + b.x, a.y + b.y, ...)."
    if "declaration is incompatible with previous" in error.message and "extern __shared__" in error.source_line:
        return (
            "An extern __shared__ array of one name has one type in the whole file, also in a template. Declare bytes "
            "and cast: extern __shared__ __align__(16) unsigned char bytes[]; T* x = reinterpret_cast<T*>(bytes);"
        )
    if error.source_line.startswith("```"):
        return "Remove the lines that begin with ```: they are Markdown."
    if advice := _advice_on_python(error, unknown):
        return advice
    cudas = re.match(r"__\w+|cuda[A-Z]\w*|cu[A-Z]\w*|nv\w+|wmma", unknown)
    if simulated and cudas and "did you mean" not in error.message:
        return f"Check the spelling of {unknown}. If CUDA defines it, the simulator does not support it."
    missing = re.search(r"(\S+): No such file or directory|cannot open source file \"(\S+)\"", error.message)
    if missing:
        return "A kernel file may include headers of CUDA, the course (llmk/...) and the C++ standard library."
    if re.search("need 'typename' before|missing 'typename' prior|is parsed as a non-type", error.message):
        newer = "" if simulated else " With -std=c++20, g++ and nvcc do not require it everywhere."
        return f"Write typename before it.{newer}"
    if re.search("variable[- ]length array", error.message):
        return _advice_on_size(error.source_line[:_LONGEST])
    if error.message.startswith(("no matching function for call", "invalid conversion from")):
        atomic = re.match(r"no matching function for call to '(atomic\w+)", error.message)
        return f"CUDA has no {atomic[1]} for these types." if atomic else _advice_on_arguments(error.notes)
    return ""


_NAMES = {
    "print": 'Write printf, with a format: printf("%d %f\\n", an_int, a_float).',
    "torch": "A kernel cannot use torch. CUDA has functions of single numbers, such as expf, sqrtf and fmaxf.",
    "inf": "Infinity is INFINITY, with #include <cmath>.",
    "True": "In C++, write true.",
    "False": "In C++, write false.",
    "None": "C++ has no None: write nullptr for a pointer, or another value.",
    "wmma": "Add #include <mma.h>, and write nvcuda::wmma.",
}
"""Advice about names that C++ does not have, or that need their namespace."""
_EXPRESSIONS = (
    (
        r"invalid operands .*\*' and .*\*'",
        "",
        "These are pointers to whole arrays. Each thread computes one element: out[i] = a[i] + b[i].",
    ),
    (
        r"invalid type argument of unary|indirection requires pointer",
        r"\*\*",
        "C++ has no operator for powers: write x * x, or powf(x, y).",
    ),
    (
        r"invalid types '.*' for array subscript|subscripted value is not an array",
        "",
        "A tensor is a pointer to its first element: the element (row, col) is at [row * cols + col].",
    ),
    (
        r"request for member '|member reference base type '.*\*'",
        r"\.(size|shape)\b",
        "A pointer has no size or shape. Pass the sizes to the kernel as parameters.",
    ),
    (
        r"insufficient contextual information to determine type|address of overloaded function",
        r"\w<.*<<<",
        "A template argument must be a constant, not a parameter or a variable.",
    ),
    (_UNCLOSED, "", "Add the quotation mark that ends the string or character."),
)
"""Advice about expressions: a pattern for the beginning of a message, a pattern for its line, and the advice."""


def _advice_on_python(error: CompilerMessage, unknown: str) -> str:
    """Return how to write in C++ what the line says in Python."""
    code = error.source_line[:_LONGEST].strip()
    if re.match(r"expected '\(' ", error.message) and (word := re.match(r"(if|while|for)\b", code)):
        example = {"for": "for (int i = 0; i < n; ++i) { ... }"}.get(word[1], f"{word[1]} (i < n) {{ ... }}")
        return f"C++ needs parentheses, and braces in place of the colon: {example}"
    if error.message.startswith("invalid preprocessing directive") and "did you mean" not in error.message:
        return "A C++ comment begins with //, not with #."
    if unknown in _NAMES:
        return _NAMES[unknown]
    if unknown and re.match(rf"{unknown}\s*=[^=]", code):
        return f"Declare {unknown} with its type, such as int or float, where you first assign it."
    for message, line, advice in _EXPRESSIONS:
        if re.match(message, error.message) and re.search(line, code):
            return advice
    return ""


def _advice_on_size(declaration: str) -> str:
    """Return how to declare an array whose size is not a constant."""
    if "__shared__" not in declaration:
        return "The size of an array must be a constant. Declare it with the largest size that you need."
    array = re.search(r"__shared__\s+([\w: ]*\w)\s+(\w+)\s*\[", declaration)
    kind, name = array.groups() if array else ("float", "name")
    return (
        f"The size of a __shared__ array must be a constant. If it is known only at the launch, write `extern "
        f"__shared__ {kind} {name}[];` and pass the bytes to the launch: <<<grid, block, bytes, stream>>>."
    )


def _advice_on_arguments(notes: tuple[CompilerMessage, ...]) -> str:
    """Return the definition that a call does not match, and the reason; empty if there are several definitions."""
    for note in notes:
        if found := re.match(r"initializing argument (\d+) of '(.*)'", note.message):
            return f"Compare argument {found[1]} with the definition at line {note.line}: {found[2]}"
    candidates = [note for note in notes if note.message.startswith("candidate") and "expects" not in note.message]
    if len(candidates) != 1:
        return ""
    signature = re.match(r"candidate: '(?:template<[^']*> )?([^']*?)(?: \[with .*)?'", candidates[0].message)
    advice = f"Compare the arguments with the definition at line {candidates[0].line}"
    advice += f": {signature[1]}" if signature else "."
    reasons = (reason for note in notes if (reason := _why_refused(note.message)))
    return "\n".join([advice, *list(reasons)[:1]])


def _why_refused(note: str) -> str:
    """Return why a call does not match a function, from a note of g++ or clang++; empty for other notes."""
    if found := re.search(r"(?:expects|requires) (\d+) arguments?, (?:but )?(\d+) (?:was |were )?provided", note):
        return f"The function takes {found[1]} arguments, but the call has {found[2]}."
    if found := re.search(r"no known conversion for argument (\d+) from '(.*?)' to '(.*?)'", note):
        return f"Argument {found[1]} is a {found[2]}, but the function takes a {found[3]}."
    if found := re.search(r"no known conversion from '(.*?)' to '(.*?)' for (\d+)\w+ argument", note):
        return f"Argument {found[3]} is a {found[1]}, but the function takes a {found[2]}."
    if found := re.search(r"couldn't (?:deduce|infer) template (?:parameter|argument) '(\w+)'", note):
        return f"{found[1]} cannot be deduced from the arguments: write it in angle brackets after the function's name."
    if found := re.search(r"(\d+)\w+ argument \('(.*?)'\) would lose const qualifier", note):
        kind = found[2].removesuffix("const")
        return f"Argument {found[1]} is a {kind}, but the function takes a pointer to data that is not const."
    if found := re.search(r"deduced conflicting types for parameter '(\w+)' \('(.*?)' (?:and|vs\.) '(.*?)'\)", note):
        return f"{found[1]} cannot be {found[2]} for one argument and {found[3]} for another."
    return ""


def _hint_for_output(output: str) -> str:
    if re.search(r"Killed|signal 9|out of memory|cannot allocate", output, re.IGNORECASE):
        return "The compiler ran out of memory: look for huge templates, or free some memory."
    if "unsupported GNU version" in output or "unsupported clang version" in output:
        return "This nvcc does not support this g++: install an older g++ and set NVCC_CCBIN to it."
    if _INTERNAL.search(output):
        return "This is a bug in the compiler, not in your code. Write the code at that line in another way."
    if "No space left" in output:
        return "The disk is full: free some space, or set GRADER_CACHE to another folder."
    if "Unsupported gpu architecture" in output or "is not defined for option 'gpu-architecture'" in output:
        return "This nvcc is too old for the GPU: install a newer CUDA toolkit."
    return ""


_FOLDERS = re.compile(r"(\b\w+://\S+)|(?:/[^\s/:]+)+/")
"""A URL, which is kept, or the folders of a path."""


def _unexplained(output: str, path: Path, compiler: Compiler) -> str:
    """Return a message for output in which no error was recognized: its last lines, without folder names."""
    if _INTERNAL.search(output):
        line = re.search(rf"^{re.escape(path.name)}:([0-9]{{1,9}}):", output, re.MULTILINE)
        place = f" at line {line[1]}" if line else ""
        return f"{compiler} stopped with an internal error while it compiled {path.name}{place}."
    lines = [_FOLDERS.sub(lambda match: match[1] or "", line) for line in output.strip().splitlines()][-12:]
    said = "\n".join(lines) or "it printed nothing"
    return f"{compiler} failed on {path.name}:\n{said}"
