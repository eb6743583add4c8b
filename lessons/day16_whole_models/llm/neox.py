"""GPT-NeoX, as Pythia uses it.

LayerNorm, biases everywhere, GELU, RoPE on a part of each head, and one of two residuals.

    parallel:   x = x + attention(norm_1(x)) + mlp(norm_2(x))          mlp(y) = down(gelu(up(y)))
    serial:     x = x + attention(norm_1(x));   x = x + mlp(norm_2(x))

use_parallel_residual in config.json selects it. The weights have the same names and shapes in both.
"""

from __future__ import annotations

from torch import Tensor

from llm.cache import Batch, PagedCache
from llm.config import Config
from llm.model import Block, Model


class NeoX(Model):
    """Hugging Face's GPTNeoXForCausalLM."""

    embedding_name = "gpt_neox.embed_in.weight"

    @classmethod
    def shapes(cls, config: Config) -> dict[str, tuple[int, ...]]:
        c, f = config.hidden, config.feed_forward
        last = "gpt_neox.final_layer_norm"
        found: dict[str, tuple[int, ...]] = {cls.embedding_name: (config.vocabulary, c)}
        found |= {f"{last}.weight": (c,), f"{last}.bias": (c,)}
        if not config.tied:
            found["lm_head.weight"] = (config.vocabulary, c)
        for i in range(config.layers):
            layer = f"gpt_neox.layers.{i}"
            for norm in ("input_layernorm", "post_attention_layernorm"):
                found |= {f"{layer}.{norm}.weight": (c,), f"{layer}.{norm}.bias": (c,)}
            products = {"attention.query_key_value": (3 * c, c), "attention.dense": (c, c)}
            products |= {"mlp.dense_h_to_4h": (f, c), "mlp.dense_4h_to_h": (c, f)}
            for name, shape in products.items():
                found[f"{layer}.{name}.weight"] = shape
                if config.attention_bias or name.startswith("mlp"):
                    found[f"{layer}.{name}.bias"] = shape[:1]
        return found

    def final_norm(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        last = "gpt_neox.final_layer_norm"
        return tensors[f"{last}.weight"], tensors[f"{last}.bias"]

    def block(self, tensors: dict[str, Tensor], i: int) -> Block:
        names = {"norm_1": "input_layernorm", "norm_2": "post_attention_layernorm"}
        names |= {"qkv": "attention.query_key_value", "out": "attention.dense"}
        names |= {"up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"}
        found: Block = {}
        for ours, theirs in names.items():
            for part, ending in (("weight", ""), ("bias", "_bias")):
                tensor = tensors.pop(f"gpt_neox.layers.{i}.{theirs}.{part}", None)
                if tensor is not None:
                    found[ours + ending] = self.by_kind(tensor) if ours == "qkv" else tensor
        return found

    def by_kind(self, rows: Tensor) -> Tensor:
        """Reorder the rows of query_key_value from [heads, 3, head_dim] to all of q, then k, then v."""
        apart = rows.view(self.config.heads, 3, self.config.head_dim, *rows.shape[1:])
        return apart.transpose(0, 1).reshape(rows.shape).contiguous()

    def norm(self, x: Tensor, *weights: Tensor) -> Tensor:
        return self.operators.layer_norm(x, *weights, self.config.eps)

    def run_block(self, i: int, x: Tensor, batch: Batch, cache: PagedCache) -> Tensor:
        op, block = self.operators, self.blocks[i]
        attention = self.attend(i, self.norm(x, block["norm_1"], block["norm_1_bias"]), batch, cache)
        if self.config.parallel_residual:
            return op.parallel_residual(x, attention, self.mlp(block, x))
        x = op.residual_add(x, attention)
        return op.residual_add(x, self.mlp(block, x))

    def mlp(self, block: Block, x: Tensor) -> Tensor:
        """Run the MLP with its norm: x [tokens, C] -> [tokens, C]."""
        op = self.operators
        y = self.norm(x, block["norm_2"], block["norm_2_bias"])
        y = op.linear_gelu(y, block["up"], block["up_bias"])
        return op.linear(y, block["down"], block["down_bias"])
