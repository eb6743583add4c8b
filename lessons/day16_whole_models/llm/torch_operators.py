"""Every operator in a few lines of torch: the reference for kernels, and the fallback where there is none.

They have the same arguments and results as the kernels. In float16 and bfloat16 they round where torch rounds. In
float64 they compute the exact values from which the lesson counts each layer's error.
"""

from __future__ import annotations

import torch
from torch import Tensor


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the type of statistics and angles: at least float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def embedding(table: Tensor, ids: Tensor) -> Tensor:
    """Return rows of table [vocabulary, C] for ids [tokens]: [tokens, C]."""
    return table[ids]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Apply RMSNorm: x [tokens, C], weight [C] -> [tokens, C]."""
    y = x.to(wide(x.dtype))
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Apply LayerNorm: x [tokens, C], weight and bias [C] -> [tokens, C]."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply a linear layer: x [tokens, in], weight [out, in], bias [out] -> [tokens, out]."""
    return torch.nn.functional.linear(x, weight, bias)


def add_bias(x: Tensor, bias: Tensor, gelu: bool) -> Tensor:
    """Return x [tokens, C] + bias [C], after GELU if requested."""
    return torch.nn.functional.gelu(x + bias) if gelu else x + bias


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return gelu(linear(x))."""
    return gelu(linear(x, weight, bias))


def rope(x: Tensor, positions: Tensor, rotary_dim: int, theta: float) -> Tensor:
    """Apply RoPE to x [tokens, heads, head_dim]. Channels i and i + rotary_dim / 2 of a head are a pair."""
    half = rotary_dim // 2
    kind = wide(x.dtype)
    steps = torch.arange(half, device=x.device, dtype=torch.float64) * (2.0 / rotary_dim)
    angles = positions.double()[:, None, None] * theta**-steps
    cos, sin = angles.cos().to(kind), angles.sin().to(kind)
    a, b, rest = x.to(kind).split([half, half, x.shape[-1] - rotary_dim], dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1).to(x.dtype)


def kv_cache_append(k: Tensor, v: Tensor, slots: Tensor, k_cache: Tensor, v_cache: Tensor) -> None:
    """Write k, v [tokens, kv_heads, head_dim] to slots [tokens] of caches [pages, kv_heads, page_size, head_dim]."""
    page_size = k_cache.shape[2]
    page, row = slots // page_size, slots % page_size
    k_cache[page, :, row] = k
    v_cache[page, :, row] = v


def attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    lengths: Tensor,
    query_starts: Tensor,
    scale: float,
) -> Tensor:
    """Return attention of q [tokens, heads, head_dim] over each sequence's pages; its last query sees all its keys."""
    out = torch.empty_like(q)
    starts, page_size = query_starts.tolist(), k_cache.shape[2]
    for b, length in enumerate(lengths.tolist()):
        pages = block_tables[b, : -(-length // page_size)].long()
        k, v = (
            cache[pages].transpose(0, 1).reshape(cache.shape[1], -1, cache.shape[3])[:, :length]
            for cache in (k_cache, v_cache)
        )
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[0], dim=0) for x in (k, v))
        queries = q[starts[b] : starts[b + 1]].transpose(0, 1)
        n = queries.shape[1]
        hidden = torch.ones(n, length, dtype=torch.bool, device=q.device).triu(length - n + 1)
        scores = (queries @ k.transpose(-1, -2) * scale).masked_fill(hidden, -torch.inf)
        weights = scores.to(wide(q.dtype)).softmax(-1).to(q.dtype)
        out[starts[b] : starts[b + 1]] = (weights @ v).transpose(0, 1)
    return out


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return silu(gate) * up."""
    return torch.nn.functional.silu(gate) * up


def gelu(x: Tensor) -> Tensor:
    """Return the exact GELU, x P(Z <= x) with Z normal."""
    return torch.nn.functional.gelu(x)


def residual_add(x: Tensor, y: Tensor) -> Tensor:
    """Return x + y."""
    return x + y


def parallel_residual(x: Tensor, attention: Tensor, mlp: Tensor) -> Tensor:
    """Return x + attention + mlp."""
    return mlp + attention + x


def argmax(logits: Tensor) -> Tensor:
    """Return the index of the largest logit: logits [rows, vocabulary] -> int32 [rows]."""
    return logits.argmax(-1).int()
