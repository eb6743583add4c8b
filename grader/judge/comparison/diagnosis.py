"""Diagnoses a wrong output: nothing written, transposed, wrong by a factor, shifted by one, ...

Each test below recognizes one pattern of errors that has a usual cause. The tests are tried in order, and the first
match is the diagnosis. An output that matches no test gets no diagnosis, because a wrong guess would mislead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.verdict import Diagnosis

MOST_ELEMENTS = 4_000_000
"""An output with more elements is tested only for patterns that are quick to recognize."""

NEARLY = 10.0
"""If all errors are below this multiple of the tolerance, many patterns fit by chance.

Then only tests that depend on the places or the size of the errors are tried.
"""


FEWEST_ROWS, SEPARATED = 8, 0.95
"""Limits for the diagnosis that rows are wrong where an input is large.

They are the minimum number of rows, and the share of pairs (wrong row, right row) in which the wrong row has the larger
value.
"""


MOST_OF_REGION = 0.9
"""The share of the elements on one side of a diagonal that must be wrong for the diagnosis of a wrong mask."""

SAME_SIZE = 8.0
"""Errors of right and wrong elements are of the same size if they differ by less than this factor, on average."""

COARSEST = 2.0**-6
"""The largest norm of the errors, relative to the reference's, that rounding explains: four rounding steps of bf16."""

LARGEST_OF_NOISE, LARGEST_ROW = 32.0, 8.0
"""Limits for errors that are even, as rounding errors are.

They are the largest error relative to the root mean square of all errors, and the largest error of a row relative to
the median over the rows.
"""


def indices_of(position: int, shape: Sequence[int]) -> list[int]:
    """Return the index along each dimension for an element's position. torch's function would import sympy."""
    import numpy as np

    return [int(index) for index in np.unravel_index(position, tuple(shape))]


def diagnose(
    got: Any, want: Any, wrong: Any, unwritten: Any, allowed: Any, inputs: Mapping[str, Any]
) -> Diagnosis | None:
    """Return the pattern of the errors in an output, or None. All tensors except ``inputs`` have the output's shape."""
    scene = Scene(got, want, wrong, unwritten, allowed, inputs)
    tests: list[Callable[[Scene], Diagnosis | None]] = [
        nothing_written,
        part_unwritten,
        diagonal,
        nan_of_input,
        all_nan,
        some_not_finite,
        constant_everywhere,
        scaled,
        shifted_by_constant,
        columns_shifted,
        transposed,
        moved_by_one,
        rows_scaled,
        rows_exchanged,
        place_of_errors,
        value_of_input,
        rounding,
    ]
    if scene.finite and not scene.whole_numbers and scene.ratio < NEARLY:
        tests = [part_unwritten, diagonal, place_of_errors, value_of_input, rounding]
    elif want.numel() > MOST_ELEMENTS:
        tests = [nothing_written, part_unwritten, nan_of_input, all_nan, some_not_finite, constant_everywhere, scaled]
    return next((found for test in tests if (found := test(scene)) is not None), None)


def looks(kind: str, **values: Any) -> Diagnosis:
    """Return a diagnosis with numbers for its text. A number may be a tensor of one element."""
    return Diagnosis(kind, {name: float(value) for name, value in values.items()})


class Scene:
    """A wrong output and its reference, with the values that several of the tests below use."""

    def __init__(
        self, got: Any, want: Any, wrong: Any, unwritten: Any, allowed: Any, inputs: Mapping[str, Any]
    ) -> None:
        import torch

        self.inputs = inputs
        self.torch = torch
        self.whole_numbers = not got.is_floating_point()
        self.got = got.to(torch.float64)
        self.want = want.to(torch.float64)
        self.wrong = wrong
        self.unwritten = unwritten
        self.allowed = allowed.clamp(min=1e-300)
        self.elements = want.numel()
        self.count = int(wrong.sum())
        self.ratio = float(((self.got - self.want).abs() / self.allowed).max())
        self.finite = bool(torch.isfinite(self.got).all()) and bool(torch.isfinite(self.want).all())

    def fits(self, candidate: Any, slack: float = 3.0) -> bool:
        """Return whether ``candidate`` is right everywhere, within ``slack`` times the allowed error.

        A candidate is the output after a suspected error has been undone.
        """
        near = slack * self.allowed
        return candidate.shape == self.want.shape and bool(((candidate - self.want).abs() <= near).all())

    def rows(self, tensor: Any) -> Any:
        """Return a tensor as a matrix. A row of the matrix runs along the tensor's last axis."""
        return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def nothing_written(scene: Scene) -> Diagnosis | None:
    """Recognize an output that the kernel did not change."""
    if int(scene.unwritten.sum()) == scene.elements:
        return Diagnosis("nothing_written")
    return None


