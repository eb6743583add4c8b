"""Layers whose weights are int4 in GPTQ's format, for the kernels of day 11."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from llm.other_days import day

if TYPE_CHECKING:
    from llm.model import Model

GROUP = 32


@dataclass(frozen=True)
class Int4:
    """A layer's weight. Shapes as day 11's; K is in_features, N out_features."""

    qweight: Tensor
    """i32 [K / 8, N]"""
    qzeros: Tensor
    """i32 [K / group_size, N / 8]"""
    scales: Tensor
    """f16 [K / group_size, N]"""
    g_idx: Tensor
    """i32 [K]"""
    group_size: int

    @property
    def out_features(self) -> int:
        """N"""
        return self.qweight.shape[1]

    @property
    def nbytes(self) -> int:
        """Of all parts."""
        return sum(t.nbytes for t in (self.qweight, self.qzeros, self.scales, self.g_idx))

    def finished(self) -> Tensor:
        """The weight [N, K] in float64."""
        layer = day("day11_quantisation", "gptq").Quantized(self.qweight, self.qzeros, self.scales, self.g_idx)
        return layer.dequantize().T.contiguous()


def to_int4(model: Model, group_size: int = GROUP) -> None:
    """Rounds every linear layer inside the blocks of a f16 model to int4, each weight to the nearest step.

    The embedding and the output layer stay, as GPTQ's checkpoints leave them. (GPTQ itself would need inputs of every layer;
    day 11 has it.)
    """
    quantise = day("day11_quantisation", "gptq").round_to_nearest
    for block in model.blocks:
        for name, weight in list(block.items()):
            if isinstance(weight, Tensor) and weight.dim() == 2:
                q = quantise(weight.T.cpu(), group_size)
                parts = (part.to(weight.device) for part in (q.qweight, q.qzeros, q.scales, q.g_idx))
                block[name] = Int4(*parts, group_size)
