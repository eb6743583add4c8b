"""The sparsity patterns of day 9: every builder against its definition, pair by pair, and what all patterns have in common."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parents[2] / "lessons" / "day09_sparse_attention" / "patterns.py"
spec = importlib.util.spec_from_file_location("patterns", FILE)
assert spec is not None and spec.loader is not None
patterns = sys.modules.setdefault("patterns", importlib.util.module_from_spec(spec))
spec.loader.exec_module(patterns)

LENGTHS = [0, 1, 2, 7, 33]


def in_ring(query: int, key: int, window: int) -> bool:
    """Hierarchical: within the window every key; twice as far every 2nd, twice as far again every 4th, ..."""
    distance, step, reach = abs(query - key), 1, window
    while distance >= reach:
        step, reach = 2 * step, 2 * reach
    return key % step == 0


DEFINITIONS: dict[str, tuple[Callable, Callable[[int, int], bool]]] = {
    "dense": (lambda n, causal: patterns.dense(n, causal), lambda i, j: True),
    "window": (lambda n, causal: patterns.sliding_window(n, 3, causal), lambda i, j: abs(i - j) < 3),
    "dilated": (
        lambda n, causal: patterns.dilated(n, 3, 4, causal),
        lambda i, j: abs(i - j) < 12 and (i - j) % 4 == 0,
    ),
    "global": (lambda n, causal: patterns.global_keys(n, 2, causal), lambda i, j: i < 2 or j < 2),
    "hierarchical": (lambda n, causal: patterns.hierarchical(n, 4, causal), lambda i, j: in_ring(i, j, 4)),
}


def valid(pattern: patterns.Pattern, length: int, causal: bool) -> bool:
    """Ascending and distinct keys, all of them in range, none after a causal query."""
    rows = [pattern.row(i).tolist() for i in range(length)]
    assert pattern.queries == length and pattern.offsets[0] == 0 and pattern.offsets[-1] == pattern.entries
    assert [key for row in rows for key in row] == pattern.indices.tolist()
    return all(
        row == sorted(set(row)) and all(0 <= j < (i + 1 if causal else length) for j in row)
        for i, row in enumerate(rows)
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_builder_gives_the_pairs_of_its_definition(name: str, causal: bool) -> None:
    build, exists = DEFINITIONS[name]
    for length in LENGTHS:
        pattern = build(length, causal)
        wanted = [[j for j in range(length) if exists(i, j) and (j <= i or not causal)] for i in range(length)]
        assert [pattern.row(i).tolist() for i in range(length)] == wanted
        assert valid(pattern, length, causal)


@pytest.mark.parametrize("causal", [True, False])
def test_random_keys(causal: bool) -> None:
    for length in LENGTHS:
        pattern = patterns.random_keys(length, 4, seed=5, causal=causal)
        assert valid(pattern, length, causal)
        assert [len(pattern.row(i)) for i in range(length)] == [
            min(4, i + 1 if causal else length) for i in range(length)
        ]
    again, other = (patterns.random_keys(33, 4, seed=seed).indices.tolist() for seed in (5, 6))
    assert patterns.random_keys(33, 4, seed=5).indices.tolist() == again != other


def test_unions_count_a_pair_once() -> None:
    window, first = patterns.sliding_window(20, 5), patterns.global_keys(20, 3)
    union, both = window | first, window & first
    assert torch.equal(union.mask(), window.mask() | first.mask()) and valid(union, 20, causal=True)
    assert union.entries == window.entries + first.entries - both.entries


def test_lists_become_ascending_and_distinct() -> None:
    pattern = patterns.from_lists([[3, 1, 3], [], [0]], keys=4)
    assert pattern.indices.tolist() == [1, 3, 0] and pattern.offsets.tolist() == [0, 2, 2, 3]
    assert torch.equal(patterns.from_mask(pattern.mask()).indices, pattern.indices)


@pytest.mark.parametrize("bad", [-1, 4])
def test_a_list_that_names_no_key_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"query 1 lists key {bad}, and there are 4 keys"):
        patterns.from_lists([[0], [2, bad]], keys=4)


@pytest.mark.parametrize("block", [1, 4, 16])
def test_blocks_cover_every_pair_and_no_block_is_empty(block: int) -> None:
    pattern = patterns.random_keys(37, 3, seed=1)
    blocks = pattern.blocks(block)
    wanted = {(i // block, j // block) for i in range(37) for j in pattern.row(i).tolist()}
    assert {(i, j) for i in range(blocks.queries) for j in blocks.row(i).tolist()} == wanted
