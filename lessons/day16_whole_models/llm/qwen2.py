"""Qwen2: RMSNorm, biases at q, k and v only, SwiGLU, and a serial residual.

x = x + attention(norm(x))
x = x + mlp(norm(x))            mlp(y) = down(silu(gate(y)) * up(y))
"""

from __future__ import annotations

import torch
from torch import Tensor

from llm.cache import Batch, PagedCache
from llm.config import Config
from llm.model import Block, Model


class Qwen2(Model):
    """Hugging Face's Qwen2ForCausalLM."""

    embedding_name = "model.embed_tokens.weight"

    @classmethod
    def shapes(cls, config: Config) -> dict[str, tuple[int, ...]]:
        c, f, d = config.hidden, config.feed_forward, config.head_dim
        q, kv = config.heads * d, config.kv_heads * d
        found: dict[str, tuple[int, ...]] = {cls.embedding_name: (config.vocabulary, c), "model.norm.weight": (c,)}
        if not config.tied:
            found["lm_head.weight"] = (config.vocabulary, c)
        for i in range(config.layers):
            layer = f"model.layers.{i}"
            found |= {f"{layer}.input_layernorm.weight": (c,), f"{layer}.post_attention_layernorm.weight": (c,)}
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                found[f"{layer}.self_attn.{name}_proj.weight"] = (size, c)
                found[f"{layer}.self_attn.{name}_proj.bias"] = (size,)
            found[f"{layer}.self_attn.o_proj.weight"] = (c, q)
            found |= {f"{layer}.mlp.gate_proj.weight": (f, c), f"{layer}.mlp.up_proj.weight": (f, c)}
            found[f"{layer}.mlp.down_proj.weight"] = (c, f)
        return found

    def final_norm(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return (tensors["model.norm.weight"],)

    def block(self, tensors: dict[str, Tensor], i: int) -> Block:
        def take(name: str) -> Tensor:
            return tensors.pop(f"model.layers.{i}.{name}")

        qkv = [f"self_attn.{name}_proj" for name in "qkv"]
        return {
            "norm_1": take("input_layernorm.weight"),
            "qkv": torch.cat([take(f"{name}.weight") for name in qkv]),
            "qkv_bias": torch.cat([take(f"{name}.bias") for name in qkv]),
            "out": take("self_attn.o_proj.weight"),
            "norm_2": take("post_attention_layernorm.weight"),
            "gate_up": torch.cat([take("mlp.gate_proj.weight"), take("mlp.up_proj.weight")]),
            "down": take("mlp.down_proj.weight"),
        }

    def norm(self, x: Tensor, *weights: Tensor) -> Tensor:
        return self.operators.rms_norm(x, weights[0], self.config.eps)

    def run_block(self, i: int, x: Tensor, batch: Batch, cache: PagedCache) -> Tensor:
        op, block, f = self.operators, self.blocks[i], self.config.feed_forward
        x = op.residual_add(x, self.attend(i, self.norm(x, block["norm_1"]), batch, cache))
        gate, up = op.linear_parts(self.norm(x, block["norm_2"]), block["gate_up"], None, (f, f))
        return op.residual_add(x, op.linear(op.swiglu(gate, up), block["down"]))
