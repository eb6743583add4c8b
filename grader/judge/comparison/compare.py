"""Compares a kernel's output with a float64 reference.

An element is correct if ``|actual - expected| <= tolerance * (scale + |expected|)``. The scale is the root mean square
of the reference in the element's row. A number near zero in a row of large numbers may therefore have an error of the
size that rounding causes in this row. Rows shorter than ``SHORT_ROW`` use the scale of the whole tensor. The scale of a
row is at least ``SMALLEST_ROW`` times that of the tensor. A task may choose the whole tensor's scale, or compute a
scale, if elements are differences of larger numbers. An example is the gradient of attention, which vanishes if a query
sees only one key.

In addition, the norm of all errors, relative to the norm of the reference, must be within the tolerance. This detects
systematic errors that are just within the limit at every element. Rounding errors are far below it at most elements.

An output of zeros, of one constant, of the mean or of the inputs does not pass. The tolerance is at most 0.02, so each
element must be right to a few hundredths of its row's scale. Such an output passes only if the reference is almost the
same tensor. The tests try all of these outputs on every case of every exercise.

An error of the distance between the dtype's smallest numbers is always allowed. This matters in f16, where the distance
is 6e-8.

NaN is always wrong. An infinity is correct only if the reference, rounded to the output's dtype, is the same infinity.
Integers and flags must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from grader.judge.comparison.diagnosis import diagnose, indices_of
from grader.verdict import OutputResult, WorstElement

SHORT_ROW = 16
SMALLEST_ROW = 1e-4
"""The minimum of a row's scale, relative to the tensor's scale."""

WORST = 5
RUN_OF_BYTES = 4
"""The minimum number of adjacent unchanged bytes that count as not written, in outputs of one byte per element."""


def compare(
    name: str,
    actual: Any,
    expected: Any,
    dtype: str,
    tolerance: float,
    poison: Any = None,
    scale: Any = "row",
    explained: bool = True,
    inputs: Mapping[str, Any] | None = None,
) -> OutputResult:
    """Compare an output with the reference.

    Args:
        name: the output's name.
        actual: the kernel's output, in the output's dtype. It must be on the CPU if ``explained`` is true.
        expected: the reference in float64 or int64, with the same shape on the same device.
        dtype: the course's name of the output's dtype.
        tolerance: the tolerance of the module's formula.
        poison: the output's contents before the call, by which unwritten elements are detected.
        scale: "row" or "tensor", the part of the reference that determines the scale; or a float64 tensor of scales.
        explained: true to find the worst elements and a diagnosis if the output is wrong.
        inputs: the call's tensors, whose values may explain an error.
    """
    import torch

    shape = list(expected.shape)
    result = OutputResult(
        name=name, dtype=dtype, shape=shape, passed=True, elements=expected.numel(), tolerance=float(tolerance)
    )
    result.norm_tolerance = float(tolerance)
    if result.elements == 0:
        return result
    unwritten = _same_bits(actual, poison) if poison is not None else torch.zeros_like(expected, dtype=torch.bool)
    if actual.is_floating_point():
        got = actual.to(torch.float64)
        want = _with_overflow(expected.to(torch.float64), actual.dtype)
        step = smallest_step(actual.dtype)
        error, allowed = _errors(got, want, tolerance, scale, step)
        wrong = ~(error <= allowed)
        finite = torch.isfinite(want)
        against = want if isinstance(scale, str) else torch.maximum(want.abs(), scale.to(torch.float64).abs())
        size = float(torch.linalg.vector_norm(torch.where(finite, against, 0.0)))
        off = float(torch.linalg.vector_norm(torch.where(finite, error, 0.0)))
        result.norm_error = off / size if size > 0 else (0.0 if off == 0 else math.inf)
        if size > 0:
            result.norm_tolerance += step * math.sqrt(result.elements) / size
        if math.isnan(off):
            result.norm_error = math.nan
    else:
        got = actual.to(torch.int64)
        want = expected.to(torch.int64)
        error = (got - want).abs().to(torch.float64)
        allowed = torch.zeros_like(error)
        wrong = got != want
        result.tolerance = result.norm_tolerance = 0.0
    result.wrong = int(wrong.sum())
    result.unwritten = int((unwritten & wrong).sum())
    result.max_error = _largest(error)
    ratio = torch.where(error == 0, 0.0, error / allowed)
    result.max_ratio = _largest(ratio)
    systematic = actual.is_floating_point() and not result.norm_error <= result.norm_tolerance
    result.passed = result.wrong == 0 and not systematic
    if not result.passed and explained:
        result.worst = _worst(got, want, error, ratio, unwritten & wrong, min(WORST, result.wrong or WORST))
        result.diagnosis = diagnose(got, want, wrong, unwritten & wrong, allowed, inputs or {})
        if result.diagnosis and not result.diagnosis.name:
            result.diagnosis.name = name
    return result


def _with_overflow(want: Any, dtype: Any) -> Any:
    """Return the reference with infinities at values that are too large for the output's dtype."""
    import torch

    rounded = want.to(dtype).to(torch.float64)
    return torch.where(torch.isinf(rounded), rounded, want)


