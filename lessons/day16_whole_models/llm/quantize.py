"""Convert the linear layers of a model to int4: each weight to its nearest step, or by GPTQ with calibration texts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from llm.cache import PAGE_SIZE
from llm.int4 import Int4
from llm.model import Block, Model
from llm.operators import Operators
from llm.other_days import day

GROUP = 32
"""Neighboring weights along the inputs that share a scale and a zero point."""


class Recorder(Operators):
    """torch's operators, recording the inputs [tokens, in_features] of every linear layer by the ``id`` of its weight."""  # noqa: E501

    def __init__(self, device: str) -> None:
        super().__init__(device, use="torch")
        self.inputs: dict[int, Tensor] = {}

    def linear(self, x: Tensor, weight: Tensor | Int4, bias: Tensor | None = None) -> Tensor:
        self.inputs[id(weight)] = x
        return super().linear(x, weight, bias)

    def linear_gelu(self, x: Tensor, weight: Tensor | Int4, bias: Tensor) -> Tensor:
        self.inputs[id(weight)] = x
        return super().linear_gelu(x, weight, bias)

    def linear_parts(
        self,
        x: Tensor,
        weight: Tensor | Int4,
        bias: Tensor | None,
        sizes: tuple[int, ...],
        joined: bool = False,
    ) -> tuple[Tensor, ...]:
        self.inputs[id(weight)] = x
        return super().linear_parts(x, weight, bias, sizes, joined)


@torch.inference_mode()
def to_int4(model: Model, texts: Sequence[Sequence[int]] = (), group_size: int = GROUP) -> None:
    """Round every linear layer in the blocks of a f16 model to int4; the embedding and the output layer stay.

    Without ``texts``, each weight is rounded to its nearest step. With texts, each a list of tokens, day 11's GPTQ uses
    the inputs of a layer and adjusts the remaining weights to compensate for the rounding error. It proceeds block by
    block, so that every block sees the outputs of the quantized blocks before it.
    """
    own, recorder = model.operators, Recorder(model.operators.device)
    cache = model.new_cache(sum(len(text) + PAGE_SIZE for text in texts))
    batch = cache.append({cache.create(): list(text) for text in texts}) if texts else None
    model.operators = recorder
    try:
        x = recorder.embedding(model.table, batch.ids) if batch else None
        for i, block in enumerate(model.blocks):
            if batch is None or x is None:
                _round(block, {}, group_size)
                continue
            model.run_block(i, x, batch, cache)
            _round(block, recorder.inputs, group_size)
            x = model.run_block(i, x, batch, cache)
            recorder.inputs.clear()
    finally:
        model.operators = own


def _round(block: Block, inputs: dict[int, Tensor], group_size: int) -> None:
    """Replace the weights of one block, by GPTQ if its inputs are known."""
    gptq = day("day11_quantization", "gptq")
    for name, weight in list(block.items()):
        if not isinstance(weight, Tensor) or weight.dim() != 2:
            continue
        w, x = weight.T.cpu(), inputs.get(id(weight))
        q = gptq.round_to_nearest(w, group_size) if x is None else gptq.gptq(w, x.cpu(), group_size)
        parts = (part.to(weight.device) for part in (q.qweight, q.qzeros, q.scales, q.g_idx))
        block[name] = Int4(*parts, group_size)


@torch.inference_mode()
def mean_loss(model: Model, texts: Sequence[Sequence[int]]) -> float:
    """Return the mean loss of the next token in nats: 0 for certain predictions, log(vocabulary) for uniform ones."""
    states: list[Tensor] = []
    cache = model.new_cache(sum(len(text) + PAGE_SIZE for text in texts))
    batch = cache.append({cache.create(): list(text) for text in texts})
    model.forward(batch, cache, lambda _, x: states.append(x))
    logits = model.operators.linear(model.norm(states[-1], *model.norm_weights), model.output)
    known = torch.ones(len(logits), dtype=torch.bool, device=logits.device)
    known[batch.query_starts[1:].long() - 1] = False  # no token follows the last one of a text
    wanted = [token for text in texts for token in text[1:]]
    return float(torch.nn.functional.cross_entropy(logits[known].float(), torch.tensor(wanted, device=logits.device)))
