"""Recognizes mistakes in an attention kernel whose wrong output the reference gives for other keys, masks or scalars.

An exercise counts as attention if it has the sizes ``query_len`` and ``key_len``. As in ``grader/judge/misread.py``, a
mistake is recognized only if the changed reference equals the kernel's output at every element.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from grader.course.task import Call, Exercise
from grader.verdict import Diagnosis

MOST_ELEMENTS = 1 << 17
"""The maximum number of elements of all inputs together. The reference is called about 15 times."""
SIZES = {"query_len", "key_len"}
KEY_TILES = (128, 64, 32, 16, 8)

Outputs = dict[str, Any]
IsRight = Callable[[Any], bool]


def recognize(exercise: Exercise, call: Call, name: str, is_right: IsRight) -> Diagnosis | None:
    """Return the mistake that explains the output ``name``; None if there is none.

    ``is_right`` tells whether the kernel's output equals a tensor at every element.
    """
    shapes = [spec.shape for spec in exercise.inputs.values()] + [spec.shape for spec in exercise.outputs.values()]
    if not call.dims.keys() >= SIZES or any(_depends_on_size(axis) for shape in shapes for axis in shape.split()):
        return None
    if sum(tensor.numel() for tensor in call.tensors.values()) > MOST_ELEMENTS:
        return None
    for diagnosis, outputs in _mistakes(exercise, call):
        if name in outputs and tuple(outputs[name].shape) == call.output_shapes[name] and is_right(outputs[name]):
            return diagnosis
    return None


def _depends_on_size(axis: str) -> bool:
    """Return whether the length of an axis is computed from a size, as ``query_len/block`` is."""
    return axis not in SIZES and any(size in axis for size in SIZES)


def _mistakes(exercise: Exercise, call: Call) -> Iterator[tuple[Diagnosis, Outputs]]:
    """Yield each mistake with the outputs that it causes."""
    queries, keys = call.dims["query_len"], call.dims["key_len"]
    scale = call.scalars.get("scale")
    if isinstance(scale, float) and keys > 1:
        wrong = {"scale_left_out": 1.0, "scale_squared": scale * scale}
        if (columns := call.dims.get("head_dim")) and abs(scale - columns**-0.5) > 1e-6 * scale:
            wrong["scale_not_read"] = columns**-0.5
        for kind, value in wrong.items():
            yield Diagnosis(kind), exercise.expected(_with(call, "scale", value))
    if call.dims.get("causal") is True:
        offset = keys - queries
        for kind, wrong_offset in (("mask_one_less", offset - 1), ("mask_one_more", offset + 1), ("mask_at_start", 0)):
            if queries and keys and wrong_offset != offset:
                yield Diagnosis(kind), _with_offset(exercise, call, wrong_offset)
                if queries + wrong_offset > keys:  # the kernel may also compute with the zeros after the last key
                    more = _part(exercise, call, "key_len", 0, queries + wrong_offset)
                    yield Diagnosis(kind), exercise.expected(more)
    else:
        for cut in dict.fromkeys(keys // tile * tile for tile in KEY_TILES):
            if 0 < cut < keys:
                values = {"at": float(cut), "of": float(keys)}
                for kind, start, end in (("last_keys_left_out", 0, cut), ("first_keys_lost", cut, keys)):
                    yield Diagnosis(kind, values), exercise.expected(_part(exercise, call, "key_len", start, end))


def _with_offset(exercise: Exercise, call: Call, offset: int) -> Outputs:
    """Return the outputs if query i saw the keys up to i + ``offset``.

    The reference always shows the last query all keys, so it is called with key_len - offset queries. Queries that this
    adds at the end are left out again, and queries that it leaves out see all keys.
    """
    import torch

    queries, keys = call.dims["query_len"], call.dims["key_len"]
    masked = max(0, min(queries, keys - offset))
    parts = []
    if masked:
        longer = _part(exercise, call, "query_len", 0, keys - offset)
        parts.append(_cut(exercise, exercise.expected(longer), "query_len", masked))
    if masked < queries:
        parts.append(exercise.expected(_with(_part(exercise, call, "query_len", masked, queries), "causal", False)))
    joined = {}
    for name, first in parts[0].items():
        axes = exercise.outputs[name].shape.split()
        if "query_len" in axes:
            joined[name] = torch.cat([part[name] for part in parts], dim=axes.index("query_len"))
        elif len(parts) == 1:
            joined[name] = first
    return joined


def _cut(exercise: Exercise, outputs: Outputs, size: str, length: int) -> Outputs:
    """Return outputs whose axes of ``size`` are cut to a length."""
    cut = {}
    for name, tensor in outputs.items():
        axes = exercise.outputs[name].shape.split()
        cut[name] = tensor.narrow(axes.index(size), 0, length) if size in axes else tensor
    return cut


def _part(exercise: Exercise, call: Call, size: str, start: int, end: int) -> Call:
    """Return the call with indices ``start`` to ``end`` of each axis of a size. Indices past the axis get zeros."""
    import torch

    tensors, shapes = dict(call.tensors), dict(call.output_shapes)
    for name, spec in exercise.inputs.items():
        axes = spec.shape.split()
        if name in tensors and size in axes:
            axis = axes.index(size)
            whole = tensors[name]
            part = whole.narrow(axis, start, min(end, whole.shape[axis]) - start)
            if (more := end - start - part.shape[axis]) > 0:
                shape = [*part.shape[:axis], more, *part.shape[axis + 1 :]]
                part = torch.cat([part, torch.zeros(shape, dtype=part.dtype)], dim=axis)
            tensors[name] = part.contiguous()
    for name, output in exercise.outputs.items():
        axes = output.shape.split()
        if name in shapes and size in axes:
            axis = axes.index(size)
            shapes[name] = (*shapes[name][:axis], end - start, *shapes[name][axis + 1 :])
    return _with(dataclasses.replace(call, tensors=tensors, output_shapes=shapes), size, end - start)


def _with(call: Call, name: str, value: Any) -> Call:
    """Return the call with another value of a size or an option."""
    scalars = call.scalars | ({name: value} if name in call.scalars else {})
    return dataclasses.replace(call, dims=call.dims | {name: value}, scalars=scalars)