def part_unwritten(scene: Scene) -> Diagnosis | None:
    """Recognize an output of which the kernel did not write some elements."""
    count = int(scene.unwritten.sum())
    if count == 0:
        return None
    flat = scene.unwritten.flatten()
    first = int(flat.nonzero()[0])
    if bool(flat[first:].all()):
        return looks("tail_unwritten", count=count, elements=scene.elements)
    rows = scene.rows(scene.unwritten)
    some = rows.any(dim=1)
    columns = rows[some]
    if rows.shape[1] > 1 and bool((columns == columns[0]).all()):
        pattern = columns[0]
        start = int(pattern.nonzero()[0])
        if not bool(pattern.all()):
            kind = "columns_unwritten_from" if bool(pattern[start:].all()) else "columns_unwritten"
            return looks(kind, count=pattern.sum(), column=start, rows=some.sum(), of=rows.shape[0])
        last = int((~some).nonzero()[-1]) if not bool(some.all()) else -1
        if bool(some[last + 1 :].all()) and last + 1 + int(some.sum()) == rows.shape[0]:
            return looks("rows_unwritten_from", row=last + 1, of=rows.shape[0])
        return looks("rows_unwritten", rows=some.sum(), of=rows.shape[0], row=some.nonzero()[0])
    values = {"count": float(count), "elements": float(scene.elements)}
    return Diagnosis("elements_unwritten", values, indices_of(first, scene.want.shape))


def nan_of_input(scene: Scene) -> Diagnosis | None:
    """Recognize NaN in the output that comes from an input. Tasks put NaN into places that must not be read."""
    torch = scene.torch
    if not bool(torch.isnan(scene.got).any()) or not bool(torch.isfinite(scene.want).all()):
        return None
    names = [name for name, tensor in scene.inputs.items() if bool(torch.isnan(tensor).any())]
    return Diagnosis("nan_of_input", name=" and ".join(names)) if names else None


def all_nan(scene: Scene) -> Diagnosis | None:
    """Recognize an output in which all elements are NaN."""
    if bool(scene.torch.isnan(scene.got).all()):
        return Diagnosis("all_nan")
    return None


def some_not_finite(scene: Scene) -> Diagnosis | None:
    """Recognize an output in which some elements are NaN or infinite."""
    torch = scene.torch
    nan = int(torch.isnan(scene.got).sum())
    infinite = int((torch.isinf(scene.got) & torch.isfinite(scene.want)).sum())
    if nan == 0 and infinite == 0:
        return None
    rows = scene.rows(~torch.isfinite(scene.got) & torch.isfinite(scene.want)).all(dim=1)
    found = looks("not_finite", nan=nan, infinite=infinite, elements=scene.elements)
    if scene.want.dim() > 1 and 0 < int(rows.sum()) < rows.shape[0] and int(rows.sum()) * scene.want.shape[-1] >= nan:
        found.values["row"] = float(rows.nonzero()[0])
    return found


def constant_everywhere(scene: Scene) -> Diagnosis | None:
    """Recognize an output in which all elements have the same value, such as 0."""
    if scene.elements < 2:
        return None
    first = scene.got.flatten()[0]
    if not bool((scene.got == first).all()) or bool((scene.want == scene.want.flatten()[0]).all()):
        return None
    return looks("constant", value=first)


def scaled(scene: Scene) -> Diagnosis | None:
    """Recognize an output that is the right one times a factor."""
    if not scene.finite or scene.elements < 2 or scene.whole_numbers:
        return None
    torch = scene.torch
    power = float((scene.want * scene.want).sum())
    if power == 0:
        return None
    factor = float((scene.got * scene.want).sum()) / power
    if factor == 0 or abs(factor - 1) < 1e-4 or not bool(torch.isfinite(torch.tensor(factor))):
        return None
    if not scene.fits(scene.got / factor, slack=5.0):
        return None
    if abs(factor + 1) < 1e-3:
        return Diagnosis("negated")
    return looks("scaled", factor=factor)


