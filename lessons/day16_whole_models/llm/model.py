"""The common part of both architectures: an embedding, blocks that each add to the stream, a norm, an output layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from llm.cache import Batch, PagedCache
from llm.config import Config
from llm.int4 import Int4
from llm.operators import Operators
from llm.tokenizer import Tokenizer

Block = dict[str, Tensor | Int4]
"""The weights of one block by name. A linear layer's weight is [out_features, in_features], or int4."""

Observe = Callable[[int, Tensor], None]
"""A callback that receives the number of a block (0: the embedding) and its output [tokens, C]."""


class Model:
    """A model of either architecture. Subclasses define the block."""

    prefix: str
    """The prefix of Hugging Face's names: "model" or "gpt_neox"."""

    def __init__(
        self, config: Config, tensors: dict[str, Tensor], operators: Operators, tokenizer: Tokenizer | None = None
    ) -> None:
        self.config, self.operators, self.tokenizer = config, operators, tokenizer
        self.table = tensors[self.embedding_name]
        self.output = self.table if config.tied else tensors["lm_head.weight"]
        self.norm_weights = self.final_norm(tensors)
        self.blocks: list[Block] = [self.block(tensors, i) for i in range(config.layers)]

    # Each architecture defines the following.

    embedding_name: str

    @classmethod
    def shapes(cls, config: Config) -> dict[str, tuple[int, ...]]:
        """Return every tensor that a checkpoint must have, by Hugging Face's names."""
        raise NotImplementedError

    def final_norm(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the weights of the last norm."""
        raise NotImplementedError

    def block(self, tensors: dict[str, Tensor], i: int) -> Block:
        """Return the weights of block i."""
        raise NotImplementedError

    def norm(self, x: Tensor, *weights: Tensor) -> Tensor:
        """Apply the norm of this architecture."""
        raise NotImplementedError

    def run_block(self, i: int, x: Tensor, batch: Batch, cache: PagedCache) -> Tensor:
        """Run a block: x [tokens, C] -> [tokens, C]."""
        raise NotImplementedError

    # Common to all architectures.

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of weights and activations."""
        return self.table.dtype

    @property
    def nbytes(self) -> int:
        """Return the size of all weights in bytes."""
        found = {self.table.data_ptr(): self.table, self.output.data_ptr(): self.output}
        return sum(
            t.nbytes
            for t in (*found.values(), *self.norm_weights, *(t for block in self.blocks for t in block.values()))
        )

    def new_cache(self, tokens: int) -> PagedCache:
        """Create a KV cache for this many tokens in total."""
        return PagedCache(self.config, tokens, self.dtype, self.operators.device)

    def forward(self, batch: Batch, cache: PagedCache, observe: Observe | None = None) -> Tensor:
        """Return the logits after the last token of each sequence: [sequences, vocabulary]."""
        op = self.operators
        x = op.embedding(self.table, batch.ids)
        if observe:
            observe(0, x)
        for i in range(self.config.layers):
            x = self.run_block(i, x, batch, cache)
            if observe:
                observe(i + 1, x)
        if len(x) > len(batch.last):
            x = op.embedding(x, batch.last)  # gather rows by index: the embedding kernel
        return op.linear(self.norm(x, *self.norm_weights), self.output)

    def attend(self, i: int, x: Tensor, batch: Batch, cache: PagedCache) -> Tensor:
        """Return the attention of block i before its output layer: x [tokens, C] (normed) -> [tokens, C]."""
        op, config, block = self.operators, self.config, self.blocks[i]
        tokens, d = len(x), config.head_dim
        heads = (config.heads, config.kv_heads, config.kv_heads)
        if tokens == 1:  # q and k are neighbors, and one kernel turns both
            heads = (config.heads + config.kv_heads, config.kv_heads)
        sizes = tuple(n * d for n in heads)
        *turned, v = op.linear_parts(x, block["qkv"], block.get("qkv_bias"), sizes, joined=True)
        turned = [op.rope(t.view(tokens, -1, d), batch.positions, config.rotary_dim, config.theta) for t in turned]
        q, k = turned if tokens > 1 else turned[0].split((config.heads, config.kv_heads), dim=1)
        v = v.view(tokens, config.kv_heads, d)
        op.kv_cache_append(k, v, batch.slots, cache.k[i], cache.v[i])
        out = op.attention(q, k, v, cache.k[i], cache.v[i], batch)
        return op.linear(out.view(tokens, config.heads * d), block["out"], block.get("out_bias"))
