"""Tests of the functions that build day 9's sparsity patterns, and of the kernel that uses the patterns."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from grader import load_kernel
from tests.exercises.conftest import ROOT

LESSON = ROOT / "lessons" / "day09_sparse_attention"


def load() -> ModuleType:
    """Load day 9's Python module from its file, because lesson folders are no packages."""
    spec = importlib.util.spec_from_file_location("day09_patterns", LESSON / "patterns.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["day09_patterns"] = module
    spec.loader.exec_module(module)
    return module


patterns = load()
LENGTH = 48
BUILT = {
    "dense": patterns.dense(LENGTH),
    "both ways": patterns.dense(LENGTH, causal=False),
    "window": patterns.sliding_window(LENGTH, 5),
    "dilated": patterns.dilated(LENGTH, 4, 3),
    "global": patterns.global_keys(LENGTH, 3),
    "random": patterns.random_keys(LENGTH, 4, seed=1),
    "hierarchical": patterns.hierarchical(LENGTH, 4),
    "union": patterns.sliding_window(LENGTH, 5) | patterns.global_keys(LENGTH, 2) | patterns.random_keys(LENGTH, 2, 3),
}


@pytest.mark.parametrize("name", BUILT)
def test_lists_are_ascending_distinct_and_in_range(name: str) -> None:
    pattern = BUILT[name]
    assert pattern.offsets[0] == 0 and pattern.offsets[-1] == pattern.entries
    for query in range(pattern.queries):
        row = pattern.row(query)
        assert (row.diff() > 0).all()
        assert row.numel() == 0 or (row.min() >= 0 and row.max() < LENGTH)
        if name != "both ways":
            assert row.numel() == 0 or row.max() <= query


@pytest.mark.parametrize("name", BUILT)
def test_mask_and_lists_are_equivalent(name: str) -> None:
    pattern = BUILT[name]
    again = patterns.from_mask(pattern.mask())
    assert torch.equal(again.offsets, pattern.offsets) and torch.equal(again.indices, pattern.indices)


def test_properties_of_each_builder() -> None:
    assert BUILT["window"].row(20).tolist() == [16, 17, 18, 19, 20]
    assert patterns.sliding_window(LENGTH, 2, causal=False).row(20).tolist() == [19, 20, 21]
    assert BUILT["dilated"].row(20).tolist() == [11, 14, 17, 20]
    assert BUILT["global"].row(20).tolist() == [0, 1, 2]
    assert all(len(BUILT["random"].row(query)) == min(4, query + 1) for query in range(LENGTH))
    assert BUILT["dense"].entries == LENGTH * (LENGTH + 1) // 2
    own = patterns.hierarchical(1024, 8)
    assert all(query in own.row(query).tolist() for query in (0, 1, 500, 1023))
    assert len(own.row(1023)) < 2 * 8 * 8, "grows with the logarithm"


def in_ring(query: int, key: int, window: int) -> bool:
    """Return whether a query sees a key: all keys within a window, every 2nd within 2 windows, every 4th within 4..."""
    distance, step, reach = abs(query - key), 1, window
    while distance >= reach:
        step, reach = 2 * step, 2 * reach
    return key % step == 0


DEFINITIONS: dict[str, tuple[Callable[[int, bool], Any], Callable[[int, int], bool]]] = {
    "dense": (lambda n, causal: patterns.dense(n, causal), lambda i, j: True),
    "window": (lambda n, causal: patterns.sliding_window(n, 3, causal), lambda i, j: abs(i - j) < 3),
    "dilated": (lambda n, causal: patterns.dilated(n, 3, 4, causal), lambda i, j: abs(i - j) in (0, 4, 8)),
    "global": (lambda n, causal: patterns.global_keys(n, 2, causal), lambda i, j: i < 2 or j < 2),
    "hierarchical": (lambda n, causal: patterns.hierarchical(n, 4, causal), lambda i, j: in_ring(i, j, 4)),
}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_builder_gives_the_pairs_of_its_definition(name: str, causal: bool) -> None:
    build, exists = DEFINITIONS[name]
    for length in (0, 1, 2, 7, 33):
        pattern = build(length, causal)
        wanted = [[j for j in range(length) if exists(i, j) and (j <= i or not causal)] for i in range(length)]
        assert [pattern.row(i).tolist() for i in range(length)] == wanted


def test_unions_count_a_pair_once() -> None:
    window, first = BUILT["window"], BUILT["global"]
    union, both = window | first, window & first
    assert torch.equal(union.mask(), window.mask() | first.mask())
    assert union.entries == window.entries + first.entries - both.entries


def test_random_keys_follow_their_seed() -> None:
    one, again, other = (patterns.random_keys(33, 4, seed=seed).indices.tolist() for seed in (5, 5, 6))
    assert one == again != other


def test_lists_become_ascending_and_distinct() -> None:
    pattern = patterns.from_lists([[3, 1, 3], [], [0]], keys=4)
    assert pattern.indices.tolist() == [1, 3, 0] and pattern.offsets.tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize("bad", [-1, 4])
def test_a_list_with_an_invalid_key_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"query 1 lists key {bad}, and there are 4 keys"):
        patterns.from_lists([[0], [2, bad]], keys=4)


def test_blocks_cover_the_pattern() -> None:
    for pattern in BUILT.values():
        blocks = pattern.blocks(16).mask()
        grown = blocks.repeat_interleave(16, 0).repeat_interleave(16, 1)[:LENGTH, :LENGTH]
        assert (grown | ~pattern.mask()).all()
        assert all(
            pattern.mask()[16 * r : 16 * r + 16, 16 * c : 16 * c + 16].any() for r, c in blocks.nonzero().tolist()
        )


def test_one_kernel_computes_every_pattern() -> None:
    kernel = load_kernel(ROOT / "solutions" / "day09_sparse_attention" / "csr_attention.cu", device="cpu")
    q, k, v = (torch.randn(1, 2, LENGTH, 32) for _ in range(3))
    for name, pattern in BUILT.items():
        out = torch.full_like(q, torch.nan)
        kernel.csr_attention(q, k, v, pattern.offsets, pattern.indices, out, 1, 2, LENGTH, LENGTH, 32, 32**-0.5)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=pattern.mask())
        assert torch.allclose(out, expected, atol=1e-5), name
