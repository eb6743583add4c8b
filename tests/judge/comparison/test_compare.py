"""Comparison of outputs: which outputs pass, and the diagnosis that a learner sees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course.task import torch_dtype
from grader.course.tolerance import DEFAULT, LARGEST
from grader.judge.comparison.compare import compare
from grader.judge.comparison.diagnosis import indices_of
from grader.verdict.wording.outputs import text

DTYPES = ["f32", "f16", "bf16"]


def reference(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64) + 0.5


def judged(actual: torch.Tensor, expected: torch.Tensor, dtype: str = "f32", poison: torch.Tensor | None = None):
    return compare("out", actual.to(torch_dtype(dtype)), expected, dtype, DEFAULT[dtype], poison)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_passes(dtype: str) -> None:
    assert judged(reference(7, 129), reference(7, 129), dtype).passed


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25)
@given(
    rows=st.integers(1, 5),
    columns=st.integers(2, 200),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-4, 1, 1e3]),
)
def test_trivial_outputs_never_pass(dtype: str, rows: int, columns: int, seed: int, scale: float) -> None:
    want = reference(rows, columns, seed=seed) * scale
    for trivial in (
        torch.zeros_like(want),
        torch.ones_like(want),
        want.mean().expand(want.shape),
        want.mean(dim=-1, keepdim=True).expand(want.shape),
        -want,
        want.flip(-1),
        torch.full_like(want, math.nan),
        torch.full_like(want, math.inf),
        reference(rows, columns, seed=seed + 1) * scale,
    ):
        assert not judged(trivial, want, dtype).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_element_fails(dtype: str) -> None:
    got = reference(40, 300)
    got[17, 211] += 0.3
    result = judged(got, reference(40, 300), dtype)
    assert not result.passed and result.wrong == 1
    assert result.worst[0].index == [17, 211]


def test_a_small_systematic_error_fails() -> None:
    """Each error is within the tolerance of an element, but the norm of all errors exceeds the norm's tolerance."""
    want = 1 + 0.1 * torch.rand(64, 64, dtype=torch.float64)
    result = judged(want * (1 + 1.5 * DEFAULT["f32"]), want)
    assert result.wrong == 0 and not result.passed
    assert "norm of all errors" in text(result)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_single_nan_or_infinity_fails(value: float) -> None:
    got = reference(10, 20)
    got[3, 4] = value
    result = judged(got, reference(10, 20))
    assert result.wrong == 1 and result.worst[0].index == [3, 4]


def test_the_same_infinity_passes_and_the_other_fails() -> None:
    want = reference(10, 20)
    want[0, 0], want[1, 1] = math.inf, -math.inf
    assert judged(want.clone(), want).passed
    got = want.clone()
    got[0, 0] = -math.inf
    assert judged(got, want).wrong == 1


def test_values_too_large_for_the_dtype_are_infinite() -> None:
    want = reference(4, 32)
    want[2, 5] = 1e6
    assert judged(want, want, "f16").passed
    assert not judged(want.clamp(max=60000), want, "f16").passed


def test_subnormal_numbers_of_f16_have_a_larger_tolerance() -> None:
    want = reference(2, 64) * 1e-6
    assert judged(want, want, "f16").passed
    assert not judged(want * 1.2, want, "f16").passed


def test_nan_in_the_reference_never_passes() -> None:
    want = reference(4, 32)
    want[0, 0] = math.nan
    assert not judged(want.clone(), want).passed


def test_each_row_has_its_own_scale() -> None:
    want = reference(2, 64)
    want[1] *= 1e3
    got = want.clone()
    got[0] += 0.01
    assert judged(got, want).wrong == 64
    assert compare("out", got.float(), want, "f32", 2e-5, scale="tensor").wrong == 0


def test_rows_that_are_almost_zero_have_a_minimum_scale() -> None:
    want = reference(8, 64)
    want[3] = 0
    got = want.clone()
    got[3] = 1e-10
    assert judged(got, want).passed
    got[3] = 1e-7
    assert not judged(got, want).passed
    assert compare("out", got.float(), want, "f32", 2e-5, scale="tensor").passed
    assert compare("out", got.float(), want, "f32", 2e-5, scale=torch.ones(8, 64).double()).passed
    nothing = torch.zeros(8, 64, dtype=torch.float64)
    assert compare("out", nothing.float() + 1e-6, nothing, "f32", 2e-5, scale=torch.ones(8, 64).double()).passed


