"""Identifiers, attributes and pragmas that bypass the simulator's instrumentation.

Compilers instrument the code that they generate for plain C++ (with the flags in ``execution/build/build.py``). A
kernel could bypass this in three ways: by an attribute or a pragma that disables the instrumentation of a function, by
a builtin that moves the stack, or by a call of a function that only compilers are meant to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from grader.frontend.tokens import Source, Token, closing

_WORD = re.compile(
    r"""_Z\w+ | __cxa_\w+ | _Unwind_\w+ | __(wrap|real|tsan|ubsan|asan|sanitizer)_\w+ | __x86_\w+ | SIM_[A-Z]\w*
    | __builtin_(longjmp|setjmp|eh_return\w*|unwind_init|return|apply\w*|frob_return_addr|init_dwarf\w*|dwarf\w*
      | mempcpy\w* | st[rp]n?c(at|py)\w* | v?s?n?printf\w* | f(printf|puts|write)\w* | sincosl?
      | (modf|frexp|remquo|lgamma\w*_r)[fl]? | call_with\w* | nonlocal\w*)""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(
    r"_*(naked|optimize|optnone|target|target_clones|section|ifunc|alias|weakref|symver|no_reorder|interrupt|nocf_check"
    r"|indirect_branch|function_return|no_sanitize\w*|patchable\w*|ms_abi|sysv_abi|regparm|preserve_\w+|ms_hook\w*|model|vector_size"
    r"|ext_vector_type|disable_tail\w*|no_callee\w*|force_align\w*|no_builtin|annotate"
    r"|launch_bounds|cluster_dims|block_size|maxnreg)_*"
)
_PRAGMA = re.compile(
    r"(GCC|clang)\s+(optimize|target|push_options|pop_options|reset_options|attribute|poison|section|visibility)|redefine_extname|weak"
)


def refused_word(source: Source) -> str:
    """Return the first forbidden identifier in a file or in its macros; empty if there is none."""
    return next(refused_words(source), "")


def refused_words(source: Source) -> Iterator[str]:
    """Yield every forbidden identifier in a file and in its macros."""
    for tokens in source.sequences:
        yield from _in_tokens(tokens)
    for directive in source.directives:
        if directive.name == "pragma" and (match := _PRAGMA.search(directive.text)):
            yield f"#pragma {match[0]}"


def may_hide(source: Source) -> bool:
    """Return whether a macro contains ``__attribute__``, so that its uses may be attributes not visible in the text."""
    return any(token.text.startswith("__attribute") for macro in source.macros for token in macro.body)


def _in_tokens(tokens: Sequence[Token]) -> Iterator[str]:
    end = 0  # the index where the last attribute ends; a token with a smaller index is inside the attribute
    for index, token in enumerate(tokens):
        text = token.text
        before = tokens[index - 1].text if index else ""
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if text.startswith("__attribute") or (text == "[" and after == "["):
            last = closing(tokens, index + (text != "["))
            end = max(end, len(tokens) if last is None else last)
        if token.kind == "word" and (_WORD.fullmatch(text) or (index < end and _ATTRIBUTE.fullmatch(text))):
            yield text
        if text == "sim" and (after == "::" or before in ("::", "namespace")):
            yield "sim::"
        if text == "_Pragma" and index + 2 < len(tokens) and _PRAGMA.search(tokens[index + 2].text):
            yield tokens[index + 2].text
