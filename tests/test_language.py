"""Language rules for docstrings, comments and names, as far as a program can check them."""

from __future__ import annotations

import re

from tests.sentences import ROOT, every

RELATIVE = re.compile(r"(What|Who|Which|Whether|Where|Of)\b")
"""Matches first words that a docstring must not have. A docstring must begin with a verb or a noun phrase."""

DIALECT = re.compile(
    r"\b((?<!user )(?<!`)(?<!\")nobody(?! USER)|in vain|mostly just|no news|goes alone|go alone|is given back"
    r"|who waits)\b",
    re.IGNORECASE,
)

PRIVATE_NAMES = re.compile(
    r"\b(meet_cluster|arrive_only|take_registers|give_registers|begin_products|commit_products|wait_for_products"
    r"|multiply_tiles|multiply_registers|describe_tile|make_barrier|arrive_and_expect|load_box|load_box_for_all"
    r"|tell_when_complete|let_next_kernel_start|wait_until_read|kTogether|kConsumers|several_workers|goes_alone"
    r"|host_looks|own_memory|vain_rounds|told_by_another)\b|\bllmk::(meet|arrive|wait|multiply)\("
)
"""Former names of this repository for PTX instructions and technical terms, which must not return."""


def test_docstrings_begin_with_a_verb_or_a_noun_phrase_and_no_text_has_dialect_words() -> None:
    found = [
        f"{place}: {text[:200]}"
        for kind, place, text in every()
        if (kind == "docstring" and RELATIVE.match(text)) or (kind != "message" and DIALECT.search(text))
    ]
    assert not found, "\n".join(found)


def test_no_private_names() -> None:
    sources = (
        path for top in ("grader", "lessons", "exercises", "solutions", "tests") for path in (ROOT / top).rglob("*")
    )
    found = [
        f"{path.relative_to(ROOT)}: {word[0]}"
        for path in sources
        if path.suffix in (".py", ".cu", ".cuh", ".h", ".cpp", ".ipynb", ".toml", ".md")
        and path.name != "test_language.py"
        for word in [PRIVATE_NAMES.search(path.read_text(encoding="utf-8"))]
        if word
    ]
    assert not found, "\n".join(found)
