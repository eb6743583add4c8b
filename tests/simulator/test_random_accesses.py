"""Random accesses to shared memory: the checks report a race or an access past the end exactly if a model does.

The model examines every pair of accesses, so it is slow and obviously correct. Barriers divide the kernel into phases.
Two threads race if they access one cell in one phase and at least one of them writes.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.seeds import SEED
from tests.simulator.harness import KERNELS, SimulatedKernel

SIZE = 96  # kSize in the kernel
ABSENT = -1  # a thread without this access


@functools.cache
def kernel() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "random_accesses.cu", checks=True)


@st.composite
def indices(draw, threads: int) -> np.ndarray:
    """Draw an index for each thread: a permutation, an affine expression, or any indices, some past the end."""
    t = np.arange(threads)
    step, start = draw(st.integers(0, 5)), draw(st.integers(0, SIZE - 1))
    kind = draw(st.sampled_from(["own", "affine", "rotated", "any", "past the end"]))
    rng = np.random.default_rng([SEED, draw(st.integers(0, 999))])
    values = {
        "own": t,
        "affine": (step * t + start) % SIZE,
        "rotated": (t + start) % threads,
        "any": rng.integers(0, SIZE, threads),
        "past the end": t + SIZE - threads + draw(st.integers(0, 2)),
    }[kind]
    keep = rng.random(threads) < draw(st.sampled_from([1.0, 0.5, 0.05]))
    return np.where(keep, values, ABSENT).astype(np.int32)


@st.composite
def programs(draw) -> tuple[list[np.ndarray], int]:
    threads = draw(st.sampled_from([2, 31, 32, 33, 64, 96]))
    return [draw(indices(threads)) for _ in range(3)], draw(st.integers(0, 3))


def truth(accesses: list[np.ndarray], barriers: int) -> tuple[bool, bool]:
    """Return whether two threads race in the array, and whether an access is past its end."""
    phases = [0, barriers & 1, (barriers & 1) + (barriers >> 1)]
    done = [
        (phases[number], int(cell), thread, number < 2)
        for number, access in enumerate(accesses)
        for thread, cell in enumerate(access)
        if cell != ABSENT
    ]
    past = any(cell >= SIZE for _, cell, _, _ in done)
    races = any(
        a[:2] == b[:2] and a[2] != b[2] and (a[3] or b[3])
        for a, b in itertools.combinations([d for d in done if d[1] < SIZE], 2)
    )
    return races, past


T = np.arange(64, dtype=np.int32)


@given(programs())
@example(([T, (T + 1) % 64, T], 3))
@example(([T, (T + 1) % 64, T], 1))
@example(([T, T, T + SIZE - 63], 0))
def test_the_checks_agree_with_the_model(program):
    accesses, barriers = program
    threads = len(accesses[0])
    out = np.zeros(threads, dtype=np.int32)
    outcome = kernel()("run", *accesses, out, threads, barriers)
    races, past = truth(accesses, barriers)
    kinds = {finding["kind"] for finding in outcome.report["findings"]}
    assert ("index_out_of_bounds" in kinds) == past, kinds
    if not past:  # an access past the end may end the kernel before the race
        assert bool(kinds & {"within_warp", "within_block"}) == races, kinds
    if not races and not past:
        assert not kinds, kinds
        assert outcome.error == 0
