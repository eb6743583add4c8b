"""Finds names by which a kernel file could select different code for nvcc and for the simulator's compiler.

A verdict combines the simulator's findings with nvcc's result, so both must compile the same code. A macro that has
another value in nvcc than in the simulator's compiler, or in their headers, could select different code. Names of
compilers' macros are therefore refused anywhere in the file. Other names that C++, CUDA or the simulator reserve are
refused only in conditions (``#if``, ``#ifdef``), and those of <cstdint> also in ``#define`` and ``#undef``: the
simulator's headers include it before the file, and nvcc's may not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from grader.frontend.tokens import Source

_SAME = re.compile(
    r"""__CUDA_ARCH__ | __CUDA_ARCH_FEAT_SM\w+ | __CUDACC__ | __NVCC__ | __CUDACC_VER_(MAJOR|MINOR)__
    | CUDA(RT)?_VERSION | __cplusplus | __(LINE|FILE|FUNCTION|PRETTY_FUNCTION|VA_ARGS|VA_OPT)__ | defined
    | true | false | and | or | not""",
    re.VERBOSE,
)
"""Names that have the same value for both compilers, or no influence on the code."""

_RESERVED = re.compile(r"__[A-Z]\w*__ | __has_\w+ | __clang\w* | _(GLIBCXX|LIBCPP|MSC)_\w+", re.VERBOSE)
"""Names of macros that a compiler defines, or that query a compiler's features."""

_OF_CUDA = re.compile(r"_*(cuda|CUDA)\w*|_*(CU|CUB|CUBLAS|CUDNN|CUFFT|CURAND|CUSOLVER|CUSPARSE|CUTLASS)_\w*|cu[A-Z]\w*")
_OF_COMPILERS = re.compile(r"_[_A-Z]\w*")
"""Names that C++ reserves for compilers and their libraries."""

_OF_STDINT = re.compile(
    r"U?INT(MAX|PTR|(_FAST|_LEAST)?\d+)_(C|MAX|MIN|WIDTH) | (PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(MAX|MIN|WIDTH)",
    re.VERBOSE,
)
"""Names of the macros of <cstdint>."""

_CONDITIONS = ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef")
_COMMENT = re.compile(r"/\*.*?\*/|//.*", re.DOTALL)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def differing_name(source: Source, include_dirs: tuple[Path, ...]) -> str:
    """Return a name in the file whose value may differ between the two compilers; empty if there is none."""
    for tokens in source.sequences:
        for token in tokens:
            if token.kind == "word" and _RESERVED.fullmatch(token.text) and not _SAME.fullmatch(token.text):
                return token.text
    known = _macros_of(include_dirs)
    for word in _words_of_conditions(source):
        if _SAME.fullmatch(word):
            continue
        if any(names.fullmatch(word) for names in (_OF_COMPILERS, _OF_CUDA, _OF_STDINT)) or word in known:
            return word
    for directive in source.directives:
        defined = re.match(r"\w*", _COMMENT.sub(" ", directive.text).lstrip())
        if directive.name in ("define", "undef") and defined and _OF_STDINT.fullmatch(defined[0]):
            return defined[0]
    return ""


def _words_of_conditions(source: Source) -> Iterator[str]:
    for directive in source.directives:
        if directive.name in _CONDITIONS or not directive.name:  # the name in #/**/if is a part of the text
            yield from re.findall(r"\b[A-Za-z_]\w*", _COMMENT.sub(" ", directive.text))


@functools.lru_cache(maxsize=2)
def _macros_of(include_dirs: tuple[Path, ...]) -> frozenset[str]:
    """Return the macros that the simulator's headers define."""
    texts = (
        path.read_text(encoding="utf-8") for folder in include_dirs for path in folder.rglob("*") if path.is_file()
    )
    return frozenset(name for text in texts for name in _DEFINED.findall(text))
