"""Time one whole layer of a transformer in f16, with a kernel per operator and with the fused kernels of day 5.

Norm, QKV, RoPE, attention, projection, residual, norm, MLP with SwiGLU, residual: the layer of day 5's lesson, which
runs on the simulator there. ``operator_table.py`` times it on a GPU, each version as a CUDA graph, so that Python's
time is excluded.

- *unfused*: a kernel of days 1 to 4 per operator; the scores are stored, normalized, and read again.
- *fused*: day 5's kernels for norm and QKV, for scores and softmax, and for gate, up and SwiGLU. For a single token
  (*decode*) no scores are stored, so only norm and QKV are fused.
- *flash*: the same with day 12's attention, which stores no scores. For prompts only.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

EPS, THETA = 1e-5, 10000.0
REPEATS = 30
GOAL = 1.2
"""The required speed-up of the fused layer."""

FILES = {
    "residual_add": "day01_residual_add/residual_add",
    "rms_norm": "day02_reductions/rms_norm",
    "softmax": "day02_reductions/softmax",
    "rope": "day03_positions_and_gates/rope",
    "swiglu": "day03_positions_and_gates/swiglu",
    "linear_wmma": "day04_linear/linear_wmma",
    "linear_decode": "day04_linear/linear_decode",
    "rms_norm_linear": "day05_fusion/rms_norm_linear",
    "rms_norm_qkv": "day05_fusion/rms_norm_qkv",
    "linear_swiglu": "day05_fusion/linear_swiglu",
    "scores_softmax": "day05_fusion/scores_softmax",
    "gqa_decode": "day07_grouped_query_attention/gqa_decode",
    "kv_cache_append": "day10_paged_attention/kv_cache_append",
    "mma_flash_attention": "day12_tensor_cores_ampere/mma_flash_attention",
    "scores": "../lessons/day05_fusion/scores",
}
"""The solutions by the names of their launchers; the plain matmul of scores is from day 5's lesson."""

PROMPT = ("residual_add", "rms_norm", "softmax", "rope", "swiglu", "linear_wmma", "scores")
PROMPT_FUSED = ("rms_norm_linear", "linear_swiglu", "scores_softmax", "mma_flash_attention")
TOKEN = ("residual_add", "rms_norm", "rope", "swiglu", "linear_decode", "gqa_decode", "kv_cache_append", "rms_norm_qkv")

Launch = Callable[..., None]
"""A function that launches a kernel: launch(exercise, launcher, *arguments)."""


