"""Detection of kernels that tell the compiler to omit the simulator's checks.

An attribute can disable the checks. It is detected by its name. If macros may assemble names, the preprocessed file is
searched as well. Intrinsics of the host's processor are refused, too: the compiler does not instrument them, and no GPU
has them.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.execution.submission_sandbox import forbidden_identifiers
from grader.frontend import kernel_definitions
from grader.frontend.constructs import COMPILERS_OWN
from grader.frontend.declarations import words_before_parameters
from grader.frontend.kernel_definitions import CLUSTER_DIMS, LAUNCH_BOUNDS, find_kernels
from grader.frontend.macros import unexpanded_with
from grader.frontend.messages import RewriteError
from grader.frontend.rewrite import COPIES
from grader.frontend.tokens import Source, Token
from grader.frontend.toolchain.process import Command, RunCommand

if TYPE_CHECKING:
    from grader.execution.build.build import BuildPlan

# A directive that changes line numbers or the file name, in every spelling that a preprocessor accepts. A number sign
# followed by a comment also matches, because the comment may hide such a directive.
_RENUMBERS = re.compile(r"(?:^|\*/)[ \t\f\v\r]*(?:#|%:|\?\?=)[ \t\f\v]*(?:line\b|\d|/\*)", re.MULTILINE)
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\r?\n")
_PARTS = ("sanitize", "disable_sanitizer")
_HOST_INSTRUCTION = re.compile(r"_mm\d*_\w+|__builtin_(ia32|aarch64|arm|neon)\w*|.*(intrin|arm_neon|arm_sve)\.h.*")
_GLUE = re.compile(r"##|%:%:|__CONCAT|_ElfW")  # __CONCAT and _ElfW are macros of the C library with ##
_PASTES = re.compile(rf"{_GLUE.pattern}|\b__attribute\w*")
_CHECKED = {LAUNCH_BOUNDS: "require_launch_bounds", CLUSTER_DIMS: "require_clusters"}
"""For each attribute of kernels that limits launches, the function of the simulator that checks it."""
_KEPT = ("__global__", "__device__", "__host__", "__forceinline__", *_CHECKED)
_LINEMARKER = re.compile(r'# [0-9]+ "([^"]*)"')


def unchecked_word(plan: BuildPlan, run: RunCommand) -> str:
    """Return the first word in a kernel file that would disable checks; empty if there is none."""
    source = plan.source
    texts = [token.text for tokens in source.sequences for token in tokens if token.kind == "word"]
    texts += [word for directive in source.directives for word in directive.text.split()]
    for text in texts:
        if any(part in text for part in _PARTS) or _HOST_INSTRUCTION.fullmatch(text):
            return text
    if word := forbidden_identifiers.refused_word(source):
        return word
    if _GLUE.search(_SPLICE.sub("", plan.original)) or forbidden_identifiers.may_hide(source):
        return _glued_word(plan, run)
    return ""


def _glued_word(plan: BuildPlan, run: RunCommand) -> str:
    """Return a forbidden word that appears only after macros have pasted it together, or put it into an attribute."""
    expanded = Source(_expanded(plan.original, plan, run))
    # The simulator's own macros also expand to forbidden words, for example threadIdx to ``sim::``. Expand the file
    # once more without pasting and attributes: only words that are missing in this expansion are forbidden.
    apart = Source(_expanded(_PASTES.sub(" ", _SPLICE.sub("", plan.original)), plan, run))
    expected = Counter(_bypassing_words(apart))
    for word in _bypassing_words(expanded):
        if not expected[word]:
            return word
        expected[word] -= 1
    try:
        find_kernels(expanded)
    except RewriteError:
        return "__forceinline__"
    # The front end has renamed the visible calls of these functions. A remaining one was hidden by a macro.
    return next((t.text for t in Source(_expanded(plan.text, plan, run)).tokens if t.text in COPIES), "")


def _bypassing_words(source: Source) -> Iterator[str]:
    for token in source.tokens:
        text = token.text
        if any(part in text for part in _PARTS) or COMPILERS_OWN.fullmatch(text) or _HOST_INSTRUCTION.fullmatch(text):
            yield text
    yield from forbidden_identifiers.refused_words(source)


def kernel_attributes(plan: BuildPlan, run: RunCommand) -> dict[tuple[str, str], list[str]]:
    """Return the arguments of attributes that only the compiler's preprocessor can find, by attribute and kernel.

    The front end cannot expand a macro that has several definitions, or one that is defined in an ``#if``. The result
    omits kernels whose overloads have different arguments.
    """
    if not any(unexpanded_with(plan.source, attribute) for attribute in _CHECKED):
        return {}
    source = Source(_expanded(plan.original, plan, run))
    attributes = kernel_definitions.kernel_attributes(source)
    found: dict[tuple[str, str], list[list[str]]] = {}
    for declaration, _ in _declarations(source.tokens):
        words = words_before_parameters(declaration)
        for name, attribute in attributes.items() if "__global__" in words else ():
            found.setdefault((name, words[-1]), []).append(attribute.arguments(declaration))
    return {key: first for key, (first, *others) in found.items() if first and all(one == first for one in others)}


def hides_attribute(plan: BuildPlan, run: RunCommand) -> str:
    """Return an attribute of a kernel that the front end has not found, because of a macro; empty if there is none."""
    source = plan.source
    written = any(attribute in plan.original for attribute in _CHECKED) or _GLUE.search(plan.original)
    if not source.macros or not written:
        return ""
    has: set[tuple[str, str]] = set()
    checked: set[tuple[str, str]] = set()
    for declaration, body in _declarations(Source(_expanded(plan.text, plan, run)).tokens):
        for name in words_before_parameters(declaration)[-1:]:
            has.update((attribute, name) for attribute in _CHECKED if any(t.text == attribute for t in declaration))
            checked.update((attribute, name) for attribute, check in _CHECKED.items() if check in body)
    return next((attribute for attribute, _ in sorted(has - checked)), "")


def _declarations(tokens: Sequence[Token]) -> Iterator[tuple[Sequence[Token], list[str]]]:
    """Yield each declaration, and the names of the simulator's functions that its body calls first."""
    start = 0
    for i, token in enumerate(tokens):
        if token.text not in (";", "{", "}"):
            continue
        calls, k = [], i + 1
        while token.text == "{" and [t.text for t in tokens[k : k + 3]] == ["::", "sim", "::"]:
            calls.append(tokens[k + 3].text)
            k = next((j + 1 for j in range(k, len(tokens)) if tokens[j].text == ";"), len(tokens))
        yield tokens[start:i], calls
        start = i + 1


def renumbers_lines(text: str) -> bool:
    """Return whether a file has a ``#line`` directive or a linemarker, which would falsify the lines of findings."""
    return bool(_RENUMBERS.search(_SPLICE.sub("", text)))


def _expanded(text: str, plan: BuildPlan, run: RunCommand) -> str:
    """Return the preprocessed text without the text of headers. CUDA's keywords, such as __global__, are kept."""
    kept = "".join(f"#undef {word}\n" for word in _KEPT)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.cpp").write_text(f"#include <cuda_runtime.h>\n{kept}{text}\n", encoding="utf-8")
        includes = [f"-I{path}" for path in plan.include_dirs]
        argv = (*plan.compiler.command, *plan.flags, *includes, "-E", "kernel.cpp", "-o", "kernel.ii")
        run(Command(argv, place, plan.include_dirs))
        try:
            expanded = (place / "kernel.ii").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    ours, lines = False, []
    for line in expanded.splitlines():
        if marker := _LINEMARKER.match(line):
            ours = not marker[1].startswith(("/", "<"))
        elif ours:
            lines.append(line)
    return "\n".join(lines)