def test_whole_numbers_are_exact() -> None:
    want = torch.arange(100)
    assert compare("index", want.int(), want, "i32", 1.0).passed
    got = want.int()
    got[99] += 1
    result = compare("index", got, want, "i32", 1.0)
    assert result.wrong == 1 and "index[99] = 100, expected 99" in text(result)


def test_flags_must_be_zero_or_one() -> None:
    want = torch.tensor([True, False, True])
    assert compare("mask", torch.tensor([1, 0, 1], dtype=torch.uint8), want, "bool", 0.0).passed
    assert not compare("mask", torch.tensor([2, 0, 1], dtype=torch.uint8), want, "bool", 0.0).passed


def test_empty_outputs_pass() -> None:
    assert judged(torch.empty(0, 5), torch.empty(0, 5, dtype=torch.float64)).passed


def test_tolerances_in_roundings() -> None:
    """Tolerances allow many rounding errors in f32 and f64, and few in the 16-bit output dtypes."""
    roundings = {dtype: DEFAULT[dtype] / torch.finfo(torch_dtype(dtype)).eps * 2 for dtype in DEFAULT}
    assert all(100 < roundings[dtype] < 1e5 for dtype in ("f32", "f64"))
    assert all(4 < roundings[dtype] < 10 for dtype in ("f16", "bf16"))
    assert max(DEFAULT.values()) <= LARGEST <= 0.05


# Diagnosis of wrong outputs.

NAN = torch.full((6, 40), math.nan)


Spoil = Callable[[torch.Tensor], torch.Tensor]


def filled(part: Any, values: float | torch.Tensor) -> Spoil:
    """Return a function that overwrites a part of an output."""

    def spoil(x: torch.Tensor) -> torch.Tensor:
        x[part] = values
        return x

    return spoil


LOOKS = [
    ("nothing was written", lambda x: x * math.nan),
    ("the last 3 elements of 240 were never written", filled(np.s_[5, 37:], math.nan)),
    ("columns 32 and up of every row were never written", filled(np.s_[:, 32:], math.nan)),
    ("the last 80 elements of 240 were never written", filled(np.s_[4:], math.nan)),
    ("all zeros", lambda x: x * 0),
    ("every element has the same value, 1", lambda x: x * 0 + 1),
    ("every element is 1/8 times the expected value", lambda x: x / 8),
    ("every element is 2.5 times the expected value", lambda x: x * 2.5),
    ("right except for the sign", lambda x: -x),
    ("every element is too large by 1", lambda x: x + 1),
    ("wrong by a constant (1 to 40), which is the same in all rows", lambda x: x + torch.arange(1, 41)),
    ("transposed", lambda x: x.t().contiguous().view(6, 40)),
    ("the values expected at out[.., 0] are at out[.., 1]: shifted by one along axis 1", lambda x: x.roll(1, -1)),
    ("the values expected at out[1, ..] are at out[0, ..]", lambda x: x.roll(-1, 0)),
    ("by a factor of its own", lambda x: x * torch.arange(1, 7)[:, None]),
    ("in the wrong places", lambda x: x[torch.tensor([3, 1, 0, 5, 2, 4])]),
    ("every row holds the values of row 0", lambda x: x[:1].expand(6, 40)),
    ("only row 0 is right", filled(np.s_[1:], reference(5, 40, seed=9))),
    ("only row 2 is wrong", filled(2, reference(40, seed=9))),
    ("wrong from column 30 on", filled(np.s_[:, 30:], reference(6, 10, seed=9))),
    ("40 infinite values among 240 elements, in whole rows, the first is row 3", filled(3, math.inf)),
    ("as from rounding to f16): is a sum kept", lambda x: x.half()),
    ("as from rounding to bf16)", lambda x: x.bfloat16()),
]


@pytest.mark.parametrize(("says", "spoil"), LOOKS, ids=[says[:30] for says, _ in LOOKS])
def test_diagnosis(says: str, spoil: Spoil) -> None:
    result = judged(spoil(reference(6, 40)), reference(6, 40), poison=NAN)
    assert not result.passed
    assert says in text(result), text(result)


# Each recognized pattern, and similar outputs that must not be taken for it.


def cache_with(token: torch.Tensor, slot: int) -> torch.Tensor:
    """Return a cache [pages, heads, slots, dims] in which one slot of page 1 holds a token."""
    cache = reference(3, 2, 8, 16, seed=3)
    cache[1, :, slot] = token
    return cache


