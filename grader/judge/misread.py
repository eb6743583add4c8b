"""Recognizes a wrong output that would be right if the kernel had read an input in a certain wrong way.

A common mistake is to load a tile of an input into shared memory with the wrong thread index. Then every element of the
output is wrong, and the errors have no pattern that ``grader/judge/comparison/diagnosis.py`` could recognize. This
module applies such mistakes to the inputs and calls the reference with them. If the result equals the kernel's output
at every element, the kernel has made this mistake.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from grader.course.task import Call, Exercise
from grader.judge import rescaling_mistakes
from grader.judge.attention_mistakes import recognize
from grader.judge.comparison.compare import compare
from grader.verdict import Diagnosis, OutputResult

MOST_ELEMENTS = 1 << 14
"""The maximum number of elements of all inputs together. The reference is called dozens of times."""
MOST_ELEMENTS_ONCE = 1 << 20
"""The same maximum for the test of the option ``causal``, which calls the reference once."""
FEWEST_WRONG = 3
OF_SOME_ROWS = ("scaled", "rows_scaled", "only_right", "only_wrong", "wrong_from")
"""The patterns of errors in an attention that forgets to rescale its sums: rows whose maximum does not rise are right.
"""
TILES = (16, 32, 64)


def explain(exercise: Exercise, call: Call, output: OutputResult, actual: Any) -> None:
    """Set the diagnosis of a wrong output if it has no clear pattern, but a misread input explains it."""
    if output.wrong < FEWEST_WRONG or output.unwritten:
        return
    kind = output.diagnosis.kind if output.diagnosis else ""
    if kind in ("", "columns_shifted", "rounding"):
        output.diagnosis = misread(exercise, call, output.name, actual) or output.diagnosis
    elif kind in OF_SOME_ROWS:
        output.diagnosis = not_rescaled(exercise, call, output.name, actual) or output.diagnosis


def misread(exercise: Exercise, call: Call, name: str, actual: Any) -> Diagnosis | None:
    """Return a diagnosis that names the input whose misreading explains the output ``name``; None if there is none.

    ``actual`` is the kernel's output, on the CPU.
    """
    if (found := _mask_ignored(exercise, call, name, actual)) is not None:
        return found
    if actual.is_floating_point():
        found = recognize(exercise, call, name, lambda wanted: _equals(exercise, call, name, actual, wanted))
        if found is not None:
            return found
    if (found := not_rescaled(exercise, call, name, actual)) is not None:
        return found
    inputs = {key: tensor for key, tensor in call.tensors.items() if tensor.is_floating_point() and tensor.numel()}
    if not actual.is_floating_point() or sum(tensor.numel() for tensor in inputs.values()) > MOST_ELEMENTS:
        return None
    for kind, changed in _changes(inputs):
        other = dataclasses.replace(call, tensors={**call.tensors, **changed})
        if _is_right(exercise, other, name, actual):
            return Diagnosis(kind, name=" and ".join(changed))
    return None


def not_rescaled(exercise: Exercise, call: Call, name: str, actual: Any) -> Diagnosis | None:
    """Return a diagnosis if the output ``name`` is that of an attention that does not rescale its sums."""
    if not actual.is_floating_point():
        return None
    return rescaling_mistakes.recognize(
        exercise, call, name, actual, lambda wanted: _equals(exercise, call, name, actual, wanted)
    )


def _mask_ignored(exercise: Exercise, call: Call, name: str, actual: Any) -> Diagnosis | None:
    """Return a diagnosis if the output would be right with the other value of the option ``causal``."""
    wanted = call.dims.get("causal")
    elements = sum(tensor.numel() for tensor in call.tensors.values())
    if not isinstance(wanted, bool) or not actual.is_floating_point() or elements > MOST_ELEMENTS_ONCE:
        return None
    other = dataclasses.replace(
        call,
        dims={**call.dims, "causal": not wanted},
        scalars={**call.scalars, **({"causal": not wanted} if "causal" in call.scalars else {})},
    )
    if not _is_right(exercise, other, name, actual):
        return None
    return Diagnosis("mask_ignored" if wanted else "mask_not_requested", name=name)


def _is_right(exercise: Exercise, call: Call, name: str, actual: Any) -> bool:
    """Return whether the output ``actual`` is right for the call ``call``, which has changed inputs or options."""
    return _equals(exercise, call, name, actual, exercise.expected(call)[name])


def _equals(exercise: Exercise, call: Call, name: str, actual: Any, wanted: Any) -> bool:
    """Return whether the output ``actual`` equals the tensor ``wanted`` within the exercise's tolerance."""
    tolerance, scale = exercise.tolerance_of(name, call.dtype), exercise.scale_of(name, call)
    return compare(name, actual, wanted, call.output_dtypes[name], tolerance, scale=scale, explained=False).passed


def _changes(inputs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mistake with the inputs that it changes, by name.

    First, each mistake changes one input. Then, mistakes in loading tiles change all inputs that they apply to, because
    a kernel usually loads all of its inputs with the same code.
    """
    together: dict[tuple[str, int], dict[str, Any]] = {}
    for name, tensor in inputs.items():
        for kind, tile, changed in _misread_versions(tensor):
            yield kind, {name: changed}
            if tile:
                together.setdefault((kind, tile), {})[name] = changed
    for (kind, _), changes in together.items():
        if len(changes) > 1:
            yield kind, changes


def _misread_versions(tensor: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield versions of an input with a mistake: the kind of mistake, the tile's size or 0, and the changed tensor."""
    import torch

    yield "input_left_out", 0, torch.zeros_like(tensor)
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2:
        return
    rows, columns = tensor.shape[-2:]
    yield "input_read_across", 0, tensor.reshape(*tensor.shape[:-2], columns, rows).transpose(-2, -1).contiguous()
    row, column = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    for tile in TILES:
        if tile < columns and columns % tile:
            yield "last_tile_left_out", tile, torch.where(column < columns - columns % tile, tensor, 0.0)
        y, x = row % tile, column % tile  # threadIdx.y and threadIdx.x of a kernel without the mistake
        for kind, (own_row, own_column) in {"tile_turned": (x, y), "tile_row": (x, x), "tile_column": (y, y)}.items():
            source_row, source_column = row - y + own_row, column - x + own_column
            there = (source_row < rows) & (source_column < columns)
            read = tensor[..., source_row.clamp(max=rows - 1), source_column.clamp(max=columns - 1)]
            yield kind, tile, torch.where(there, read, 0.0)