@dataclass(frozen=True)
class Layer:
    """The sizes and settings of a layer."""

    name: str
    tokens: int
    """1: a token of a decode, after ``keys - 1`` others; otherwise a prompt."""
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    wide: int
    """The width of the MLP."""
    keys: int = 0
    small: bool = False
    """True if the simulator runs it."""

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the layer that can be timed: unfused, fused, and flash for a prompt with wide heads."""
        flash = ("flash",) if self.tokens > 1 and self.head_dim >= 64 else ()
        return ("unfused", "fused", *flash)


LAYERS = (
    Layer("prompt, tiny", 40, 128, 2, 2, 64, 96, small=True),
    Layer("token, tiny", 1, 64, 4, 2, 32, 96, keys=20, small=True),
    Layer("prompt of 4096, a small model", 4096, 256, 4, 4, 64, 1024),
    Layer("prompt of 4096, 896 wide", 4096, 896, 14, 14, 64, 4864),
    Layer("prompt of 2048, 4096 wide", 2048, 4096, 32, 32, 128, 11008),
    Layer("token of Qwen2 0.5B", 1, 896, 14, 2, 64, 4864, keys=512),
    Layer("token of Qwen2 1.5B", 1, 1536, 12, 2, 128, 8960, keys=512),
)


def kernels(layer: Layer) -> set[str]:
    """Return the exercises whose solutions a layer needs."""
    names = TOKEN if layer.tokens == 1 else (*PROMPT, *PROMPT_FUSED)
    return {FILES[name] for name in names}


def weights(layer: Layer, device: str) -> dict[str, Tensor]:
    """Return random weights and inputs, scaled so that the size of activations is kept."""
    generator = torch.Generator(device).manual_seed(5)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(shape, generator=generator, device=device) * scale).half()

    c, q, kv = layer.hidden, layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim
    return {
        "x": normal(layer.tokens, c),
        "norm1": 1 + normal(c, scale=0.2),
        "norm2": 1 + normal(c, scale=0.2),
        "qkv": normal(q + 2 * kv, c, scale=c**-0.5),
        "bias": normal(q + 2 * kv, scale=0.1),
        "o": normal(c, q, scale=q**-0.5),
        "gate": normal(layer.wide, c, scale=c**-0.5),
        "up": normal(layer.wide, c, scale=c**-0.5),
        "down": normal(c, layer.wide, scale=layer.wide**-0.5),
        "k_cache": normal(1, layer.kv_heads, max(layer.keys, 1), layer.head_dim),
        "v_cache": normal(1, layer.kv_heads, max(layer.keys, 1), layer.head_dim),
    }


class Run:
    """The layer on one device: ``prompt`` or ``token`` computes its output, any number of times."""

    def __init__(self, layer: Layer, device: str, launch: Launch) -> None:
        self.layer, self.device = layer, device
        self.p = weights(layer, device)
        self.launches = 0
        self._launch = launch
        self._streams = [torch.cuda.Stream() for _ in range(layer.heads)] if device == "cuda" else []
        first = layer.keys - 1 if layer.tokens == 1 else 0
        self.positions = torch.arange(first, first + layer.tokens, dtype=torch.int32, device=device)
        self.starts = torch.tensor([0, layer.tokens], dtype=torch.int32, device=device)
        self.slots = torch.tensor([max(layer.keys, 1) - 1], device=device)
        self.lengths = torch.tensor([layer.keys], dtype=torch.int32, device=device)
        self.zeros = torch.zeros(max(layer.hidden, layer.wide, len(self.p["qkv"])), dtype=torch.float16, device=device)

    def __call__(self, how: str) -> Tensor:
        """Compute the layer's output [tokens, hidden] by one of its versions."""
        self.launches = 0
        return self.token(how) if self.layer.tokens == 1 else self.prompt(how)

    # ---------------------------------------------------------------------------------------------- operators

    def launch(self, name: str, *arguments: Any) -> None:
        """Launch one kernel. The launcher's name ends with the dtype, except for ``scores`` and ``scores_softmax``."""
        self.launches += 1
        plain = name in ("scores", "scores_softmax")
        self._launch(FILES[name], name if plain else f"{name}_f16", *arguments)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Apply a linear layer: x [tokens, in], weight [out, in] -> [tokens, out]."""
        out = x.new_empty(len(x), len(weight))
        sizes = len(x), x.shape[1], len(weight)
        if len(x) == 1:
            self.launch("linear_decode", x, weight, self.zeros if bias is None else bias, out, *sizes, bias is not None)
        else:
            self.launch("linear_wmma", x, weight, self.zeros if bias is None else bias, out, *sizes)
        return out

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Apply RMSNorm to x [tokens, hidden]."""
        out = torch.empty_like(x)
        self.launch("rms_norm", x, weight, out, *x.shape, EPS)
        return out

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + y."""
        out = torch.empty_like(x)
        self.launch("residual_add", x, y, out, x.numel())
        return out

    def rope(self, x: Tensor) -> Tensor:
        """Apply RoPE to x [tokens, heads, head_dim]."""
        out = torch.empty_like(x)
        self.launch("rope", x, self.positions, out, *x.shape, x.shape[2], THETA)
        return out

    def mlp(self, x: Tensor, fused: bool) -> Tensor:
        """Return x + MLP(norm(x)), with the second norm."""
        p, normed = self.p, self.norm(x, self.p["norm2"])
        inside = x.new_empty(len(x), self.layer.wide)
        if fused:
            self.launch("linear_swiglu", normed, p["gate"], p["up"], inside, *x.shape, self.layer.wide)
        else:
            gate, up = self.linear(normed, p["gate"]), self.linear(normed, p["up"])
            self.launch("swiglu", gate, up, inside, inside.numel())
        return self.add(x, self.linear(inside, p["down"]))

    # ------------------------------------------------------------------------------------------ the two layers

    def prompt(self, how: str) -> Tensor:
        """Compute all tokens at once, causal, with as many key heads as query heads, without biases, as on day 5."""
        p, tokens, heads, d = self.p, self.layer.tokens, self.layer.heads, self.layer.head_dim
        x, hidden = p["x"], self.layer.hidden
        if how == "unfused":
            qkv = self.linear(self.norm(x, p["norm1"]), p["qkv"])
        else:
            qkv = x.new_empty(tokens, len(p["qkv"]))
            self.launch("rms_norm_linear", x, p["norm1"], p["qkv"], qkv, tokens, hidden, len(p["qkv"]), EPS)
        size = heads * d
        turned = self.rope(qkv[:, : 2 * size].contiguous().view(tokens, 2 * heads, d))
        if how == "flash":
            q, k, v = (each.contiguous() for each in (turned[:, :heads], turned[:, heads:], qkv[:, 2 * size :]))
            attended, starts = x.new_empty(tokens, size), (self.starts, self.starts)
            sizes = 1, tokens, heads, heads, d, size, size
            self.launch("mma_flash_attention", q, k, v, *starts, attended, *sizes, d**-0.5, True)
        else:
            q, k = turned.view(tokens, 2, heads, d).permute(1, 2, 0, 3).contiguous()
            v = qkv[:, 2 * size :].view(tokens, heads, d).permute(1, 2, 0).contiguous()  # [heads, head_dim, tokens]
            shares = x.new_empty(heads, tokens, tokens)
            shape = 1, heads, tokens, tokens, d, d**-0.5, True
            if how == "fused":
                self.launch("scores_softmax", q, k, shares, *shape)
            else:
                scores = torch.empty_like(shares)
                self.launch("scores", q, k, scores, *shape)
                self.launch("softmax", scores, shares, heads * tokens, tokens)
            attended = torch.cat(self.side_by_side([lambda h=h: self.linear(shares[h], v[h]) for h in range(heads)]), 1)
        return self.mlp(self.add(x, self.linear(attended, p["o"])), fused=how != "unfused")

    def token(self, how: str) -> Tensor:
        """Compute one token whose keys and values go to the cache, with grouped queries and biases, as in Qwen2."""
        layer, p, x = self.layer, self.p, self.p["x"]
        d, heads, kv_heads = layer.head_dim, layer.heads, layer.kv_heads
        sizes = heads * d, kv_heads * d, kv_heads * d
        w, b = p["qkv"].split(sizes), p["bias"].split(sizes)
        if how == "unfused":
            normed = self.norm(x, p["norm1"])
            q, k, v = (self.linear(normed, *pair) for pair in zip(w, b))
        else:
            q, k, v = (x.new_empty(1, size) for size in sizes)
            self.launch("rms_norm_qkv", x, p["norm1"], *w, *b, q, k, v, 1, layer.hidden, sizes[0], sizes[1], EPS)
        q, k = self.rope(q.view(1, heads, d)), self.rope(k.view(1, kv_heads, d))
        caches = p["k_cache"], p["v_cache"]
        self.launch("kv_cache_append", k, v, self.slots, *caches, 1, kv_heads, d, 1, layer.keys)  # one page
        splits = min(16, -(-layer.keys // 64))
        out = x.new_empty(1, heads * d)
        partial = torch.empty(heads, splits, d, device=self.device), torch.empty(heads, splits, 2, device=self.device)
        many = 1, heads, kv_heads, layer.keys, d, splits, d**-0.5
        self.launch("gqa_decode", q, *caches, self.lengths, out, *partial, *many)
        return self.mlp(self.add(x, self.linear(out, p["o"])), fused=False)

    def side_by_side(self, functions: list[Callable[[], Tensor]]) -> list[Tensor]:
        """Run each function on its own stream, so that GEMMs that are too small to fill the GPU run together."""
        if not self._streams:
            return [function() for function in functions]
        now, results = torch.cuda.current_stream(), []
        for stream, function in zip(self._streams, functions):
            stream.wait_stream(now)
            with torch.cuda.stream(stream):
                results.append(function())
        for stream in self._streams:
            now.wait_stream(stream)
        return results


# ------------------------------------------------------------------------------------------------------- measurement


def exact(layer: Layer, p: dict[str, Tensor]) -> Tensor:
    """Compute the layer in float64 with torch: [tokens, hidden]."""
    p = {name: value.double() for name, value in p.items()}
    d, heads, kv_heads = layer.head_dim, layer.heads, layer.kv_heads
    device = p["x"].device

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight

    def turn(x: Tensor, positions: Tensor) -> Tensor:  # [heads, tokens, head_dim]
        steps = torch.arange(d // 2, device=device, dtype=torch.float64) / (d // 2)
        angle = positions.double()[:, None] * THETA**-steps
        first, second = x.chunk(2, dim=-1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    def by_head(x: Tensor, count: int) -> Tensor:
        return x.view(layer.tokens, count, d).transpose(0, 1)

    one = layer.tokens == 1
    y = norm(p["x"], p["norm1"]) @ p["qkv"].T + (p["bias"] if one else 0)
    q, k, v = y.split((heads * d, kv_heads * d, kv_heads * d), dim=1)
    positions = torch.arange(layer.tokens, device=device) + (layer.keys - 1 if one else 0)
    q, k, v = turn(by_head(q, heads), positions), turn(by_head(k, kv_heads), positions), by_head(v, kv_heads)
    if one:
        k, v = (torch.cat([cache[0, :, :-1], new], 1) for cache, new in ((p["k_cache"], k), (p["v_cache"], v)))
        k, v = (each.repeat_interleave(heads // kv_heads, 0) for each in (k, v))
    out = torch.cat(
        [
            torch.nn.functional.scaled_dot_product_attention(
                *(t[None, h : h + 1] for t in (q, k, v)), is_causal=not one
            )[0]
            for h in range(heads)
        ]
    )
    x = p["x"] + out.transpose(0, 1).reshape(layer.tokens, heads * d) @ p["o"].T
    y = norm(x, p["norm2"])
    return x + (torch.nn.functional.silu(y @ p["gate"].T) * (y @ p["up"].T)) @ p["down"].T


def graph_us(run: Callable[[], Any], flush: Tensor) -> float:
    """Return the median microseconds of a run as a CUDA graph; each run starts with a cold L2 cache."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for repeat in range(REPEATS + 3):
        flush.fill_(repeat)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[3:])


