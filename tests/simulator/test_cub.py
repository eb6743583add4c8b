"""Tests of CUB's collectives, compared with numpy under every schedule."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(13)


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, schedule, request):
    loaded = load("cub", checks=request.param)
    loaded.configure(**schedule)
    return loaded


@pytest.mark.parametrize("threads", [32, 48, 256])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_block_reduce(kernel, threads, share):
    x = RNG.integers(-9, 10, (3, threads)).astype(np.float32)
    x[0] = RNG.choice([-1.0, 1.0, -0.5, 0.5, 2.0], threads)  # so that products are exact in float
    valid = max(1, int(threads * share))
    out, best = np.zeros(5, dtype=np.float32), np.zeros(1, dtype=np.int32)
    run(kernel, "reduce_in_block", x, out, best, threads, valid)
    first = x[0]
    assert out.tolist()[:4] == [first.sum(), first[:valid].sum(), x.sum(), first[:valid].max()]
    np.testing.assert_allclose(out[4], first.astype(np.float64).prod(), rtol=1e-5)
    assert best[0] == first.argmax()


def test_block_of_three_dimensions(kernel):
    x, out = RNG.integers(0, 100, 64).astype(np.int32), np.zeros(1, dtype=np.int32)
    run(kernel, "reduce_in_3d", x, out)
    assert out[0] == x.sum()


@pytest.mark.parametrize("valid", [1, 7, 32])
def test_warp_reduce(kernel, valid):
    x, out = RNG.integers(-9, 10, 64).astype(np.float32), np.zeros(12, dtype=np.float32)
    run(kernel, "reduce_in_warps", x, out, valid)
    np.testing.assert_array_equal(out[:2], x.reshape(2, 32).sum(1))
    np.testing.assert_array_equal(out[2:4], x.reshape(2, 32)[:, :valid].sum(1))
    np.testing.assert_array_equal(out[4:], x.reshape(8, 8).min(1))


@pytest.mark.parametrize("threads", [40, 128])
def test_block_scan(kernel, threads):
    x = RNG.integers(-50, 50, 2 * threads).astype(np.int32)
    inclusive, exclusive, largest, totals = np.zeros((4, threads), dtype=np.int32)
    by_items = np.zeros(2 * threads, dtype=np.int32)
    run(kernel, "scan_in_block", x, inclusive, exclusive, largest, by_items, totals, threads)
    own = x[:threads]
    np.testing.assert_array_equal(inclusive, own.cumsum())
    np.testing.assert_array_equal(exclusive, own.cumsum() - own)
    np.testing.assert_array_equal(largest, np.concatenate([[-1000], np.maximum.accumulate(own)[:-1]]))
    np.testing.assert_array_equal(by_items, x.cumsum() - x)
    assert (totals == own.sum()).all()


def test_warp_scan(kernel):
    x, out = RNG.integers(-9, 10, 32).astype(np.int32), np.zeros(32, dtype=np.int32)
    run(kernel, "scan_in_warps", x, out)
    halves = x.reshape(2, 16)
    np.testing.assert_array_equal(out.reshape(2, 16), halves.cumsum(1) + 1000 * halves.sum(1, keepdims=True))