def shifted_by_constant(scene: Scene) -> Diagnosis | None:
    """Recognize an output that is the right one plus a constant."""
    if not scene.finite or scene.elements < 3 or scene.count < scene.elements // 2:
        return None
    offset = float((scene.got - scene.want).flatten().median())
    if offset == 0 or not scene.fits(scene.got - offset):
        return None
    return looks("shifted", by=offset)


def columns_shifted(scene: Scene) -> Diagnosis | None:
    """Recognize an output that is the right one plus a constant for each column, such as a missing bias."""
    if not scene.finite or scene.want.dim() < 2 or scene.whole_numbers:
        return None
    got, want, allowed = scene.rows(scene.got), scene.rows(scene.want), scene.rows(scene.allowed)
    if want.shape[0] < 4 or want.shape[1] < 3:
        return None  # in so few rows, the pattern may occur by chance
    off = (got - want).median(dim=0).values
    right = ((want + off - got).abs() <= 3 * allowed).all()
    if not bool(right) or not bool((off.abs() > 10 * allowed.max(dim=0).values).all()):
        return None
    return looks("columns_shifted", low=off.min(), high=off.max())


def transposed(scene: Scene) -> Diagnosis | None:
    """Recognize an output that is written with the last two axes, or two other adjacent axes, exchanged."""
    if not scene.finite or scene.want.dim() < 2:
        return None
    rows, columns = scene.want.shape[-2:]
    if rows < 2 or columns < 2:
        return None
    there = scene.got.reshape(*scene.want.shape[:-2], columns, rows).transpose(-2, -1)
    if scene.fits(there):
        return Diagnosis("transposed")
    if scene.want.dim() >= 3:
        for first in range(scene.want.dim() - 2):
            shape = list(scene.want.shape)
            shape[first], shape[first + 1] = shape[first + 1], shape[first]
            if min(shape[first], shape[first + 1]) < 2:
                continue
            there = scene.got.reshape(shape).transpose(first, first + 1)
            if scene.fits(there):
                return looks("axes_exchanged", axis=first)
    return None


def moved_by_one(scene: Scene) -> Diagnosis | None:
    """Recognize right values that are shifted by one along an axis, everywhere or from some index on."""
    if not scene.finite or scene.elements < 4:
        return None
    for axis in reversed(range(scene.want.dim())):
        if scene.want.shape[axis] < 3:
            continue
        for step in (1, -1):
            at = _moved_from(scene, axis, step)
            if at is not None:
                return looks("moved", axis=axis, axes=scene.want.dim(), step=step, at=at)
    return None


def _moved_from(scene: Scene, axis: int, step: int) -> int | None:
    """Return the first index from which values are shifted by ``step`` along the axis.

    Return None if the shift does not explain all errors.
    """
    length = scene.want.shape[axis]
    near = [tensor.narrow(axis, max(-step, 0), length - 1) for tensor in (scene.want, scene.allowed, scene.wrong)]
    far = [tensor.narrow(axis, max(step, 0), length - 1) for tensor in (scene.got, scene.wrong, scene.want)]
    (want, allowed, wrong_here), (got, wrong_there, want_there) = near, far
    # An element whose neighbor has the same value does not show a shift.
    moved = ((got - want).abs() <= 3 * allowed) & wrong_here & wrong_there & ((want - want_there).abs() > 3 * allowed)
    count = int(moved.sum())
    if count < 3 or 2 * count < scene.count or bool((want[moved] == want[moved][0]).all()):
        return None
    explained = scene.torch.zeros_like(scene.wrong)
    explained.narrow(axis, max(-step, 0), length - 1).logical_or_(moved)
    explained.narrow(axis, max(step, 0), length - 1).logical_or_(moved)
    # At the ends of the axis, the shift may have lost a value, or brought one from outside the axis.
    for end in (0, length - 1):
        explained.select(axis, end).fill_(True)
    if bool((scene.wrong & ~explained).any()):
        return None
    return int(moved.nonzero()[:, axis].min()) + max(-step, 0)