def measure(layer: Layer, device: str, launch: Launch) -> dict[str, Any]:
    """Return launches, error and, on a GPU, time of every version of a layer; or a ``problem``."""
    found: dict[str, Any] = {"name": layer.name, "versions": {}}
    try:
        run = Run(layer, device, launch)
        right = exact(layer, run.p)
        size = float(right.abs().max())
        flush = torch.empty(64 * 2**20, dtype=torch.int32, device=device) if device == "cuda" else None
        for how in layer.versions:
            error = float((run(how).double() - right).abs().max()) / size
            one: dict[str, Any] = {"launches": run.launches, "error": float(f"{error:.3g}")}
            if not error < 5e-3:
                raise ValueError(f"{how}: off by {error:.2g} of the largest value")
            if flush is not None:
                one["us"] = round(graph_us(lambda how=how: run(how), flush), 2)  # type: ignore[misc]
            found["versions"][how] = one
        if flush is not None:
            unfused = found["versions"]["unfused"]["us"]
            for one in found["versions"].values():
                one["times_as_fast"] = round(unfused / one["us"], 3)
    except Exception as problem:  # the other layers can still be timed
        found["problem"] = f"{type(problem).__name__}: {(str(problem).strip() or 'no message').splitlines()[0][:200]}"
    return found


def line_of(found: dict[str, Any]) -> str:
    """Format a layer as one line."""
    parts = [f"{found['name']:30}"]
    for how, one in found["versions"].items():
        time = f"{one['us']:.1f} us, {one['times_as_fast']:.2f} x, " if "us" in one else ""
        parts.append(f"{how} {time}{one['launches']} launches, error {one['error']:.1e}")
    if "problem" in found:
        parts.append(found["problem"])
    return "; ".join(parts)
