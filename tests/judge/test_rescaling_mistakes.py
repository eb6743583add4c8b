"""The diagnosis of attention kernels that do not rescale their sums when the maximum rises."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from grader.course import find
from grader.course.task import Call, Exercise
from grader.judge.comparison.compare import compare
from grader.judge.misread import explain
from grader.judge.rescaling_mistakes import recognize
from grader.verdict import OutputResult
from grader.verdict.wording.outputs import looks

EQUAL, NONE = "causal, as many keys as queries", "causal, queries that see no key"
RAGGED, RISING = "lengths that are not multiples of a tile", "scores that rise from key to key"
ONE_QUERY = "one query, many keys"
RIGHT, INVERSE, EXPONENT = "right", "inverse", "exponent"
"""Rescaling by exp(old m - new m), by exp(new m - old m), and by 2^(old m - new m)."""


def factor(how: str, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Return by what a sum is multiplied when the maximum rises: 1 if it is not rescaled."""
    if how == INVERSE:
        return torch.where(old > -torch.inf, (new - old).exp(), 1.0)
    return {RIGHT: (old - new).exp(), EXPONENT: (old - new).exp2(), "not": torch.ones_like(new)}[how]


def one_pass(call: Call, tile: int, output: str, total: str) -> torch.Tensor:
    """Return attention in one pass over tiles of keys, with the given rescaling of the output and of the total."""
    q, k, v = (call.tensors[name].double() for name in ("q", "k", "v"))
    queries, keys = q.shape[-2], k.shape[-2]
    scores = q @ k.mT * call.scalars["scale"]
    if call.dims["causal"]:
        hidden = torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    m = torch.full((*q.shape[:-1], 1), -torch.inf, dtype=torch.double)
    l, o = torch.zeros_like(m), torch.zeros_like(q)  # noqa: E741
    for first in range(0, keys, tile):
        s = scores[..., first : first + tile]
        new_m = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        base = new_m.nan_to_num(neginf=0.0)
        p = (s - base).exp()
        l = l * factor(total, m, base) + p.sum(dim=-1, keepdim=True)  # noqa: E741
        o = o * factor(output, m, base) + p @ v[..., first : first + tile, :]
        m = new_m
    return torch.where(l > 0, o / l, 0.0).float()


def call_of(case: str, exercise: str = "day06_flash_attention/flash_attention") -> tuple[Exercise, Call]:
    found = find(exercise).load()
    return found, found.call(next(own for own in found.cases if own.name == case), found.dtypes[0], 7)


def judged(exercise: Exercise, call: Call, actual: torch.Tensor) -> OutputResult:
    output = compare("out", actual, exercise.expected(call)["out"], "f32", 1e-4, inputs=call.tensors)
    explain(exercise, call, output, actual)
    return output


@pytest.mark.parametrize("case", [EQUAL, NONE, RAGGED, RISING, ONE_QUERY])
@pytest.mark.parametrize("tile", [1, 16, 64])
@pytest.mark.parametrize(
    ("output", "total", "says"),
    [
        ("not", RIGHT, "right if the weighted sum of values were not rescaled"),
        (RIGHT, "not", "right if the sum of weights were not rescaled"),
        ("not", "not", "right if no sum were rescaled"),
    ],
)
def test_a_sum_that_is_not_rescaled_is_named(case: str, tile: int, output: str, total: str, says: str) -> None:
    exercise, call = call_of(case)
    diagnosis = judged(exercise, call, one_pass(call, tile, output, total)).diagnosis
    assert diagnosis is not None and looks(diagnosis).startswith(says)


@pytest.mark.parametrize("case", [EQUAL, NONE, RAGGED, RISING, ONE_QUERY])
@pytest.mark.parametrize("tile", [1, 32, 48])
def test_a_right_kernel_passes(case: str, tile: int) -> None:
    exercise, call = call_of(case)
    assert judged(exercise, call, one_pass(call, tile, RIGHT, RIGHT)).passed


@pytest.mark.parametrize("case", [EQUAL, RAGGED, RISING])
@pytest.mark.parametrize(
    ("output", "total"),
    [(INVERSE, INVERSE), (EXPONENT, RIGHT), (RIGHT, EXPONENT), (EXPONENT, "not"), (INVERSE, "not")],
)
def test_sums_that_are_rescaled_wrongly_are_not_named(case: str, output: str, total: str) -> None:
    exercise, call = call_of(case)
    result = judged(exercise, call, one_pass(call, 32, output, total))
    assert not result.passed and (result.diagnosis is None or "rescaled when" not in looks(result.diagnosis))


def test_tiles_of_an_unusual_size_are_not_named() -> None:
    exercise, call = call_of(RISING)
    result = judged(exercise, call, one_pass(call, 48, "not", RIGHT))
    assert not result.passed and result.diagnosis is None


def test_a_mistake_beside_another_wrong_element_is_not_named() -> None:
    exercise, call = call_of(EQUAL)
    actual = one_pass(call, 32, "not", RIGHT)
    actual[0, 0, 100, 5] += 1
    assert judged(exercise, call, actual).diagnosis is None


def test_the_exercise_that_asks_for_the_mistake_does_not_name_it() -> None:
    exercise, call = call_of("scores that rise", "day06_flash_attention/flash_attention_debug")
    actual = one_pass(call, 32, "not", "not")
    assert exercise.kind == "debug" and judged(exercise, call, actual).diagnosis is None
    other = dataclasses.replace(exercise, kind="implement")
    assert judged(other, call, actual).diagnosis is not None


@pytest.mark.parametrize(
    "name",
    [
        "day05_fusion/scores_softmax",
        "day06_flash_attention/flash_attention_backward",
        "day07_grouped_query_attention/gqa_decode",
        "day08_mixed_precision/mixed_precision_attention",
        "day09_sparse_attention/sliding_window",
        "day09_sparse_attention/csr_attention",
        "day10_paged_attention/paged_prefill",
        "day12_tensor_cores_ampere/mma_flash_attention",
    ],
)
def test_each_mistake_can_be_computed_for_each_case(name: str) -> None:
    exercise = find(name).load()
    for case in exercise.cases:
        call = exercise.call(case, exercise.dtypes[0], 7)
        for output, right in exercise.expected(call).items():
            assert recognize(exercise, call, output, right, lambda wanted: False) is None
