"""Tests of thread block clusters: correct kernels give correct results in any order of threads, without findings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(23)
INVALID_CLUSTER_SIZE = 912


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, request):
    return load("cluster", checks=request.param)


def identities(grid, cluster, explicit=True):
    """Return the expected output of ``identify`` for each block, where x varies fastest."""
    count = [g // c for g, c in zip(grid, cluster, strict=True)]
    size, rows = int(np.prod(cluster)), []
    for z, y, x in itertools.product(*map(range, grid[::-1])):
        block = (x, y, z)
        index = [b % c for b, c in zip(block, cluster, strict=True)]
        number = [b // c for b, c in zip(block, cluster, strict=True)]
        rank = index[0] + cluster[0] * (index[1] + cluster[1] * index[2])
        # All 2 x 2 threads write these values, and any of them may be last, so thread_rank and thread_index are not
        # compared.
        rows.append([*index, *cluster, *number, *count, rank, size, 1, 1, 1, int(explicit), 4 * size])
    return np.array(rows)


@pytest.mark.parametrize(
    ("launcher", "cluster"), [("run_who", (2, 3, 1)), ("run_who_template", (1, 1, 2)), ("run_who_alone", (1, 1, 1))]
)
def test_every_block_knows_its_cluster(load, schedule, launcher, cluster):
    out = np.zeros((24, 21), dtype=np.int32)
    kernel = load("cluster")
    kernel.configure(**schedule)
    assert kernel(launcher, out).error == 0
    np.testing.assert_array_equal(out[:, :19], identities((4, 3, 2), cluster, launcher != "run_who_alone"))


@pytest.mark.parametrize("how", [0, 1], ids=["cudaLaunchKernelEx", "cudaLaunchKernelExC"])
@pytest.mark.parametrize(
    ("grid", "cluster", "large"),
    [((4, 2, 1), (2, 2, 1), False), ((8, 1, 1), (8, 1, 1), False), ((2, 2, 8), (1, 2, 8), True)],
)
def test_clusters_of_a_launch(load, grid, cluster, large, how):
    out = np.zeros((int(np.prod(grid)), 21), dtype=np.int32)
    assert load("cluster")("run_who_at_launch", out, *grid, *cluster, large, how).error == 0
    np.testing.assert_array_equal(out[:, :19], identities(grid, cluster))


@pytest.mark.parametrize(
    ("grid", "cluster", "large"),
    [
        ((6, 1, 1), (4, 1, 1), False),  # not a multiple of the cluster size
        ((2, 3, 1), (2, 2, 1), False),
        ((16, 1, 1), (16, 1, 1), False),  # larger than the portable cluster size
        ((32, 1, 1), (32, 1, 1), True),  # larger than the maximum
        ((4, 1, 1), (2, 0, 1), False),
    ],
)
def test_clusters_that_cuda_refuses(load, grid, cluster, large):
    out = np.zeros((int(np.prod(grid)), 21), dtype=np.int32)
    kernel = load("cluster")
    outcome = kernel("run_who_at_launch", out, *grid, *cluster, large, 0)
    assert outcome.error == INVALID_CLUSTER_SIZE and not out.any()


def test_how_many_clusters_fit(load):
    out = np.zeros(2, dtype=np.int32)
    assert load("cluster")("run_who_at_launch", out, 8, 1, 1, 4, 1, 1, False, 2).error == 0
    assert out[0] == 8 * 32 // 4 and out[1] == 8
    assert load("cluster")("run_who_at_launch", out, 16, 1, 1, 16, 1, 1, True, 2).error == 0
    assert out[0] == 8 * 32 // 16 and out[1] == 16


@pytest.mark.parametrize("clusters", [1, 3])
def test_shared_memory_of_neighbors(kernel, schedule, clusters):
    x = RNG.integers(-99, 99, (clusters, 4, 64)).astype(np.float32)
    out, sums = np.zeros_like(x), np.zeros((clusters, 4, 2), dtype=np.int32)
    run(kernel, "run_neighbors", x, out, sums, clusters, **schedule)
    ahead = np.roll(x, -1, 1)[:, :, ::-1]
    behind = np.roll(x, 1, 1)[:, :, np.arange(64) % 32 + 1]
    np.testing.assert_array_equal(out, np.roll(ahead - behind, 1, 1))
    assert (sums[:, 0, 0] == 4 * 64 * 63 // 2).all() and not sums[:, 1:, 0].any()
    assert (sums[:, 3, 1] == 256).all() and not sums[:, :3, 1].any()


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_barrier_in_two_steps(kernel, schedule, rounds):
    x = RNG.integers(-9, 9, (2, 2, 32)).astype(np.float32)
    out, expected = np.zeros_like(x), x.copy()
    run(kernel, "run_two_steps", x, out, rounds, **schedule)
    for _ in range(rounds):
        expected = expected[:, ::-1, ::-1] + 1 - 2 * expected
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_copies_between_blocks_complete_on_an_mbarrier(kernel, schedule, rounds):
    x = RNG.integers(-9, 9, (rounds, 64)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_handed_over", x, out, rounds, **schedule)
    np.testing.assert_array_equal(out, x[:, ::-1] + 100 * x)


@pytest.mark.parametrize("tensor", [False, True], ids=["bytes", "tensor"])
@pytest.mark.parametrize("clusters", [1, 3])
def test_a_copy_to_all_blocks_of_a_cluster(kernel, schedule, clusters, tensor):
    x = RNG.integers(-9, 9, (clusters, 4, 64)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_shared_tile", x, out, clusters, tensor, **schedule)
    summed = np.einsum("crk,r->ck", x, np.arange(1, 5))
    np.testing.assert_array_equal(out, np.stack([np.roll(summed, -rank, 1) for rank in range(4)], 1))


def test_a_copy_to_several_blocks_reads_once(load):
    kernel = load("cluster", checks=True)
    x = np.zeros((1, 4, 64), dtype=np.float32)
    outcome = kernel("run_shared_tile", x, np.zeros_like(x), 1, False)
    sites = [s for k in outcome.report["kernels"] for s in k["sites"] if s["access"] == "async read"]
    assert sum(s["bytes"] for s in sites) == x.nbytes and sum(s["requests"] for s in sites) == 4


def test_threads_that_have_exited_are_not_waited_for(kernel, schedule):
    out = np.zeros((2, 4, 32), dtype=np.int32)
    run(kernel, "run_early", out, **schedule)
    assert out[:, :3].all() and not out[:, 3].any()


def test_requests_to_other_blocks_are_counted_apart(load):
    kernel = load("cluster", checks=True)
    x = np.zeros((1, 4, 64), dtype=np.float32)
    outcome = kernel("run_neighbors", x, np.zeros_like(x), np.zeros((1, 4, 2), dtype=np.int32), 1)
    sites = [s for k in outcome.report["kernels"] for s in k["sites"] if s["space"] == "distributed"]
    # Requests: each of four blocks has two warps, which read through a pointer, read in PTX and store. Three blocks
    # also make atomic operations.
    assert sum(s["requests"] for s in sites if s["access"] != "atomic") == 4 * 2 * 3
    assert sum(s["requests"] for s in sites if s["access"] == "atomic") == 2 * 3 * 2
    assert not any(s["wavefronts"] or s["sectors"] for s in sites)