def diagonal(scene: Scene) -> Diagnosis | None:
    """Recognize a wrong mask: all errors lie on one side of a diagonal of the last two axes, or on a diagonal."""
    if scene.want.dim() < 2 or scene.count == scene.elements or min(scene.want.shape[-2:]) < 4:
        return None
    torch = scene.torch
    rows, columns = scene.want.shape[-2:]
    offset = (torch.arange(columns)[None, :] - torch.arange(rows)[:, None]).expand(scene.want.shape)
    of_errors = offset[scene.wrong]
    if not of_errors.numel():
        return None
    low, high = int(of_errors.min()), int(of_errors.max())
    if low == high:
        regions = [("on_diagonal", offset == low, low)]
    else:
        regions = [("above_diagonal", offset >= low, low - 1), ("below_diagonal", offset <= high, high + 1)]
    # Errors in the same columns of every row, or in whole rows, are not reported as a diagonal. In a small output they
    # may lie on one side of a diagonal by chance.
    places = scene.wrong.reshape(-1, rows, columns).any(dim=0)
    in_columns, in_rows = int(places.any(dim=0).sum()) / columns, int(places.any(dim=1).sum()) / rows
    for kind, region, bound in regions:
        if low < high and min(in_columns, in_rows) * scene.elements <= int(region.sum()):
            continue
        parts = (region.any(dim=-1) & ~region.all(dim=-1)).reshape(-1, rows)[0]
        # Not all elements of the region must be wrong: a few masked values may be right by chance.
        if int(parts.sum()) >= 3 and int(scene.wrong.sum()) >= MOST_OF_REGION * int(region.sum()):
            return looks(kind, by=bound)
    return None


def rows_scaled(scene: Scene) -> Diagnosis | None:
    """Recognize rows that are the right ones times a factor for each row: a wrong or missing normalization."""
    if not scene.finite or scene.want.dim() < 2 or scene.want.shape[-1] < 2 or scene.whole_numbers:
        return None
    if scene.want.numel() - scene.want.numel() // scene.want.shape[-1] < 3:
        return None  # with so few elements per row, factors explain any output
    got, want, allowed = scene.rows(scene.got), scene.rows(scene.want), scene.rows(scene.allowed)
    power = (want * want).sum(dim=1)
    if not bool((power > 0).all()):
        return None
    factor = (got * want).sum(dim=1) / power
    if not bool((factor.abs() > 1e-6).all()):
        return None
    if not bool(((got / factor[:, None] - want).abs() <= 5 * allowed).all()):
        return None
    low, high = float(factor.min()), float(factor.max())
    off = int(((factor - 1).abs() > 1e-3).sum())
    if off == 0:
        return None
    return looks("rows_scaled", rows=off, of=factor.numel(), low=low, high=high)


def rows_exchanged(scene: Scene) -> Diagnosis | None:
    """Recognize rows that are right, but in the wrong places."""
    if not scene.finite or scene.want.dim() < 2:
        return None
    got, want = scene.rows(scene.got), scene.rows(scene.want)
    rows, columns = want.shape
    if not (2 <= rows <= 1024 and columns >= 4) or rows * rows * columns > 50_000_000:
        return None
    torch = scene.torch
    distance = torch.cdist(got, want, compute_mode="donot_use_mm_for_euclid_dist")
    # A row is recognized only if no other row is as near. In an attention of steep scores, for example, many are alike.
    (_, second), (nearest, _) = (part.T for part in distance.topk(2, largest=False))
    alike = second <= 6 * scene.rows(scene.allowed).norm(dim=1)
    at_home = ((got - want).abs() <= 3 * scene.rows(scene.allowed)).all(dim=1)
    nearest = torch.where(at_home, torch.arange(rows), nearest)
    error = (got - want[nearest]).abs()
    moved = nearest != torch.arange(rows)
    fits = (error <= 3 * scene.rows(scene.allowed)[nearest]).all(dim=1)
    if not bool(fits.all()) or not bool(moved.any()) or bool((moved & alike).any()):
        return None
    first = int(moved.nonzero()[0])
    if nearest.unique().numel() == 1:
        return looks("rows_alike", row=nearest[0])
    return looks("rows_exchanged", row=first, holds=nearest[first])


