"""A model that runs in a single launch gives the same results as one launch for each operator."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from llm import Operators, load, read_config
from persistent_decode import PersistentDecoder, pack
from safetensors.torch import load_file

from tests.models.conftest import PROMPT, TINY

NEW = 3


def decoder_of(name: str, dtype: torch.dtype, persistent: bool = True, **others: Any) -> PersistentDecoder:
    state = load_file(str(TINY[name] / "model.safetensors"))
    return PersistentDecoder(pack(read_config(TINY[name]), state, dtype, "cpu"), 32, persistent, **others)


@pytest.mark.parametrize(("name", "dtype"), [("qwen2", torch.bfloat16), ("neox", torch.float16)], ids=str)
def test_logits_and_tokens_are_those_of_the_operators(name: str, dtype: torch.dtype) -> None:
    exact = load(TINY[name], Operators(use="torch"), torch.float64)
    ids = exact.tokenizer.encode(PROMPT)[:5]
    decoder = decoder_of(name, dtype)
    made = decoder.generate(ids, NEW)
    cache = exact.new_cache(32)
    with torch.inference_mode():
        wanted = exact.forward(cache.append({cache.create(): ids + made[:-1]}), cache)[-1]
    error = float((decoder.logits.double() - wanted).abs().max() / wanted.abs().max())
    assert error < (0.004 if dtype == torch.float16 else 0.03)
    assert error > 1e-6, "without rounding errors, the model cannot have computed in 16 bits"
    assert made[-1] == int(decoder.logits.argmax())


def test_several_launches_give_the_same_bits() -> None:
    one, several = (decoder_of("neox", torch.float16, persistent) for persistent in (True, False))
    assert len(one.launches()) == 1 < len(several.launches())
    ids = [5, 71, 200]
    assert one.generate(ids, 2) == several.generate(ids, 2)
    assert torch.equal(one.logits, several.logits)


def test_a_text_that_operators_have_read() -> None:
    """The decoder continues with the cache of another program, whose pages are in another order."""
    ids, table = [5, 71, 200] * 6, torch.tensor([1, 0], dtype=torch.int32)
    alone = decoder_of("neox", torch.float16)
    wanted = alone.generate(ids, 2)
    model = load(TINY["neox"], Operators(), torch.float16)
    cache = model.new_cache(32)
    batch = cache.append({cache.create(): ids})
    with torch.inference_mode():
        first = int(model.forward(batch, cache).argmax())
    pages = batch.block_tables[0].long()
    moved = [torch.zeros_like(t) for t in (cache.k, cache.v)]
    for to, of in zip(moved, (cache.k, cache.v), strict=True):
        to[:, table.long()] = of[:, pages]
    decoder = decoder_of("neox", torch.float16, cache=(*moved, table))
    decoder.take_over([*ids, first])
    decoder.step()
    assert [first, int(decoder.tokens[len(ids) + 1])] == wanted
    assert float((decoder.logits - alone.logits).abs().max() / alone.logits.abs().max()) < 0.004


def test_a_cache_of_another_shape() -> None:
    cache = torch.zeros(3, 2, 2, 16, 16, dtype=torch.float16)
    with pytest.raises(ValueError, match=r"the cache has \(3, 2, 2, 16, 16\).* are needed"):
        decoder_of("neox", torch.float16, cache=(cache, cache, torch.arange(2, dtype=torch.int32)))


def test_a_serial_residual(theirs: Any) -> None:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    model = theirs("neox")
    config = GPTNeoXConfig(**model.config.to_dict() | {"use_parallel_residual": False})
    serial = GPTNeoXForCausalLM(config).eval()
    serial.load_state_dict(model.state_dict())
    ours = dataclasses.replace(read_config(TINY["neox"]), parallel_residual=False)
    decoder = PersistentDecoder(pack(ours, serial.state_dict(), torch.float16, "cpu"), 32)
    ids = [5, 71]
    decoder.generate(ids, 1)
    with torch.inference_mode():
        wanted = serial(torch.tensor([ids])).logits[0, -1]
    assert float((decoder.logits - wanted).abs().max() / wanted.abs().max()) < 0.004


def test_the_first_of_equal_logits_is_next() -> None:
    decoder = decoder_of("qwen2", torch.float16)
    phase = next(i for i, phase in enumerate(decoder.phases) if phase.output == 4)
    table = decoder.weights[decoder.phases[phase].weights :][: 384 * 64].view(384, 64)
    table.copy_(table[7:8].expand(384, 64).clone())
    assert decoder.generate([7], 1) == [0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"hidden": 3080}, "3080 wide"), ({"head_dim": 20}, "heads of 20"), ({"head_dim": 264}, "heads of 264")],
)
def test_a_model_that_does_not_fit_is_refused(changes: dict[str, int], says: str) -> None:
    config = dataclasses.replace(read_config(TINY["qwen2"]), **changes)
    table = {"model.embed_tokens.weight": torch.zeros(8, config.hidden)}
    with pytest.raises(ValueError, match=says):
        pack(config, table, torch.float16, "cpu")


def test_tokens_must_fit_the_cache() -> None:
    decoder = decoder_of("qwen2", torch.float16)
    for prompt, count in (([], 1), ([5] * 30, 3)):
        with pytest.raises(ValueError, match="room for 1 to 32"):
            decoder.generate(prompt, count)