def test_a_token_in_the_next_slot_is_a_shift() -> None:
    token = reference(2, 16, seed=4)
    result = compare("k_cache", cache_with(token, 5).float(), cache_with(token, 4), "f32", 1e-5)
    assert "the values expected at k_cache[.., 4, ..] are at k_cache[.., 5, ..]" in text(result)
    result = compare("k_cache", cache_with(token, 3).float(), cache_with(token, 4), "f32", 1e-5)
    assert "the values expected at k_cache[.., 4, ..] are at k_cache[.., 3, ..]" in text(result)


def test_other_places_of_a_token_are_no_shift_by_one() -> None:
    token = reference(2, 16, seed=4)
    for slot in (6, 0):
        assert "shifted" not in text(judged(cache_with(token, slot), cache_with(token, 4)))
    other = cache_with(token + 0.01, 5)
    assert "shifted" not in text(judged(other, cache_with(token, 4)))
    also_wrong = cache_with(token, 5)
    also_wrong[2, 0, 3, 3] += 1
    assert "shifted" not in text(judged(also_wrong, cache_with(token, 4)))


COLUMN_AFTER_ROW = torch.arange(20)[None, :] - torch.arange(12)[:, None]


@pytest.mark.parametrize(
    ("says", "wrong"),
    [
        ("wrong above a diagonal (where column > row,", COLUMN_AFTER_ROW > 0),
        ("wrong above a diagonal (where column > row + 8,", COLUMN_AFTER_ROW > 8),
        ("wrong below a diagonal (where column < row - 1,", COLUMN_AFTER_ROW < -1),
        ("wrong on one diagonal (where column = row,", COLUMN_AFTER_ROW == 0),
        ("wrong on one diagonal (where column = row + 9,", COLUMN_AFTER_ROW == 9),
    ],
)
def test_a_wrong_mask(says: str, wrong: torch.Tensor) -> None:
    want = reference(2, 12, 20)
    for value in (0.0, -math.inf, 5.0):
        assert says in text(judged(torch.where(wrong, value, want), want))


@pytest.mark.parametrize(
    "wrong",
    [
        torch.arange(20)[None, :] > 2 * torch.arange(12)[:, None],
        (COLUMN_AFTER_ROW > 0) & (torch.arange(20)[None, :] % 2 == 0),
        torch.arange(20)[None, :].expand(12, 20) > 7,
        torch.arange(12)[:, None].expand(12, 20) > 7,
        COLUMN_AFTER_ROW == 18,
        torch.arange(80)[None, :].expand(5, 80) < 20,
        torch.arange(80)[:, None].expand(80, 5) < 20,
    ],
    ids=["steeper", "every other column", "a column", "a row", "a corner", "the first columns", "the first rows"],
)
def test_outputs_that_are_not_a_wrong_mask(wrong: torch.Tensor) -> None:
    want = reference(*wrong.shape)
    assert "diagonal" not in text(judged(torch.where(wrong, 0.0, want), want))


def test_a_row_that_equals_several_others_is_not_reported_as_misplaced() -> None:
    want = reference(6, 40)
    want[2:] = want[2]
    got = want.clone()
    got[0] = want[2]
    assert "wrong places" not in text(judged(got, want))
    got[0] = want[1]
    assert "the rows are in the wrong places: row 0 holds the values of row 1" in text(judged(got, want))


def test_small_errors_larger_than_rounding() -> None:
    want = reference(16, 64)
    noise = reference(16, 64, seed=8) * 1e-3
    assert "rounding" in text(judged(want + noise, want))
    few_rows = noise * (torch.arange(16)[:, None] < 3)
    one_element = noise * 1e-2
    one_element[4, 5] = 0.1
    first_rows = noise * (torch.arange(1, 17)[:, None].double() ** -2)
    for error in (few_rows, one_element, first_rows, noise * 100):
        assert "rounding" not in text(judged(want + error, want)), text(judged(want + error, want))


def test_places_of_errors_that_exceed_the_tolerance_by_chance_are_not_named() -> None:
    want = reference(2, 8, 64)
    noise = reference(2, 8, 64, seed=8).clamp(-2, 2) * 8e-6
    noise[1, 3, 20] = 6e-5  # the only element whose error exceeds its tolerance
    got = judged(want + noise, want)
    assert got.wrong == 1 and "rounding" in text(got)
    assert "only index 1 of axis 0 is wrong" in text(judged(torch.where(noise > 5e-5, want + noise, want), want))


