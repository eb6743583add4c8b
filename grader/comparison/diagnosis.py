"""Says what a wrong output looks like: nothing written, transposed, off by a factor, shifted by one, ...

Each test below recognises one pattern that has a usual cause. They are tried in order, the first that fits speaks. A
wrong output that fits none gets no diagnosis: a wrong guess costs a learner more than silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

MOST_ELEMENTS = 4_000_000
"""Larger outputs are not looked at in all patterns."""

NEARLY = 10.0
"""Errors of less than so many times what is allowed look like anything: only their place is told."""


def diagnose(got: Any, want: Any, wrong: Any, unwritten: Any, allowed: Any) -> str:
    """One sentence on what the error looks like, or an empty text. All tensors have one shape."""
    scene = Scene(got, want, wrong, unwritten, allowed)
    tests: list[Callable[[Scene], str]] = [
        nothing_written,
        part_unwritten,
        all_nan,
        some_not_finite,
        constant_everywhere,
        scaled,
        shifted_by_constant,
        transposed,
        moved_by_one,
        rows_scaled,
        rows_exchanged,
        place_of_errors,
        rounding,
    ]
    if scene.finite and not scene.whole_numbers and scene.ratio < NEARLY:
        tests = [part_unwritten, place_of_errors, rounding]
    elif want.numel() > MOST_ELEMENTS:
        tests = [nothing_written, part_unwritten, all_nan, some_not_finite, constant_everywhere, scaled]
    for test in tests:
        sentence = test(scene)
        if sentence:
            return sentence
    return ""


class Scene:
    """The comparison that the tests look at, with what several of them need."""

    def __init__(self, got: Any, want: Any, wrong: Any, unwritten: Any, allowed: Any) -> None:
        import torch

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

    def fits(self, candidate: Any, want: Any = None, slack: float = 3.0, allowed: Any = None) -> bool:
        """Whether a changed output would be right, with some slack."""
        want = self.want if want is None else want
        allowed = self.allowed if allowed is None else allowed
        return candidate.shape == want.shape and bool(((candidate - want).abs() <= slack * allowed).all())

    def rows(self, tensor: Any) -> Any:
        """As a matrix: the last axis is a row."""
        return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def nothing_written(scene: Scene) -> str:
    """The kernel left all as it was."""
    if int(scene.unwritten.sum()) == scene.elements:
        return "nothing was written: the kernel did not run, or it wrote elsewhere"
    return ""


def part_unwritten(scene: Scene) -> str:
    """Some elements are as they were."""
    torch = scene.torch
    count = int(scene.unwritten.sum())
    if count == 0:
        return ""
    flat = scene.unwritten.flatten()
    first = int(flat.nonzero()[0])
    if bool(flat[first:].all()):
        tail = f"the last {count} elements" if count > 1 else "the last element"
        return f"{tail} of {scene.elements} were never written: does the grid cover the tail?"
    rows = scene.rows(scene.unwritten)
    some = rows.any(dim=1)
    columns = rows[some]
    if rows.shape[1] > 1 and bool((columns == columns[0]).all()):
        pattern = columns[0]
        start = int(pattern.nonzero()[0])
        which = "every row" if bool(some.all()) else f"{int(some.sum())} of {rows.shape[0]} rows"
        if not bool(pattern.all()):
            if bool(pattern[start:].all()):
                return f"columns {start} and up of {which} were never written: is the row longer than what is covered?"
            return f"{int(pattern.sum())} columns of {which} were never written, the first is column {start}"
        last = int((~some).nonzero()[-1]) if not bool(some.all()) else -1
        if bool(some[last + 1 :].all()) and last + 1 + int(some.sum()) == rows.shape[0]:
            return f"rows {last + 1} and up were never written: does the grid cover all {rows.shape[0]} rows?"
        return (
            f"{int(some.sum())} of {rows.shape[0]} rows were never written, the first is row {int(some.nonzero()[0])}"
        )
    index = torch.unravel_index(torch.tensor(first), scene.want.shape)
    where = ", ".join(str(int(i)) for i in index)
    return f"{count} of {scene.elements} elements were never written, the first is [{where}]"


def all_nan(scene: Scene) -> str:
    """Every element is NaN."""
    if bool(scene.torch.isnan(scene.got).all()):
        return "every element is NaN: look for inf - inf, 0 / 0, or memory read before it was written"
    return ""


def some_not_finite(scene: Scene) -> str:
    """NaN or infinities among numbers."""
    torch = scene.torch
    nan = int(torch.isnan(scene.got).sum())
    infinite = int((torch.isinf(scene.got) & torch.isfinite(scene.want)).sum())
    if nan == 0 and infinite == 0:
        return ""
    parts = [f"{nan} NaN"] if nan else []
    parts += [f"{infinite} infinite" if nan else f"{infinite} infinite values"] if infinite else []
    rows = scene.rows(~torch.isfinite(scene.got) & torch.isfinite(scene.want)).all(dim=1)
    extent = ""
    if scene.want.dim() > 1 and 0 < int(rows.sum()) < rows.shape[0] and int(rows.sum()) * scene.want.shape[-1] >= nan:
        extent = f", whole rows of them, the first is row {int(rows.nonzero()[0])}"
    cause = "an overflow, inf - inf, 0 / 0 or a read of unwritten memory"
    return f"{' and '.join(parts)} among {scene.elements} elements{extent}: {cause}"


def constant_everywhere(scene: Scene) -> str:
    """All zeros, or all of one value."""
    if scene.elements < 2:
        return ""
    first = scene.got.flatten()[0]
    if not bool((scene.got == first).all()) or bool((scene.want == scene.want.flatten()[0]).all()):
        return ""
    return "all zeros" if float(first) == 0 else f"every element has the same value, {float(first):.6g}"


def scaled(scene: Scene) -> str:
    """One factor explains all."""
    if not scene.finite or scene.elements < 2 or scene.whole_numbers:
        return ""
    torch = scene.torch
    power = float((scene.want * scene.want).sum())
    if power == 0:
        return ""
    factor = float((scene.got * scene.want).sum()) / power
    if factor == 0 or abs(factor - 1) < 1e-4 or not bool(torch.isfinite(torch.tensor(factor))):
        return ""
    if not scene.fits(scene.got / factor, slack=5.0):
        return ""
    if abs(factor + 1) < 1e-3:
        return "right but for the sign"
    return f"every element is {_factor(factor)} times what it should be"


def shifted_by_constant(scene: Scene) -> str:
    """One summand explains all."""
    if not scene.finite or scene.elements < 3 or scene.count < scene.elements // 2:
        return ""
    offset = float((scene.got - scene.want).flatten().median())
    if offset == 0 or not scene.fits(scene.got - offset):
        return ""
    return f"every element is too {'large' if offset > 0 else 'small'} by {abs(offset):.6g}"


def transposed(scene: Scene) -> str:
    """The last two axes are exchanged in memory, or the matrix is written in the wrong order."""
    if not scene.finite or scene.want.dim() < 2:
        return ""
    rows, columns = scene.want.shape[-2:]
    if rows < 2 or columns < 2:
        return ""
    there = scene.got.reshape(*scene.want.shape[:-2], columns, rows).transpose(-2, -1)
    if scene.fits(there):
        return "transposed: rows and columns are exchanged"
    if scene.want.dim() >= 3:
        for first in range(scene.want.dim() - 2):
            shape = list(scene.want.shape)
            shape[first], shape[first + 1] = shape[first + 1], shape[first]
            if min(shape[first], shape[first + 1]) < 2:
                continue
            there = scene.got.reshape(shape).transpose(first, first + 1)
            if scene.fits(there):
                return f"axes {first} and {first + 1} are exchanged in memory"
    return ""


def moved_by_one(scene: Scene) -> str:
    """The right values one place too far along."""
    if not scene.finite or scene.elements < 4:
        return ""
    for axis, what in ((-1, "along the last axis"), (-2, "along the last axis but one")):
        if scene.want.dim() < -axis or scene.want.shape[axis] < 3:
            continue
        length = scene.want.shape[axis]
        for step in (1, -1):
            source = scene.got.narrow(axis, max(step, 0), length - 1)
            target = scene.want.narrow(axis, max(-step, 0), length - 1)
            allowed = scene.allowed.narrow(axis, max(-step, 0), length - 1)
            if scene.fits(source, target, allowed=allowed) and not _same_everywhere(target):
                return f"shifted by one {what}: element i + {step} holds what belongs in i".replace("+ -", "- ")
    return ""


def rows_scaled(scene: Scene) -> str:
    """Each row is off by a factor of its own: a wrong or missing normalisation."""
    if not scene.finite or scene.want.dim() < 2 or scene.want.shape[-1] < 4 or scene.whole_numbers:
        return ""
    torch = scene.torch
    got, want, allowed = scene.rows(scene.got), scene.rows(scene.want), scene.rows(scene.allowed)
    power = (want * want).sum(dim=1)
    if not bool((power > 0).all()):
        return ""
    factor = (got * want).sum(dim=1) / power
    if not bool((factor.abs() > 1e-6).all()):
        return ""
    if not bool(((got / factor[:, None] - want).abs() <= 5 * allowed).all()):
        return ""
    low, high = float(factor.min()), float(factor.max())
    off = int(((factor - 1).abs() > 1e-3).sum())
    if off == 0:
        return ""
    del torch
    which = "each row is" if off == factor.numel() else f"{off} of {factor.numel()} rows are"
    return (
        f"{which} off by a factor of its own ({_factor(low)} to {_factor(high)}): "
        "divided by the wrong sum, not normalised, or not rescaled?"
    )


def rows_exchanged(scene: Scene) -> str:
    """Right rows in wrong places."""
    if not scene.finite or scene.want.dim() < 2:
        return ""
    got, want = scene.rows(scene.got), scene.rows(scene.want)
    rows, columns = want.shape
    if not (2 <= rows <= 1024 and columns >= 4) or rows * rows * columns > 50_000_000:
        return ""
    torch = scene.torch
    distance = torch.cdist(got, want, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = distance.argmin(dim=1)
    at_home = ((got - want).abs() <= 3 * scene.rows(scene.allowed)).all(dim=1)
    nearest = torch.where(at_home, torch.arange(rows), nearest)
    error = (got - want[nearest]).abs()
    moved = nearest != torch.arange(rows)
    fits = (error <= 3 * scene.rows(scene.allowed)[nearest]).all(dim=1)
    if not bool(fits.all()) or not bool(moved.any()):
        return ""
    first = int(moved.nonzero()[0])
    if nearest.unique().numel() == 1:
        return f"every row holds what belongs in row {int(nearest[0])}"
    return f"the rows are in the wrong places: row {first} holds what belongs in row {int(nearest[first])}"


def place_of_errors(scene: Scene) -> str:
    """All errors lie in one recognisable place."""
    if scene.elements < 2 or scene.count in (0, scene.elements):
        return ""
    flat = scene.wrong.flatten()
    first = int(flat.nonzero()[0])
    if scene.want.dim() >= 2 and scene.want.shape[0] > 1:
        for axis in range(scene.want.dim() - 1):
            others = [a for a in range(scene.want.dim()) if a != axis]
            length = scene.want.shape[axis]
            bad = scene.wrong.sum(dim=others) > 0
            if length < 2 or bool(bad.all()):
                continue
            name = f"index {{}} of axis {axis}" if scene.want.dim() > 2 else "row {}"
            places = bad.nonzero().flatten().tolist()
            if not bool(bad[0]) and bool(bad[1:].all()):
                return f"only {name.format(0)} is right"
            if len(places) == 1:
                return f"only {name.format(places[0])} is wrong"
            if places == list(range(places[0], length)):
                return f"wrong from {name.format(places[0])} on, right before"
    rows = scene.rows(scene.wrong)
    if rows.shape[1] > 1:
        bad = rows.any(dim=0)
        places = bad.nonzero().flatten().tolist()
        if places == [0]:
            return "only the first element of a row is wrong"
        if places == [rows.shape[1] - 1]:
            return "only the last element of a row is wrong"
        if places[0] > 0 and places == list(range(places[0], rows.shape[1])):
            return f"wrong from column {places[0]} on, right before"
        if not bool(bad[0]) and bool(bad[1:].all()):
            return "only the first element of a row is right"
    if scene.want.dim() == 1 and bool(flat[first:].all()):
        return f"wrong from element {first} on, right before"
    return ""


def rounding(scene: Scene) -> str:
    """Nearly right everywhere: precision was lost on the way."""
    if not scene.finite or scene.whole_numbers:
        return ""
    torch = scene.torch
    size = float(torch.linalg.vector_norm(scene.want))
    norm = float(torch.linalg.vector_norm(scene.got - scene.want)) / size if size else math.inf
    if scene.ratio < 200 and norm < 0.02:
        return "nearly right everywhere: is a sum kept in too low a precision, or a fast approximation used?"
    return ""


def _same_everywhere(tensor: Any) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _factor(value: float) -> str:
    """A factor as people write it: 1/8, sqrt(2) stays a number."""
    if value and abs(value) < 1:
        inverse = 1 / value
        if abs(inverse - round(inverse)) < 2e-3 * abs(inverse) and abs(round(inverse)) <= 4096:
            return f"1/{round(inverse)}" if inverse > 0 else f"-1/{abs(round(inverse))}"
    return f"{value:.4g}"
