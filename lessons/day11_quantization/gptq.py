"""GPTQ's int4 format, and two quantizers: round to nearest, and GPTQ itself (Frantar et al. 2022, arXiv 2210.17323).

A layer is w [in_features, out_features]; K and N below. Every column has, for each group of `group_size` neighbors
along K, a scale and a zero: w is about (q - zero) * scale, q is 0 ... 15 and zero 1 ... 16.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def pack(nibbles: Tensor, dim: int) -> Tensor:
    """Pack eight neighbors along an axis, numbers 0 ... 15, into one int32, the first in the lowest four bits."""
    words = nibbles.long().unflatten(dim, (-1, 8))
    shifts = 4 * torch.arange(8)
    words = (words << (shifts[:, None] if dim == 0 else shifts)).sum(dim=dim + 1)
    return words.to(torch.int32)  # 2^31 and more become negative: the same 32 bits


def unpack(words: Tensor, dim: int) -> Tensor:
    """Undo ``pack``: return int64 numbers 0 ... 15; the axis becomes eight times as long."""
    shifts = 4 * torch.arange(8)
    return (words.long().unsqueeze(dim + 1) >> (shifts[:, None] if dim == 0 else shifts) & 15).flatten(dim, dim + 1)


@dataclass
class Quantized:
    """A layer as in GPTQ's checkpoints."""

    qweight: Tensor
    """int32 [K / 8, N]: q packed along K."""
    qzeros: Tensor
    """int32 [groups, N / 8]: zero - 1, packed along N."""
    scales: Tensor
    """f16 [groups, N]: the size of a step."""
    g_idx: Tensor
    """int32 [K]: the group of each k."""

    def dequantize(self) -> Tensor:
        """Return w [K, N] in float64."""
        group = self.g_idx.long()
        zeros = unpack(self.qzeros, 1) + 1
        return (unpack(self.qweight, 0) - zeros[group]) * self.scales.double()[group]

    def bytes(self) -> int:
        """Return the bytes that a kernel must read."""
        return sum(t.numel() * t.element_size() for t in (self.qweight, self.qzeros, self.scales))


def grid(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return scale and zero of each column of rows [k, N]. The 16 values of a column span its weights and 0."""
    low, high = rows.amin(dim=0).clamp(max=0), rows.amax(dim=0).clamp(min=0)
    scale = ((high - low) / 15).clamp(min=1e-8).half().double().clamp(min=1e-7)
    return scale, (-low / scale).round().clamp(1, 16)


def nearest(row: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """Return the q whose (q - zero) * scale is nearest."""
    return (row / scale + zero).round().clamp(0, 15)


def _packed(q: Tensor, scales: list[Tensor], zeros: list[Tensor], g_idx: Tensor) -> Quantized:
    return Quantized(pack(q, 0), pack(torch.stack(zeros) - 1, 1), torch.stack(scales).half(), g_idx.to(torch.int32))


def round_to_nearest(w: Tensor, group_size: int) -> Quantized:
    """Round each weight to the nearest step of its group's grid."""
    w = w.double()
    q, scales, zeros = torch.empty_like(w), [], []
    for first in range(0, w.shape[0], group_size):
        rows = w[first : first + group_size]
        scale, zero = grid(rows)
        q[first : first + group_size] = nearest(rows, scale, zero)
        scales.append(scale)
        zeros.append(zero)
    return _packed(q, scales, zeros, torch.arange(w.shape[0]) // group_size)


def gptq(w: Tensor, x: Tensor, group_size: int, act_order: bool = False, damping: float = 0.01) -> Quantized:
    """Round one k after another, and let the weights that are not rounded yet compensate each error.

    The squared error of the outputs is d^T H d for an error d of a column, with the Hessian H = x^T x.

    Args:
        w: [K, N], the weights.
        x: [samples, K], inputs of the layer.
        group_size: the number of neighbors along K that share a scale and a zero.
        act_order: round the k with the largest inputs first, and form groups in that order.
        damping: a share of the diagonal's mean that is added to the diagonal, so that H has an inverse.
    """
    w, x = w.double().clone(), x.double()
    hessian = x.T @ x
    hessian += damping * hessian.diagonal().mean() * torch.eye(len(hessian), dtype=torch.float64)
    order = hessian.diagonal().argsort(descending=True) if act_order else torch.arange(len(hessian))
    w, hessian = w[order], hessian[order][:, order]
    # Row k of this factor, divided by its diagonal element, tells how later rows best compensate an error at k.
    factor = torch.linalg.cholesky(torch.linalg.inv(hessian), upper=True)
    q, scales, zeros = torch.empty_like(w), [], []
    for k in range(len(w)):
        if k % group_size == 0:
            scale, zero = grid(w[k : k + group_size])  # of the weights after all corrections so far
            scales.append(scale)
            zeros.append(zero)
        q[k] = nearest(w[k], scales[-1], zeros[-1])
        error = (w[k] - (q[k] - zeros[-1]) * scales[-1]) / factor[k, k]
        w[k + 1 :] -= factor[k, k + 1 :, None] * error
    back = order.argsort()
    return _packed(q[back], scales, zeros, (torch.arange(len(w)) // group_size)[back])


def output_error(w: Tensor, approximate: Tensor, x: Tensor) -> float:
    """Return |x w - x approximate| / |x w|."""
    exact = x.double() @ w.double()
    return float((exact - x.double() @ approximate.double()).norm() / exact.norm())
