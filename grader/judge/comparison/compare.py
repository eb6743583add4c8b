"""Compares a kernel's output with a float64 reference.

An element is correct if ``|actual - expected| <= tolerance * (scale + |expected|)``. The scale is the root mean square
of the reference in the element's row, so that a number near zero in a row of large ones may be off by the rounding
error there. Rows shorter than ``SHORT_ROW`` use the scale of the whole tensor, and no row's scale is less than
``SMALLEST_ROW`` of the tensor's. A task may use the whole tensor's scale, or compute one, if elements are differences
of larger numbers (gradients of attention, which vanish if a query sees one key). In addition, the norm of all errors,
relative to the norm of the reference, must be within the tolerance: rounding errors have different signs and sizes,
systematic errors do not.

An output of zeros, of one constant, of the mean or of the inputs cannot pass: with a tolerance of at most 0.02 it would
have to be correct at every element to within a few hundredths of its row's size, so the reference itself would have to
be that. The tests try all of them on every case of every exercise.

A difference of one step between the dtype's smallest numbers is always allowed: it matters in f16, whose smallest
numbers are 6e-8 apart.

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
"""The smallest scale of a row, relative to the tensor's."""

WORST = 5
RUN_OF_BYTES = 4
"""The length of a run of bytes that equal their poison and count as never written."""


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

    ``actual``: a tensor in the output's dtype, on the CPU if an error is to be ``explained``. ``expected``: the
    reference, float64 or int64, of the same shape on the same device. ``poison``: the output's contents before the
    call, with the same dtype and shape, to detect unwritten elements. ``inputs``: the call's tensors, whose values may
    explain an error. ``scale``: "row" or "tensor", the part of the reference that determines the scale; or a float64
    tensor with the scale.
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
        result.worst = _worst(got, want, error, ratio, unwritten & wrong)
        result.diagnosis = diagnose(got, want, wrong, unwritten & wrong, allowed, inputs or {})
        if result.diagnosis and not result.diagnosis.name:
            result.diagnosis.name = name
    return result


def _with_overflow(want: Any, dtype: Any) -> Any:
    """Return the reference with infinities where the output's dtype cannot hold the value."""
    import torch

    rounded = want.to(dtype).to(torch.float64)
    return torch.where(torch.isinf(rounded), rounded, want)


def smallest_step(dtype: Any) -> float:
    """Return the distance between the smallest numbers of a dtype (6e-8 in f16), the finest possible precision."""
    import torch

    about = torch.finfo(dtype)
    return about.smallest_normal * about.eps


def _errors(got: Any, want: Any, tolerance: float, scale_of: Any, step: float) -> tuple[Any, Any]:
    """Return the error at each element (infinite for NaN and for a wrong infinity), and the tolerance there."""
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
    """Return where two tensors of one dtype hold the same bits.

    A byte equals its poison by chance once in 256 times. So bytes count only in runs of ``RUN_OF_BYTES``.
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


def _worst(got: Any, want: Any, error: Any, ratio: Any, unwritten: Any) -> list[WorstElement]:
    """Return the five elements with the largest errors in units of the tolerance; the first ones of equal errors."""
    import torch

    flat = torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf).flatten()
    order = torch.sort(flat, descending=True, stable=True).indices if flat.numel() < 100_000 else None
    chosen = order[:WORST] if order is not None else torch.topk(flat, WORST).indices
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