def place_of_errors(scene: Scene) -> Diagnosis | None:
    """Recognize errors in only a part of the output, for example in one row, or from some column on."""
    if scene.elements < 2 or scene.count in (0, scene.elements):
        return None
    if _is_at_limit(scene):
        return None
    flat = scene.wrong.flatten()
    first = int(flat.nonzero()[0])
    if scene.want.dim() >= 2 and scene.want.shape[0] > 1:
        for axis in range(scene.want.dim() - 1):
            others = [a for a in range(scene.want.dim()) if a != axis]
            length = scene.want.shape[axis]
            bad = scene.wrong.sum(dim=others) > 0
            if length < 2 or bool(bad.all()):
                continue
            places = bad.nonzero().flatten().tolist()
            if len(places) == 1:
                return looks("only_wrong", axis=axis, at=places[0], axes=scene.want.dim())
            if not bool(bad[0]) and bool(bad[1:].all()):
                return looks("only_right", axis=axis, at=0, axes=scene.want.dim())
            if places == list(range(places[0], length)):
                return looks("wrong_from", axis=axis, at=places[0], axes=scene.want.dim())
    rows = scene.rows(scene.wrong)
    if rows.shape[1] > 1:
        bad = rows.any(dim=0)
        places = bad.nonzero().flatten().tolist()
        if places == [0]:
            return Diagnosis("only_first_wrong")
        if places == [rows.shape[1] - 1] and rows.shape[1] > 2:  # of two, it may as well be all but the first
            return Diagnosis("only_last_wrong")
        if places[0] > 0 and places == list(range(places[0], rows.shape[1])):
            return looks("wrong_from_column", column=places[0])
        if not bool(bad[0]) and bool(bad[1:].all()):
            return Diagnosis("only_first_right")
    if scene.want.dim() == 1 and bool(flat[first:].all()):
        return looks("wrong_from_element", element=first)
    return None


def _is_at_limit(scene: Scene) -> bool:
    """Return whether right elements have nearly as large errors as wrong ones.

    Then it is chance which elements exceed their tolerance, and their places say nothing.
    """
    if not scene.finite or scene.whole_numbers:
        return False
    size = ((scene.got - scene.want) / scene.allowed).square()
    return float(size[~scene.wrong].mean().sqrt()) * SAME_SIZE > float(size[scene.wrong].mean().sqrt())


def value_of_input(scene: Scene) -> Diagnosis | None:
    """Recognize that the wrong rows are those with a large, or small, value of an input such as a length."""
    for name, tensor in scene.inputs.items():
        if tensor.is_floating_point() or tensor.dim() != 1 or not scene.want.dim() or tensor.numel() < FEWEST_ROWS:
            continue
        if tensor.numel() != scene.want.shape[0]:
            continue
        bad = scene.wrong.reshape(tensor.numel(), -1).any(dim=1)
        wrong, right = tensor[bad].double(), tensor[~bad].double()
        if min(wrong.numel(), right.numel()) < 3 or wrong.numel() * right.numel() > MOST_ELEMENTS:
            continue
        above = float((wrong[:, None] > right).double().mean())
        below = float((wrong[:, None] < right).double().mean())
        if above >= SEPARATED:
            return Diagnosis("wrong_at_large", {"at": float(wrong.min())}, name=name)
        if below >= SEPARATED:
            return Diagnosis("wrong_at_small", {"at": float(wrong.max())}, name=name)
    return None


def rounding(scene: Scene) -> Diagnosis | None:
    """Recognize a loss of precision: small errors of about the same size everywhere, as rounding causes them."""
    if not scene.finite or scene.whole_numbers or not scene.elements:
        return None
    torch = scene.torch
    error = scene.got - scene.want
    size = float(torch.linalg.vector_norm(scene.want))
    norm = float(torch.linalg.vector_norm(error)) / size if size else math.inf
    if norm > COARSEST or not _is_even(scene, error):
        return None
    return looks("rounding", norm=norm)


def _is_even(scene: Scene, error: Any) -> bool:
    """Return whether the errors are as even as rounding errors: no element or row has far larger ones than others."""
    torch = scene.torch
    size = float((error * error).mean().sqrt())
    if float(error.abs().max()) > LARGEST_OF_NOISE * size:
        return False
    rows, want = scene.rows(error), scene.rows(scene.want)
    if rows.shape[0] < 4 or rows.shape[1] < 8:
        return True
    scale = torch.linalg.vector_norm(want, dim=1)
    whole = float((scale * scale).mean().sqrt())
    of_rows = torch.linalg.vector_norm(rows, dim=1) / scale.clamp(min=max(1e-3 * whole, 1e-300))
    return float(of_rows.max()) <= LARGEST_ROW * float(of_rows.median())
