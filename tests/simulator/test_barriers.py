"""Tests of barriers of blocks and grids, and of threads that poll until another thread acts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

LAUNCH_FAILURE, TOO_LARGE = 719, 720


@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (3, 33), (2, 256), (2, 1024)])
def test_values_are_passed_between_threads(load, schedule, blocks, threads):
    kernel = load("barriers")
    kernel.configure(**schedule)
    out = np.zeros((blocks, threads), dtype=np.int32)
    assert kernel("neighbors", out, blocks, threads, 5).error == 0
    np.testing.assert_array_equal(out, np.tile((np.arange(threads) + 5) % threads, (blocks, 1)))


@pytest.mark.parametrize("n", [6, 31, 100, 1024])
def test_barriers_with_predicates(load, schedule, n):
    kernel = load("barriers")
    kernel.configure(**schedule)
    out = np.zeros(n, dtype=np.int32)
    assert kernel("predicates", out, n).error == 0
    np.testing.assert_array_equal(out, (n + 2) // 3 * 10000 + 1000 + 100)


@pytest.mark.parametrize(("threads", "n"), [(64, 64), (64, 40), (1024, 1), (100, 99)])
def test_exited_threads_are_not_waited_for(load, schedule, threads, n):
    kernel = load("barriers")
    kernel.configure(**schedule)
    out = np.zeros(n, dtype=np.int32)
    assert kernel("early_exit", out, threads, n).error == 0
    np.testing.assert_array_equal(out, n)


def test_named_barriers(load, schedule):
    kernel = load("barriers")
    kernel.configure(**schedule)
    out = np.zeros(64, dtype=np.int32)
    assert kernel("producer", out).error == 0
    np.testing.assert_array_equal(out, np.arange(63, -1, -1) ** 2)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (8, 64), (16, 1024), (256, 40)])
def test_a_cooperative_grid_synchronizes(load, schedule, blocks, threads):
    kernel = load("barriers")
    kernel.configure(**schedule)
    n = blocks * threads
    data, sums = np.arange(n, dtype=np.int32), np.zeros(1, dtype=np.int32)
    assert kernel("whole_grid", data, sums, blocks, threads, 3, True).error == 0
    np.testing.assert_array_equal(data, (np.arange(n) + 3) % n)
    assert sums[0] == n


def test_a_grid_needs_a_cooperative_launch_that_fits(load):
    kernel = load("barriers")
    data, sums = np.zeros(17 * 1024, dtype=np.int32), np.zeros(1, dtype=np.int32)
    assert kernel("whole_grid", data, sums, 17, 1024, 1, True).error == TOO_LARGE
    assert kernel("whole_grid", data, sums, 2, 32, 1, False).error == LAUNCH_FAILURE


def test_the_last_block_sees_what_the_others_wrote(load, schedule):
    kernel = load("barriers")
    kernel.configure(**schedule)
    x = np.arange(5000, dtype=np.float32) % 7
    for blocks in (1, 7, 100):
        partial, out = np.zeros(blocks, dtype=np.float32), np.zeros(1, dtype=np.float32)
        assert kernel("last_block", x, partial, out, 5000, blocks).error == 0
        assert out[0] == x.sum()


@pytest.mark.parametrize("launcher", ["wait_for_next", "wait_volatile"])
@pytest.mark.parametrize("threads", [1, 64])
def test_a_block_may_wait_for_a_later_one(load, launcher, threads):
    kernel = load("barriers")
    for settings in ({"workers": 1}, {"workers": 2}):
        kernel.configure(**settings)
        flags, order = np.zeros(21, dtype=np.int32), np.full(20, -1, dtype=np.int32)
        assert kernel(launcher, flags, order, 20, threads).error == 0
        np.testing.assert_array_equal(order, range(20) if launcher == "wait_volatile" else range(19, -1, -1))


@pytest.mark.parametrize("checks", [False, True])
def test_a_block_may_wait_for_a_later_one_through_barriers(load, schedule, checks):
    """Poll once between two barriers. Without checks, the simulator does not see volatile reads (``how`` is 1)."""
    kernel = load("barriers", checks)
    for how in range(6):
        if how == 1 and not checks:
            continue
        kernel.configure(**schedule)
        for blocks in (2, 21):
            flags, order = np.zeros(blocks, dtype=np.int32), np.full(blocks, -1, dtype=np.int32)
            assert kernel("wait_through_barriers", flags, order, blocks, blocks - 1, how).error == 0, how
            np.testing.assert_array_equal(order, range(blocks - 1, -1, -1))


@pytest.mark.parametrize("launcher", ["poll_two_counters", "put_tickets_back", "count_polls"])
def test_a_block_may_add_until_another_one_has_finished(load, schedule, launcher):
    """A block that adds again is held back, but not for ever: the other block may need it, or be held back as well."""
    kernel = load("held_blocks", checks=True)
    kernel.configure(**schedule)
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, dtype=np.int32)
    outcome = kernel(launcher, x, out)
    assert outcome.error == 0 and not outcome.report["findings"]
    np.testing.assert_array_equal(out, x)


def test_endless_polling_through_barriers_is_counted_not_timed(load):
    kernel = load("barriers", checks=True)
    for how in range(6):
        kernel.configure(spin_rounds=1000, watchdog_seconds=1000)
        flags, order = np.zeros(4, dtype=np.int32), np.zeros(3, dtype=np.int32)
        outcome = kernel("wait_through_barriers", flags, order, 3, 3, how)
        assert outcome.error == 702, "cudaErrorLaunchTimeout"
        assert [finding["kind"] for finding in outcome.report["findings"]] == ["infinite_loop"]
    kernel.configure(spin_rounds=100000)


@pytest.mark.parametrize("launcher", ["spin_lock", "lock_in_block"])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 2), (3, 70), (20, 33)])
def test_spin_locks(load, schedule, launcher, blocks, threads):
    kernel = load("barriers")
    kernel.configure(**schedule)
    lock, counter = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    rounds = 3
    arguments = (rounds,) if launcher == "spin_lock" else ()
    assert kernel(launcher, lock, counter, blocks, threads, *arguments).error == 0
    assert counter[0] == blocks * threads * rounds


def test_lanes_that_overwrite_each_other_make_progress(load):
    kernel = load("barriers", checks=True)
    drawn = list(itertools.accumulate(range(1280), lambda r, _: (r * 1103515245 + 12345) % 2**32, initial=1))
    bins, done = np.array([r >> 16 & 3 for r in drawn[1:]], dtype=np.int32), np.zeros(32, dtype=np.int32)
    assert kernel("read_back", bins, done, 40).error == 0
    assert done.all()
