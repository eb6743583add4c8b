"""Tests of cuda::barrier, cuda::pipeline and cuda::atomic_ref, under every schedule and with all checks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(17)


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, schedule, request):
    loaded = load("cuda_barrier", checks=request.param)
    loaded.configure(**schedule)
    return loaded


@pytest.mark.parametrize("rounds", [1, 5])
def test_a_barrier_has_several_phases(kernel, rounds):
    x = RNG.standard_normal(64).astype(np.float32)
    out = np.zeros(64, dtype=np.float32)
    run(kernel, "run_phases", x, out, rounds)
    value = x.copy()
    for _ in range(rounds):
        value = value * np.float32(0.5) + np.roll(value, -1)
    np.testing.assert_array_equal(out, value)


def test_a_barrier_completes_copies(kernel):
    x, out = RNG.standard_normal(256).astype(np.float32), np.zeros(256, dtype=np.float32)
    run(kernel, "copy_reversed", x, out)
    np.testing.assert_array_equal(out, x[::-1])


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_pipelines(kernel, rounds):
    x = RNG.integers(-9, 9, (rounds, 128)).astype(np.float32)
    alone, together = np.zeros(32, dtype=np.float32), np.zeros(64, dtype=np.float32)
    run(kernel, "sum_alone", x, alone, rounds)
    np.testing.assert_array_equal(alone, x.reshape(rounds, 32, 4).sum((0, 2)))
    run(kernel, "sum_together", x, together, rounds)
    np.testing.assert_array_equal(together, x[:, ::-1].reshape(rounds, 2, 64).sum((0, 1)))


@pytest.mark.parametrize("blocks", [1, 9])
def test_last_block(kernel, blocks):
    x = RNG.integers(-99, 99, 64 * blocks).astype(np.int32)
    partial, done, total = np.zeros(blocks, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(kernel, "sum_in_one_pass", x, partial, done, total, blocks)
    assert total[0] == x.sum() and done[0] == blocks


@pytest.mark.parametrize("checks", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize(("height", "width"), [(8, 32), (20, 100), (3, 4)])
def test_boxes_complete_on_a_barrier(load, schedule, checks, height, width):
    copies = load("barrier_copies", checks=checks)
    copies.configure(**schedule)
    x = RNG.integers(0, 1000, (height, width), dtype=np.int32)
    out = np.zeros_like(x)
    run(copies, "run_boxes", x, out, height, width)
    np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("checks", [False, True], ids=["plain", "checked"])
def test_runs_complete_on_a_barrier(load, schedule, checks):
    copies = load("barrier_copies", checks=checks)
    copies.configure(**schedule)
    x = RNG.integers(0, 1000, (3, 256), dtype=np.int32)
    out = np.zeros_like(x)
    run(copies, "run_runs", x, out, 3)
    np.testing.assert_array_equal(out, x + 1)