def smallest_step(dtype: Any) -> float:
    """Return the distance between the smallest numbers of a dtype, such as 6e-8 in f16."""
    import torch

    about = torch.finfo(dtype)
    return about.smallest_normal * about.eps


def _errors(got: Any, want: Any, tolerance: float, scale_of: Any, step: float) -> tuple[Any, Any]:
    """Return the error and the allowed error of each element. The error is infinite for NaN and a wrong infinity."""
    import torch

    finite = torch.isfinite(want)
    square = torch.where(finite, want, 0.0).square()
    count = finite.sum()
    whole = (square.sum() / count.clamp(min=1)).sqrt()
    scale = whole
    if not isinstance(scale_of, str):
        scale = torch.maximum(scale_of.to(torch.float64).abs(), whole * SMALLEST_ROW)
    elif scale_of == "row" and want.dim() > 1 and want.shape[-1] >= SHORT_ROW:
        per_row = finite.sum(dim=-1, keepdim=True).clamp(min=1)
        scale = torch.maximum((square.sum(dim=-1, keepdim=True) / per_row).sqrt(), whole * SMALLEST_ROW)
    error = (got - want).abs()
    error = torch.where(got == want, 0.0, error)
    error = torch.where(torch.isnan(error), math.inf, error)
    allowed = tolerance * (scale + torch.where(finite, want, 0.0).abs()) + step
    return error, allowed.expand(error.shape)


def _same_bits(actual: Any, poison: Any) -> Any:
    """Return a tensor that is true at each element where ``actual`` and ``poison`` have the same bits.

    One byte equals its poison by chance once in 256 times. Elements of one byte are therefore true only if at least
    ``RUN_OF_BYTES`` adjacent ones are equal.
    """
    import torch

    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
    same = actual.contiguous().view(words) == poison.contiguous().view(words)
    if words != torch.uint8 or same.numel() == 0:
        return same
    flat = same.flatten()
    length = min(RUN_OF_BYTES, flat.numel())
    runs = flat.unfold(0, length, 1).all(dim=1)
    found = torch.zeros_like(flat)
    for i in range(length):
        found[i : i + runs.numel()] |= runs
    return found.view(same.shape)


def _largest(values: Any) -> float:
    import torch

    return float(torch.nan_to_num(values, nan=math.inf, posinf=math.inf).max())


def _worst(got: Any, want: Any, error: Any, ratio: Any, unwritten: Any, most: int) -> list[WorstElement]:
    """Return the ``most`` elements whose errors are largest relative to the allowed error, in that order."""
    import torch

    flat = torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf).flatten()
    order = torch.sort(flat, descending=True, stable=True).indices if flat.numel() < 100_000 else None
    chosen = order[:most] if order is not None else torch.topk(flat, most).indices
    worst = []
    for position in chosen.tolist():
        if float(flat[position]) == 0:
            break
        worst.append(
            WorstElement(
                index=indices_of(position, want.shape),
                expected=want.flatten()[position].item(),
                actual=got.flatten()[position].item(),
                error=float(error.flatten()[position]),
                unwritten=bool(unwritten.flatten()[position]),
            )
        )
    return worst
