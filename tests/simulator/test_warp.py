"""Tests of warp intrinsics, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

LANES = np.arange(32)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("argument", [0, 1, 2, 5, 16, 31, 33, -1])
def test_shuffles(load, schedule, argument, width):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    out = np.zeros((4, 32), dtype=np.int32)
    assert kernel("shuffles", out, argument, width).error == 0
    segment, last, offset = LANES // width * width, LANES // width * width + width - 1, argument & 31
    index = segment + (argument & (width - 1))
    up = np.where(LANES - offset < segment, LANES, LANES - offset)
    down = np.where(LANES + offset > last, LANES, LANES + offset)
    xor = np.where(LANES ^ offset > last, LANES, LANES ^ offset)
    np.testing.assert_array_equal(out - 1000, [index, up, down, xor])


def test_all_types_can_be_shuffled(load):
    out = np.zeros(32, dtype=np.float64)
    assert load("warp_intrinsics")("types", out).error == 0
    np.testing.assert_array_equal(out, (LANES ^ 1) * (0.75 + 2.0**40 + 2.0**41 + 2))


def cases():
    random = np.random.default_rng(0)
    yield np.zeros(32)
    yield np.ones(32)
    yield LANES % 3
    yield -LANES
    yield random.integers(-(2**31), 2**31, 32)
    yield np.where(LANES == 17, 4, 9)


@pytest.mark.parametrize("x", list(cases()))
def test_votes_matches_and_reductions(load, schedule, x):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    x = x.astype(np.int32)
    out = np.zeros((14, 32), dtype=np.int32)
    assert kernel("votes", out, x).error == 0
    u = x.view(np.uint32)
    got = out.view(np.uint32)

    def bits(flags) -> int:
        return int(sum(1 << lane for lane in range(32) if flags[lane]))

    true = x != 0
    same = [bits(x == value) for value in x]
    equal = bool((x == x[0]).all())
    expected = [
        [bits(true)] * 32,
        [int(true.all()) | int(true.any()) << 1 | int(true.all() or not true.any()) << 2] * 32,
        same,
        [0xFFFFFFFF if equal else 0] * 32,
        [int(equal)] * 32,
        same,
        [int(u.sum(dtype=np.uint64)) & 0xFFFFFFFF] * 32,
        [int(x.min()) & 0xFFFFFFFF] * 32,
        [int(x.max()) & 0xFFFFFFFF] * 32,
        [int(u.max())] * 32,
        [int(u.min())] * 32,
        [int(np.bitwise_and.reduce(u))] * 32,
        [int(np.bitwise_or.reduce(u))] * 32,
        [int(np.bitwise_xor.reduce(u))] * 32,
    ]
    np.testing.assert_array_equal(got, np.array(expected, dtype=np.uint64))


def test_parts_of_a_warp_diverge_and_reconverge(load, schedule):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    out = np.zeros(96, dtype=np.int32)
    assert kernel("partial", out, 3).error == 0
    lane = LANES
    value = np.where(lane < 16, (lane + 5) % 16, 16)
    agree = value == lane
    votes = np.where(lane % 2, agree[1::2].sum(), agree[0::2].sum())
    np.testing.assert_array_equal(out, np.tile(value + 1000 * votes, 3))


@pytest.mark.parametrize(("threads", "leave"), [(32, 32), (20, 20), (32, 9), (7, 3)])
def test_absent_lanes(load, schedule, threads, leave):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    out = np.zeros(32, dtype=np.int32)
    assert kernel("missing", out, threads, leave).error == 0
    lanes = np.arange(leave)
    total = np.ones(leave, dtype=int)
    for offset in (16, 8, 4, 2, 1):
        other = lanes ^ offset
        total = total + np.where(other < leave, total[np.minimum(other, leave - 1)], 0)
    np.testing.assert_array_equal(out[:leave] % 1000, leave)
    np.testing.assert_array_equal(out[:leave] // 1000, total)


def test_a_lane_that_takes_no_part_gives_nothing_useful(load):
    out = np.zeros(8, dtype=np.int32)
    assert load("warp_intrinsics")("inactive", out).error == 0
    np.testing.assert_array_equal(out, [4, 5, 6, 7, -1, -1, -1, -1])


@pytest.mark.parametrize("n", [1, 2, 64, 1000])
def test_active_lanes_share_one_atomic(load, schedule, n):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    counter, place = np.zeros(2, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    assert kernel("aggregated", counter, place, n).error == 0
    chosen = np.arange(n) % 3 != 0
    assert counter[0] == chosen.sum()
    assert sorted(place[chosen]) == list(range(chosen.sum()))
    warps = len({i // 32 for i in range(n) if chosen[i]})
    assert counter[1] == warps, "lanes of a warp that run the same code must be active together"


def test_unrolled_intrinsics_are_the_same_place(load, schedule):
    kernel = load("warp_intrinsics")
    kernel.configure(**schedule)
    out = np.zeros(32, dtype=np.int32)
    assert kernel("unrolled", out, 7).error == 0
    value = np.full(32, LANES.sum())
    for i in range(7):
        value = np.append(value[1:], value[31]) + (i == 3)
    np.testing.assert_array_equal(out, value)
