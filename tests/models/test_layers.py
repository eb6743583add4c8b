"""In f16 and bf16, the errors of each layer (relative to float64) are similar to those of Hugging Face's layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from llm import Operators, load
from llm.layers import hidden_states, layer_errors

from tests.models.conftest import PROMPT, TINY


@pytest.mark.parametrize("name", TINY)
def test_float32_layers_agree_with_transformers(name: str, theirs: Any) -> None:
    model = load(TINY[name], Operators(use="torch"))
    ids = model.tokenizer.encode(PROMPT)
    ours = hidden_states(model, ids)
    with torch.inference_mode():
        states = theirs(name)(torch.tensor([ids]), output_hidden_states=True).hidden_states
    assert len(ours) == model.config.layers + 1 == len(states)
    # Skip the last state, which transformers normalizes.
    for i, (mine, wanted) in enumerate(zip(ours[:-1], states[:-1])):
        assert torch.allclose(mine, wanted[0], atol=1e-4, rtol=1e-4), i


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_errors_are_like_those_of_transformers(name: str, dtype: torch.dtype, theirs: Any) -> None:
    ids = load(TINY[name], Operators(use="torch")).tokenizer.encode(PROMPT)
    exact = hidden_states(load(TINY[name], Operators(use="torch"), torch.float64), ids)
    ours = layer_errors(exact, hidden_states(load(TINY[name], Operators(), dtype), ids))
    with torch.inference_mode():
        states = theirs(name, dtype)(torch.tensor([ids]), output_hidden_states=True).hidden_states
    wanted = layer_errors(exact[:-1], [state[0] for state in states[:-1]])
    assert ours[0].largest == wanted[0].largest, "an embedding copies rounded weights, so its errors must be equal"
    for mine, other in zip(ours[1:-1], wanted[1:]):
        assert 0 < mine.largest < 2.5 * other.largest
    assert ours[-1].largest > ours[1].largest, "errors add up"


def test_a_wrong_residual_shows_at_the_first_layer() -> None:
    """Use the wrong kind of residual connection, and check that errors are large from layer 1 on."""
    import dataclasses

    exact = load(TINY["neox"], Operators(use="torch"), torch.float64)
    ids = exact.tokenizer.encode(PROMPT)
    right = hidden_states(exact, ids)
    exact.config = dataclasses.replace(exact.config, parallel_residual=False)
    errors = layer_errors(right, hidden_states(exact, ids))
    assert errors[0].largest == 0
    assert all(error.relative > 0.05 for error in errors[1:])
