"""Tests of the fused residual addition inside transformers' GPT-NeoX.

They check its tokens, its trace, its switch, its arguments, and that a fault in its kernel is noticed.
"""

from __future__ import annotations

from typing import Any

import neox_residual
import pytest
import torch
from llm.fit import FusedResiduals
from llm.operators import Operators

TINY = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
LAYERS = 3


def model_of(parallel: bool) -> Any:
    return neox_residual.make(parallel, LAYERS, "cpu", torch.float32, **TINY)


@pytest.fixture
def ids() -> torch.Tensor:
    return torch.tensor([[3, 9, 27, 5]])


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.inference_mode():
        yield


@pytest.mark.parametrize("parallel", [True, False])
def test_our_addition_gives_the_same_tokens_and_is_called(parallel: bool, ids: torch.Tensor) -> None:
    model, operators = model_of(parallel), Operators()
    wanted, states = neox_residual.generate(model, ids, 4), neox_residual.hidden_states(model, ids)
    with FusedResiduals(model, operators) as fused:
        assert neox_residual.generate(model, ids, 4) == wanted
        calls = list(fused.calls)
        found = neox_residual.hidden_states(model, ids)
    assert [call.layer for call in calls] == list(range(LAYERS)) * 4
    assert {call.residual for call in calls} == {"parallel" if parallel else "serial"}
    assert [call.tokens for call in calls[::LAYERS]] == [4, 1, 1, 1], (
        "the passes after the first should see one token, because of the cache"
    )
    assert all(call.fused and call.cached for call in calls)
    name = "parallel_residual" if parallel else "residual_add"
    kernel = f"solutions/day01_residual_add/{name}.cu"
    assert dict(operators.calls) == {(name, kernel): (1 if parallel else 2) * LAYERS * 5}
    assert max(neox_residual.errors(states, found).values()) < 1e-5
    assert neox_residual.generate(model, ids, 4) == wanted and len(fused.calls) == LAYERS * 5, "it is undone"


def test_the_switch_and_the_format_of_the_output(ids: torch.Tensor) -> None:
    model, operators = model_of(parallel=True), Operators()
    wanted = model(ids, output_hidden_states=True, use_cache=True)
    with FusedResiduals(model, operators, enabled=False) as fused:
        off = model(ids, output_hidden_states=True, use_cache=True)
        assert not operators.calls and not any(call.fused for call in fused.calls)
        assert torch.equal(off.logits, wanted.logits), "without kernels, the logits should equal those of transformers"
        fused.enabled = True
        on = model(ids, output_hidden_states=True, use_cache=True)
    assert sum(operators.calls.values()) == LAYERS
    for found in (off, on):
        assert type(found) is type(wanted) and len(found.hidden_states) == LAYERS + 1
        assert found.past_key_values.get_seq_length() == ids.shape[1]
        assert [state.shape for state in found.hidden_states] == [state.shape for state in wanted.hidden_states]


def test_masks_and_positions_are_passed_on(ids: torch.Tensor) -> None:
    model, operators = model_of(parallel=True), Operators()
    options = {"attention_mask": torch.tensor([[0, 1, 1, 1]]), "position_ids": torch.tensor([[0, 0, 1, 2]])}
    wanted = model(ids, **options).logits
    assert not torch.allclose(wanted, model(ids).logits, atol=1e-6)
    with FusedResiduals(model, operators):
        assert torch.allclose(model(ids, **options).logits, wanted, atol=1e-6)


@pytest.mark.parametrize("parallel", [True, False])
def test_the_other_residual_is_wrong_from_the_first_layer_on(parallel: bool, ids: torch.Tensor) -> None:
    model = model_of(parallel)
    for layer in model.gpt_neox.layers:  # make the MLP's contribution large, as in a trained model
        layer.mlp.dense_4h_to_h.weight.mul_(50)
    states = neox_residual.hidden_states(model, ids)
    with FusedResiduals(model, Operators(), residual="serial" if parallel else "parallel"):
        found = neox_residual.errors(states, neox_residual.hidden_states(model, ids))
    assert found["0"] == 0 and found["1"] > 1e-3
    assert set(found) == {"0", "1"}, "only the listed layers that exist should have errors"


def test_the_record_is_only_of_the_whole_model(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.argv", ["neox_residual.py", "--record", "--layers", "2"])
    with pytest.raises(SystemExit):
        neox_residual.main()
    assert "leave --layers out" in capsys.readouterr().err
