"""Compare the output of every block of a model with float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llm.model import Model


@dataclass(frozen=True)
class LayerError:
    """The difference between two tensors of one shape."""

    largest: float
    """The largest difference of two elements."""
    relative: float
    """The norm of the difference, divided by the norm of the exact values."""
    size: float
    """The largest exact value. Neighboring numbers near it differ by at most size / 1024 in f16, size / 128 in bf16."""


@torch.inference_mode()
def hidden_states(model: Model, ids: Sequence[int]) -> list[Tensor]:
    """Return [tokens, C] after the embedding and after every block, for one text."""
    cache = model.new_cache(len(ids))
    found: list[Tensor] = []
    model.forward(cache.append({cache.create(): list(ids)}), cache, lambda _, x: found.append(x.clone()))
    return found


def layer_errors(exact: Sequence[Tensor], found: Sequence[Tensor]) -> list[LayerError]:
    """Return the error of the output of every layer, compared with the exact outputs."""
    errors = []
    for wanted, got in zip(exact, found, strict=True):
        wanted, got = wanted.double().cpu(), got.double().cpu()
        difference = got - wanted
        relative = float(difference.norm() / wanted.norm())
        errors.append(LayerError(float(difference.abs().max()), relative, float(wanted.abs().max())))
    return errors
