"""Recognizes attention kernels that forget to rescale their running sums when the maximum of a row rises.

A kernel that makes one pass over the keys keeps the largest score so far (m), the sum of the weights exp(score - m) so
far (l), and the sum of the weighted values so far (o). When m rises, it must multiply both l and o by
exp(old m - new m). If it forgets one of these, key j keeps a weight relative to the maximum at the end of j's tile.

The wrong output is computed by the exercise's reference, whose softmax is replaced. As in
``grader/judge/attention_mistakes.py``, a mistake is recognized only if this equals the kernel's output at every
element. The size of the kernel's tiles is unknown, so the usual ones are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.course.task import Call, Exercise
from grader.verdict import Diagnosis

MOST_ELEMENTS = 1 << 17
"""The maximum number of elements of all inputs together. For most outputs, the reference is called at most 11 times.
"""
TILES = (1, 16, 32, 64, 128)
"""The numbers of keys per tile that are tried; 1 is a kernel that updates the maximum at every key."""
NEARLY = 0.1
"""The largest distance of rows that count as multiples of each other, relative to their norm."""


def recognize(
    exercise: Exercise, call: Call, name: str, actual: Any, is_right: Callable[[Any], bool]
) -> Diagnosis | None:
    """Return the mistake that explains the output ``name``; None if there is none.

    ``actual`` is the kernel's output, and ``is_right`` tells whether it equals a tensor at every element. In an
    exercise of the kind *debug* nothing is recognized, because finding the mistake is the learner's task there.
    """
    if exercise.kind == "debug" or "head_dim" not in call.dims or not actual.dim() or not actual.isfinite().all():
        return None
    if sum(tensor.numel() for tensor in call.tensors.values()) > MOST_ELEMENTS:
        return None
    # The sum of the weights determines only a factor of each row. An output that is no multiple of another one cannot
    # differ from it by the sums alone, so most outputs need only one call of the reference for each size of the tiles.
    divided_wrongly = _are_multiples(actual, exercise.expected(call)[name])
    for only_visible in (False, True):
        for tile in TILES:
            outputs = _with_mistake(exercise, call, "output_not_rescaled", tile, only_visible)
            if outputs is None:
                break
            if is_right(outputs[name]):
                return Diagnosis("output_not_rescaled", name=name)
            others = ["sum_not_rescaled"] if divided_wrongly else []
            others += ["nothing_rescaled"] if _are_multiples(actual, outputs[name]) else []
            for kind in others:
                outputs = _with_mistake(exercise, call, kind, tile, only_visible)
                if outputs is not None and is_right(outputs[name]):
                    return Diagnosis(kind, name=name)
    return None


def _are_multiples(actual: Any, wanted: Any) -> bool:
    """Return whether each row of an output is nearly a multiple of the same row of another one."""
    rows, others = actual.to(wanted.dtype), wanted
    power = (others * others).sum(dim=-1, keepdim=True)
    factor = (rows * others).sum(dim=-1, keepdim=True) / power.clamp(min=1e-300)
    return bool(((rows - factor * others).norm(dim=-1) <= NEARLY * rows.norm(dim=-1)).all())


def _with_mistake(exercise: Exercise, call: Call, kind: str, tile: int, only_visible: bool) -> dict[str, Any] | None:
    """Return the outputs of the reference with another softmax; None if no softmax has keys in several tiles.

    If ``only_visible`` is true, the tiles contain only visible keys, as in a kernel that begins at the first key of a
    sliding window. This matters if a hidden key precedes a visible one.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    found = []

    class WrongSoftmax(TorchFunctionMode):  # type: ignore[misc]
        """Replaces the softmax over the last axis of scores [..., keys]."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if function in (torch.softmax, torch.Tensor.softmax) and kwargs.get("dim", args[1:]) in (-1, (-1,)):
                scores = args[0]
                visible = scores > -torch.inf
                if scores.numel() and scores.shape[-1] > tile and not (only_visible and _are_first(visible)):
                    found.append(True)
                    return _weights(scores, visible, kind, tile, only_visible)
            return function(*args, **kwargs)

    with WrongSoftmax():
        outputs = exercise.outputs_of(exercise.reference, call)
    return outputs if found else None


def _are_first(visible: Any) -> bool:
    """Return whether no key that is hidden from a query precedes a visible one."""
    return bool((visible[..., 1:] <= visible[..., :-1]).all())


def _weights(scores: Any, visible: Any, kind: str, tile: int, only_visible: bool) -> Any:
    """Return the weights [..., keys] that the mistake gives the values. A row without a visible key is NaN."""
    import torch

    order = visible.cumsum(dim=-1) - 1 if only_visible else torch.arange(scores.shape[-1]).expand(scores.shape)
    tiles = (order // tile).contiguous()
    last = torch.searchsorted(tiles, tiles, right=True) - 1  # the last key of each key's tile
    largest = scores.cummax(dim=-1).values
    as_added = torch.where(visible, torch.exp(scores - largest.gather(-1, last)), 0.0)
    rescaled = torch.where(visible, torch.exp(scores - largest[..., -1:]), 0.0)
    output = rescaled if kind == "sum_not_rescaled" else as_added
    total = rescaled if kind == "output_not_rescaled" else as_added
    return output / total.sum(dim=-1, keepdim=True)
