"""Tests of cooperative groups, compared with numpy under every schedule."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(9)
LANE = np.arange(32)


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, schedule, request):
    loaded = load("cooperative_groups", checks=request.param)
    loaded.configure(**schedule)
    return loaded


def test_ranks_in_groups(kernel):
    out = np.zeros((6, 96, 14), dtype=np.int32)
    run(kernel, "get_ranks", out)
    thread, block = np.arange(96)[None, :], np.arange(6)[:, None]
    expected = [
        block + 0 * thread,
        6,
        thread,
        96,
        thread % 32,
        thread // 32,
        3,
        thread % 8,
        thread % 32 // 8,
        4,
        thread // 16,
        6,
        block % 3 + 10 * (block // 3) + 100 * (thread % 32),
        6 * 96 + 8,
    ]
    for column, want in enumerate(expected):
        np.testing.assert_array_equal(out[:, :, column], np.broadcast_to(want, (6, 96)))


@pytest.mark.parametrize(("n", "threads"), [(1, 32), (100, 64), (1000, 256), (3000, 1024)])
def test_sum_of_blocks(kernel, n, threads):
    x = RNG.integers(-50, 50, n).astype(np.float32)
    blocks = -(-n // threads)
    out = np.zeros(blocks, dtype=np.float32)
    run(kernel, "sum_blocks", x, out, n, threads)
    np.testing.assert_array_equal(out, np.pad(x, (0, blocks * threads - n)).reshape(blocks, threads).sum(1))


def test_reductions_and_scans(kernel):
    x = RNG.standard_normal(32).astype(np.float32)
    words = RNG.integers(-(2**31), 2**31, 32).astype(np.int32)
    floats, ints, doubles = np.zeros((3, 32), np.float32), np.zeros((5, 32), np.int32), np.zeros(32)
    run(kernel, "reduce_all", x, words, floats, ints, doubles)
    fours, word_fours = x.reshape(8, 4), words.reshape(8, 4)
    np.testing.assert_allclose(floats[0], x.sum(), rtol=1e-5)
    assert (floats[0] == floats[0][0]).all()
    np.testing.assert_array_equal(floats[1], np.repeat(fours.max(1), 4))
    np.testing.assert_allclose(floats[2], np.repeat(fours.prod(1), 4), rtol=1e-5)
    assert (ints[0] == np.bitwise_xor.reduce(words)).all()
    np.testing.assert_array_equal(ints[1], np.repeat(word_fours.min(1), 4))
    assert (ints[2] == x.argmax()).all()
    small = words & 15
    np.testing.assert_array_equal(ints[3], small.cumsum())
    np.testing.assert_array_equal(ints[4], (small.reshape(8, 4).cumsum(1) - small.reshape(8, 4)).ravel())
    np.testing.assert_allclose(doubles, x.astype(np.float64).sum(), rtol=1e-12)


def test_votes_and_shuffles(kernel):
    out = np.zeros((5, 32), dtype=np.int32)
    run(kernel, "vote", out)
    np.testing.assert_array_equal(out[0], 3 + 4 * (LANE < 8))
    bits = (LANE % 3 == 0).reshape(4, 8) @ (1 << np.arange(8))
    np.testing.assert_array_equal(out[1], np.repeat(bits, 8))
    np.testing.assert_array_equal(out[2], 3 << (LANE % 8 // 2 * 2))
    assert (out[3] == 0).all()  # 2^32 - 1 plus 1 wraps around to 0
    tile, rank = LANE // 8 * 8, LANE % 8
    up = np.where(rank == 0, LANE, LANE - 1)
    np.testing.assert_array_equal(out[4], tile + 2 + 100 * up + 10000 * (tile + (rank ^ 5)))


def test_coalesced_groups(kernel):
    x = RNG.integers(-1, 4, 32).astype(np.int32)
    x[[3, 20]] = 1, 2
    count = np.array([1000], dtype=np.int32)
    out = np.zeros((5, 32), dtype=np.int32)
    run(kernel, "compact", x, count, out)
    active = np.flatnonzero(x > 0)
    ranks = np.arange(active.size)
    assert count[0] == 1000 + active.size
    np.testing.assert_array_equal(out[0], np.where(x > 0, 1000 + np.cumsum(x > 0) - 1, -1))
    assert (out[1][active] == x[active].sum()).all()
    labels = list(dict.fromkeys(x[active].tolist()))  # in order of first appearance
    for lane in active:
        assert out[2][lane] == 100 * labels.index(x[lane]) + 10 * len(labels) + (x == x[lane]).sum()
        assert out[3][lane] == ((active < 16) == (lane < 16)).sum()
    ballot = int((active & 1) @ (1 << ranks))
    down = active[np.minimum(ranks + 1, active.size - 1)]
    up = active[np.maximum(ranks - 1, 0)]
    np.testing.assert_array_equal(out[4][active], (down + 100 * up + 10000 * ballot).astype(np.int64).astype(np.int32))


def test_grid_sync(kernel):
    blocks, threads = 5, 64
    values, out = np.zeros((2, blocks * threads), dtype=np.int32)
    run(kernel, "meet", values, out, blocks, threads)
    np.testing.assert_array_equal(out, np.roll(3 * np.arange(blocks * threads), -100))


@pytest.mark.parametrize("n", [1, 3, 4, 96, 250])
def test_asynchronous_copies_of_groups(kernel, n):
    x = RNG.standard_normal(n).astype(np.float32)
    out = np.zeros((3, n), dtype=np.float32)
    run(kernel, "copy", x, out, n)
    np.testing.assert_array_equal(out, np.stack([x] * 3))
