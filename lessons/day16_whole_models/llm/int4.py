"""Layers with int4 weights in GPTQ's format, for the kernels of day 11."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from llm.other_days import day


@dataclass(frozen=True)
class Int4:
    """A layer's weight. Shapes as on day 11; K is in_features, N is out_features."""

    qweight: Tensor
    """i32 [K / 8, N]: eight weights per word, along K."""
    qzeros: Tensor
    """i32 [K / group_size, N / 8]: eight zeros per word, along N."""
    scales: Tensor
    """f16 [K / group_size, N]: the step of each group."""
    g_idx: Tensor
    """i32 [K]: the group of each k."""
    group_size: int

    @property
    def out_features(self) -> int:
        """Return N."""
        return self.qweight.shape[1]

    @property
    def nbytes(self) -> int:
        """Return the size of all parts in bytes."""
        return sum(t.nbytes for t in (self.qweight, self.qzeros, self.scales, self.g_idx))

    def finished(self) -> Tensor:
        """Return the dequantized weight [N, K] in float64."""
        layer = day("day11_quantization", "gptq").Quantized(self.qweight, self.qzeros, self.scales, self.g_idx)
        return layer.dequantize().T.contiguous()
