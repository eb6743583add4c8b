"""The builders of day 9's sparsity patterns, and the one kernel that runs them all."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
import torch

from grader import load_kernel
from tests.exercises.conftest import ROOT

LESSON = ROOT / "lessons" / "day09_sparse_attention"


def load() -> ModuleType:
    """The lesson's module, which is no package."""
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
def test_mask_and_lists_say_the_same(name: str) -> None:
    pattern = BUILT[name]
    again = patterns.from_mask(pattern.mask())
    assert torch.equal(again.offsets, pattern.offsets) and torch.equal(again.indices, pattern.indices)


def test_what_each_builder_promises() -> None:
    assert BUILT["window"].row(20).tolist() == [16, 17, 18, 19, 20]
    assert patterns.sliding_window(LENGTH, 2, causal=False).row(20).tolist() == [19, 20, 21]
    assert BUILT["dilated"].row(20).tolist() == [11, 14, 17, 20]
    assert BUILT["global"].row(20).tolist() == [0, 1, 2]
    assert all(len(BUILT["random"].row(query)) == min(4, query + 1) for query in range(LENGTH))
    assert BUILT["dense"].entries == LENGTH * (LENGTH + 1) // 2
    own = patterns.hierarchical(1024, 8)
    assert all(query in own.row(query).tolist() for query in (0, 1, 500, 1023))
    assert len(own.row(1023)) < 2 * 8 * 8, "grows with the logarithm"


def test_blocks_cover_the_pattern() -> None:
    for pattern in BUILT.values():
        blocks = pattern.blocks(16).mask()
        grown = blocks.repeat_interleave(16, 0).repeat_interleave(16, 1)[:LENGTH, :LENGTH]
        assert (grown | ~pattern.mask()).all()
        assert all(
            pattern.mask()[16 * r : 16 * r + 16, 16 * c : 16 * c + 16].any() for r, c in blocks.nonzero().tolist()
        )


def test_one_kernel_runs_them_all() -> None:
    kernel = load_kernel(ROOT / "solutions" / "day09_sparse_attention" / "csr_attention.cu", device="cpu")
    q, k, v = (torch.randn(1, 2, LENGTH, 32) for _ in range(3))
    for name, pattern in BUILT.items():
        out = torch.full_like(q, torch.nan)
        kernel.csr_attention(q, k, v, pattern.offsets, pattern.indices, out, 1, 2, LENGTH, LENGTH, 32, 32**-0.5)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=pattern.mask())
        assert torch.allclose(out, expected, atol=1e-5), name