def test_a_factor_near_1_is_not_written_as_a_fraction() -> None:
    factors = torch.linspace(0.5, 0.9985, 6, dtype=torch.float64)[:, None]
    assert "by a factor of its own (1/2 to 0.9985)" in text(judged(reference(6, 40) * factors, reference(6, 40)))


def test_columns_that_are_off_by_other_numbers_in_one_row_get_no_diagnosis() -> None:
    actual = reference(6, 40) + torch.arange(1, 41)
    actual[2] += torch.linspace(0.01, 0.02, 40)
    assert judged(actual, reference(6, 40), poison=NAN).diagnosis is None
    few = reference(3, 40) + torch.arange(1, 41)
    assert judged(few, reference(3, 40)).diagnosis is None


def test_noise_gets_no_diagnosis() -> None:
    assert judged(reference(6, 40, seed=5), reference(6, 40), poison=NAN).diagnosis is None


def test_one_wrong_element_gets_no_diagnosis() -> None:
    result = judged(torch.tensor([2.0]), torch.tensor([1.0], dtype=torch.float64))
    assert "out[0] = 2, expected 1" in text(result)


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 9), min_size=0, max_size=4),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["noise", "nan", "part", "zero", "integer"]),
)
def test_the_diagnosis_never_raises(shape: list[int], seed: int, kind: str) -> None:
    want = reference(*shape, seed=seed)
    got = reference(*shape, seed=seed + 1)
    if kind == "nan":
        got = got * math.nan
    elif kind == "part":
        got = torch.where(got > 0, got, math.nan)
    elif kind == "zero":
        want = want * 0
    elif kind == "integer":
        compare("out", (got * 5).int(), (want * 5).to(torch.int64), "i32", 0.0)
        return
    result = judged(got, want, poison=torch.full(got.shape, math.nan))
    assert bool(text(result)) is not result.passed


def test_a_factor_of_each_row_shows_in_narrow_rows_too() -> None:
    for columns in (2, 3):
        want = reference(5, columns)
        assert "by a factor of its own" in text(judged(want * torch.arange(1, 6)[:, None], want))
    want = reference(2, 2)
    assert judged(want * torch.tensor([[2.0], [3.0]]), want).diagnosis is None, (
        "with one element per factor, factors explain any wrong output and must not be reported"
    )


def with_inputs(got: torch.Tensor, want: torch.Tensor, **inputs: torch.Tensor) -> str:
    return text(compare("out", got.float(), want, "f32", 1e-5, inputs=inputs))


def test_wrong_only_at_large_or_small_values_of_an_input() -> None:
    want, other = reference(12, 40), reference(12, 40, seed=9)
    values = torch.tensor([5, 900, 7, 41, 1000, 3, 70000, 12, 60, 800, 9, 2], dtype=torch.int32)
    got = torch.where((values > 500)[:, None], other, want)
    assert "wrong where positions is large (800 and up), right where it is small" in with_inputs(
        got, want, positions=values
    )
    got = torch.where((values < 20)[:, None], other, want)
    assert "wrong where lengths is small (up to 12), right where it is large" in with_inputs(got, want, lengths=values)
    got = torch.where((torch.arange(12) % 2 == 0)[:, None], other, want)
    assert "looks like" not in with_inputs(got, want, positions=values)


def test_nan_of_an_input_is_named() -> None:
    want = reference(6, 40)
    got, cache = want.clone(), torch.zeros(3)
    got[2, 7] = cache[1] = math.nan
    assert "NaN that came from k_cache, which holds NaN" in with_inputs(got, want, x=torch.ones(3), k_cache=cache)
    assert "k_cache" not in with_inputs(got, want, k_cache=torch.ones(3))


@pytest.mark.parametrize("shape", [(), (1,), (3, 4, 5)], ids=str)
def test_indices_of_each_element(shape: tuple[int, ...]) -> None:
    wanted = list(map(list, np.ndindex(*shape)))
    assert [indices_of(position, torch.Size(shape)) for position in range(math.prod(shape))] == wanted


@pytest.mark.parametrize(
    ("columns", "wrong", "says"),
    [
        (2, [1], "wrong from column 1 on, right before"),
        (3, [2], "only the last element of a row is wrong"),
        (3, [1, 2], "wrong from column 1 on, right before"),
    ],
)
def test_the_columns_that_are_wrong(columns: int, wrong: list[int], says: str) -> None:
    expected = reference(3, columns)
    actual = expected.float()
    actual[:, wrong] += torch.tensor([[1.0], [3.0], [9.0]])
    assert says in text(judged(actual, expected))
