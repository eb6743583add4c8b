"""The comparison of outputs, which uses torch, agrees with the definition of the comparison in plain Python."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from grader.course.task import torch_dtype
from grader.judge.comparison.compare import WORST, compare, smallest_step

TOLERANCE = 0.01


def by_definition(
    got: list[float], want: list[float], columns: int, step: float, scale: str | list[float], several_rows: bool = True
) -> tuple[list[float], float, float]:
    """Return each element's error divided by its tolerance, the norm of all errors, and the tolerance of the norm."""

    def root_mean_square(values: list[float]) -> float:
        finite = [value for value in values if math.isfinite(value)]
        return math.sqrt(sum(value * value for value in finite) / max(1, len(finite)))

    whole = root_mean_square(want)
    ratios, errors, sizes = [], 0.0, 0.0
    for i, (a, b) in enumerate(zip(got, want)):
        if not isinstance(scale, str):
            own = max(abs(scale[i]), whole * 1e-4)
        elif scale == "row" and columns >= 16 and several_rows:
            own = max(root_mean_square(want[i // columns * columns : (i // columns + 1) * columns]), whole * 1e-4)
        else:
            own = whole
        error = 0.0 if a == b else math.inf if math.isnan(a - b) else abs(a - b)
        size = abs(b) if math.isfinite(b) else 0.0
        allowed = TOLERANCE * (own + size) + step
        ratios.append(error / allowed)
        if math.isfinite(b):
            errors += error * error
            sizes += max(size, abs(scale[i]) if not isinstance(scale, str) else 0.0) ** 2
    norm = math.sqrt(errors) / math.sqrt(sizes) if sizes else 0.0 if errors == 0 else math.inf
    return ratios, norm, TOLERANCE + (step * math.sqrt(len(want)) / math.sqrt(sizes) if sizes else 0.0)


def cases() -> list[tuple[tuple[int, ...], str, float, str]]:
    shapes = [(1,), (20,), (3, 15), (3, 16), (2, 17), (2, 3, 16), (4, 1), (2, 16, 3)]
    return [
        (shape, dtype, size, scale)
        for shape, (dtype, size), scale in itertools.product(
            shapes, [("f32", 1.0), ("f32", 0.3), ("f16", 1e-6), ("f32", 1e4)], ["row", "tensor", "own"]
        )
    ]


@pytest.mark.parametrize("off", [0.0, 0.9, 1.1])
def test_compare_matches_the_definition(off: float) -> None:
    for number, (shape, dtype, size, scale) in enumerate(cases()):
        draw = torch.Generator().manual_seed(number)
        want = torch.randn(shape, generator=draw, dtype=torch.float64) * size
        flat = want.view(-1)
        if number % 4 == 1 and flat.numel() > 16:
            flat[:15], flat[16] = math.inf, -math.inf  # a row with at most one finite number
        if number % 5 == 2 and len(shape) > 1:
            want[0] = 0.0
        kind, step = torch_dtype(dtype), smallest_step(torch_dtype(dtype))
        sizes = torch.rand(shape, generator=draw, dtype=torch.float64) * size * 2
        sizes.view(-1)[-1] = 0.0
        chosen = sizes if scale == "own" else scale
        plain = sizes.flatten().tolist() if scale == "own" else scale
        want = want.to(kind).double()
        flat = want.view(-1)
        # Every second element has an error of ``off`` times its tolerance.
        moved = flat.clone()
        for i in range(number % 2, flat.numel(), 2):
            probe = flat.clone()
            probe[i] += size
            ratio = by_definition(probe.tolist(), flat.tolist(), shape[-1], step, plain, len(shape) > 1)[0][i]
            if ratio:
                moved[i] += off * size / ratio
        got = moved.to(kind).reshape(shape)
        ratios, norm, most = by_definition(
            got.double().flatten().tolist(), flat.tolist(), shape[-1], step, plain, len(shape) > 1
        )
        result = compare("out", got, want, dtype, TOLERANCE, scale=chosen, explained=False)
        says = f"{shape} {dtype} {size} {scale}"
        assert result.wrong == sum(ratio > 1 for ratio in ratios), says
        assert result.max_ratio == pytest.approx(max(ratios)) and result.norm_error == pytest.approx(norm), says
        assert result.norm_tolerance == pytest.approx(most), says
        assert result.passed == (result.wrong == 0 and norm <= most) and not result.worst and not result.diagnosis, says
        assert result.passed or off


def test_errors_just_below_and_above_the_tolerance() -> None:
    want = torch.ones(64, dtype=torch.float64)
    for off, passes in (
        (1.999 * TOLERANCE, True),
        (2.001 * TOLERANCE, False),
    ):  # one element may be off by 2x the tolerance
        got = want.clone()
        got[5] += off
        assert compare("out", got, want, "f64", TOLERANCE).passed is passes
    for off, passes in (
        (0.999 * TOLERANCE, True),
        (1.001 * TOLERANCE, False),
    ):  # if all elements are off, the norm's limit is 1x
        assert compare("out", want + off, want, "f64", TOLERANCE).passed is passes
    nothing = torch.zeros(8, dtype=torch.float64)
    assert compare("out", nothing, nothing, "f64", TOLERANCE).norm_error == 0.0
    assert compare("out", nothing + 1, nothing, "f64", TOLERANCE).norm_error == math.inf


def test_the_worst_elements_are_listed_in_order() -> None:
    for size in (50, 100_000, 100_001):
        want = torch.ones(size, dtype=torch.float64)
        got = want.clone()
        got[3:13] = torch.arange(2.0, 12.0)
        result = compare("out", got, want, "f64", TOLERANCE)
        assert [each.index for each in result.worst] == [[12], [11], [10], [9], [8]] and len(result.worst) == WORST == 5
        assert (result.worst[0].actual, result.worst[0].expected, result.worst[0].error) == (11.0, 1.0, 10.0)
        assert (result.max_error, result.wrong) == (10.0, 10)
    same = compare("out", torch.full((40,), 5.0), torch.ones(40, dtype=torch.float64), "f32", TOLERANCE)
    assert [each.index for each in same.worst] == [[0], [1], [2], [3], [4]], "equal errors must be listed in order"
    one = compare("out", torch.tensor([1.0, 1.001, 9.0]), torch.ones(3, dtype=torch.float64), "f32", TOLERANCE)
    assert [each.index for each in one.worst] == [[2]], "correct elements must not be listed"
    every = compare("out", torch.full((9,), 1.019), torch.ones(9, dtype=torch.float64), "f32", TOLERANCE)
    assert (every.wrong, len(every.worst)) == (0, WORST), "without a wrong element, the norm of all errors is too large"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_unwritten_elements_are_recognized_by_their_bits(dtype: torch.dtype) -> None:
    want = torch.arange(1, 9)
    poison = torch.full((8,), 77, dtype=dtype)
    got = want.to(dtype).clone()
    got[4:] = poison[4:]
    want[7] = 77  # poison (the value before the call) is right here by chance, so this element is not wrong
    result = compare("out", got, want, "i32", 1.0, poison)
    assert (result.wrong, result.unwritten, result.tolerance, result.norm_tolerance) == (3, 3, 0.0, 0.0)
    assert [each.unwritten for each in result.worst] == [True, True, True]
    halves = torch.full((4,), math.nan, dtype=torch.float16)
    assert compare("out", halves, torch.ones(4, dtype=torch.float64), "f16", 0.1, halves.clone()).unwritten == 4
    doubles = torch.full((4,), math.nan, dtype=torch.float64)
    assert compare("out", doubles, torch.ones(4, dtype=torch.float64), "f64", 0.1, doubles.clone()).unwritten == 4


def test_single_bytes_equal_their_poison_by_chance() -> None:
    """Up to three wrong bytes in a row may equal the poison, the bytes before the call, by chance.

    Four such bytes count as never written.
    """
    want, poison = torch.zeros(12, dtype=torch.uint8), torch.full((12,), 77, dtype=torch.uint8)
    for first, count, unwritten in ((0, 3, 0), (5, 1, 0), (2, 4, 4), (8, 4, 4), (0, 12, 12)):
        got = want.clone()
        got[first : first + count] = 77
        result = compare("out", got, want, "u8", 1.0, poison)
        assert (result.wrong, result.unwritten) == (count, unwritten)
    short = compare("out", poison[:2], want[:2], "u8", 1.0, poison[:2])
    assert short.unwritten == 2
