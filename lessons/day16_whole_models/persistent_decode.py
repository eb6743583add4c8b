"""Pack a whole model as a list of phases for persistent_decode.cu: one launch reads a token and writes the next one.

The weights of a Qwen2 or a GPT-NeoX go into one tensor, in the order in which a token uses them. Rows that an output
needs together become neighbors: the two numbers that a rotation combines, a gate and its up. The kernel's work on them
is a table of numbers, one row per phase.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from llm.config import Config
from torch import Tensor

from grader import load_kernel

KERNEL = Path(__file__).with_name("persistent_decode.cu")
EMBED, LINEAR, ATTENTION, ADVANCE = range(4)
RMS_NORM_OF_X, LAYER_NORM_OF_X, ATTENDED, HIDDEN = range(4)
QUERY_KEY_VALUE, ADD_TO_X, GELU, GATE_UP, LOGITS = range(5)
WARPS, READERS, MOST_SLOTS, MOST_HEAD = 8, 160, 16, 256
STATIC_BYTES, WORK_BYTES = 4 * 1024, 80
WARP_COLUMNS, MOST_WIDTH = 5 * 32 * 8, 4 * 4 * READERS
"""The largest part of a row that a warp can multiply, in columns, and the widest row that a block can normalize."""
FLYING = 45 * 1024
"""Bytes of weights in flight per SM, approximately. More requests only queue up, and delay all other loads."""


@dataclass
class Phase:
    """One phase in the list of phases; ``struct Phase`` in the kernel file explains the names."""

    kind: int
    weights: int = 0
    rows: int = 0
    columns: int = 0
    row_group: int = 1
    input: int = 0
    output: int = 0
    norm: int = -1
    norm_bias: int = -1
    bias: int = -1
    layer: int = 0
    splits: int = 1
    shift: int = 0
    source: int = 0
    publishes: bool = True

    def numbers(self) -> list[int]:
        return [int(value) for value in vars(self).values()]


class Packing:
    """A builder that collects matrices, vectors, and the phases that use them."""

    def __init__(self, config: Config, dtype: torch.dtype, device: str) -> None:
        if config.head_dim % 8 or config.head_dim > MOST_HEAD:
            raise ValueError(f"heads of {config.head_dim}: the kernel takes multiples of 8 up to {MOST_HEAD}")
        self.config, self.dtype, self.device = config, dtype, device
        self.matrices: list[Tensor] = []
        self.vectors: list[Tensor] = []
        self.used = self.used_parameters = 0
        self.phases: list[Phase] = []
        self.x = self.hidden = self.attended = 0
        """The phases that last published x, the MLP's inner values, and the attention."""

    def matrix(self, values: Tensor) -> int:
        """Add a matrix and return its offset."""
        at = self.used
        self.matrices.append(values.to(self.device, self.dtype).reshape(-1))
        self.used += values.numel()
        if values.shape[-1] % 8:
            raise ValueError(f"a matrix has {values.shape[-1]} columns: the kernel copies rows of multiples of 8")
        return at

    def vector(self, values: Tensor | None) -> int:
        if values is None:
            return -1
        at = self.used_parameters
        self.vectors.append(values.to(self.device, torch.float32).reshape(-1))
        self.used_parameters += values.numel()
        return at

    def linear(self, weights: Tensor, input: int, output: int, **others: Any) -> None:
        """Add a phase that multiplies by ``weights`` [rows, columns]."""
        rows, columns = weights.shape
        splits = next((n for n in (1, 2, 4, 8) if columns <= n * WARP_COLUMNS), 0)
        if not splits:
            raise ValueError(f"a matrix has {columns} columns: the kernel takes {WARP_COLUMNS * WARPS} at most")
        row_group = {GATE_UP: 4, LOGITS: 1}.get(output, 2)
        if rows % row_group:
            raise ValueError(f"a matrix has {rows} rows: a multiple of {row_group} is needed there")
        shift = 0 if output == ADD_TO_X else len(self.phases) * 17
        wanted = {RMS_NORM_OF_X: self.x, LAYER_NORM_OF_X: self.x, ATTENDED: self.attended, HIDDEN: self.hidden}
        phase = Phase(LINEAR, self.matrix(weights), rows, columns, row_group, input, output, splits=splits, shift=shift)
        phase.source = wanted[input]
        self.phases.append(phase)
        for name, value in others.items():
            setattr(phase, name, value)
        here = len(self.phases) - 1
        if output == ADD_TO_X and phase.publishes:
            self.x = here
        elif output in (GELU, GATE_UP):
            self.hidden = here

    def embed(self, table: Tensor) -> None:
        """Add the first phase: x is a row of the table [vocabulary, width]."""
        width = self.config.hidden
        if width > MOST_WIDTH:
            raise ValueError(f"the model is {width} wide: the kernel takes {MOST_WIDTH} at most")
        self.phases.append(Phase(EMBED, self.matrix(table), rows=width, row_group=2))

    def attention(self, layer: int) -> None:
        """Add attention to the queries, keys and values of the latest phase that computes them."""
        source = max(
            i for i, phase in enumerate(self.phases) if phase.kind == LINEAR and phase.output == QUERY_KEY_VALUE
        )
        self.phases.append(Phase(ATTENTION, layer=layer, source=source))
        self.attended = len(self.phases) - 1

    def pairs(self, rows: Tensor) -> Tensor:
        """Reorder rows of heads [heads * head_dim, ...]: columns p and p + rotary / 2 of a head become neighbors."""
        half, dim = self.config.rotary_dim // 2, self.config.head_dim
        order = [at for p in range(half) for at in (p, p + half)] + list(range(2 * half, dim))
        return rows.reshape(-1, dim, *rows.shape[1:])[:, order].reshape(rows.shape)


def pack(config: Config, state: Mapping[str, Tensor], dtype: torch.dtype, device: str) -> Packing:
    """Return the phases of a model from its configuration and the tensors of its checkpoint."""
    packing = Packing(config, dtype, device)
    {"qwen2": _qwen2, "gpt_neox": _gpt_neox}[config.architecture](packing, state)
    packing.phases.append(Phase(ADVANCE))
    return packing


def _qwen2(pack: Packing, state: Mapping[str, Tensor]) -> None:
    pack.embed(state["model.embed_tokens.weight"])
    for layer in range(pack.config.layers):
        one = f"model.layers.{layer}."
        names = [f"{one}self_attn.{name}_proj" for name in "qkv"]
        pack.linear(
            pack.pairs(torch.cat([state[f"{name}.weight"] for name in names])),
            RMS_NORM_OF_X,
            QUERY_KEY_VALUE,
            layer=layer,
            norm=pack.vector(state[f"{one}input_layernorm.weight"]),
            bias=pack.vector(pack.pairs(torch.cat([state[f"{name}.bias"] for name in names]))),
        )
        pack.attention(layer)
        pack.linear(state[f"{one}self_attn.o_proj.weight"], ATTENDED, ADD_TO_X)
        gate, up = state[f"{one}mlp.gate_proj.weight"], state[f"{one}mlp.up_proj.weight"]
        pack.linear(
            torch.stack([gate, up], dim=1).reshape(-1, pack.config.hidden),
            RMS_NORM_OF_X,
            GATE_UP,
            norm=pack.vector(state[f"{one}post_attention_layernorm.weight"]),
        )
        pack.linear(state[f"{one}mlp.down_proj.weight"], HIDDEN, ADD_TO_X)
    head = state.get("lm_head.weight", state["model.embed_tokens.weight"])
    pack.linear(head, RMS_NORM_OF_X, LOGITS, norm=pack.vector(state["model.norm.weight"]))
    if pack.config.tied:
        pack.used -= pack.matrices.pop().numel()
        pack.phases[-1].weights = pack.phases[0].weights


def _gpt_neox(pack: Packing, state: Mapping[str, Tensor]) -> None:
    """Add the residual, parallel or serial."""
    heads, dim = pack.config.heads, pack.config.head_dim

    def heads_in_order(rows: Tensor) -> Tensor:
        """Reorder [heads, (q, k, v), head_dim] to all queries, all keys, all values."""
        return rows.reshape(heads, 3, dim, *rows.shape[1:]).transpose(0, 1).reshape(rows.shape)

    pack.embed(state["gpt_neox.embed_in.weight"])
    parallel = pack.config.parallel_residual
    for layer in range(pack.config.layers):
        one = f"gpt_neox.layers.{layer}."

        def norm(name: str, one: str = one) -> dict[str, int]:
            return {
                "norm": pack.vector(state[f"{one}{name}.weight"]),
                "norm_bias": pack.vector(state[f"{one}{name}.bias"]),
            }

        def attention(one: str = one, layer: int = layer) -> None:
            bias = state.get(f"{one}attention.query_key_value.bias")
            pack.linear(
                pack.pairs(heads_in_order(state[f"{one}attention.query_key_value.weight"])),
                LAYER_NORM_OF_X,
                QUERY_KEY_VALUE,
                layer=layer,
                bias=pack.vector(pack.pairs(heads_in_order(bias))) if bias is not None else -1,
                **norm("input_layernorm"),
            )

        def product(name: str, input: int, output: int, one: str = one, **others: Any) -> None:
            bias = pack.vector(state.get(f"{one}{name}.bias"))
            pack.linear(state[f"{one}{name}.weight"], input, output, bias=bias, **others)

        attention()
        if parallel:  # both read the same x: their phases are adjacent
            product("mlp.dense_h_to_4h", LAYER_NORM_OF_X, GELU, **norm("post_attention_layernorm"))
        pack.attention(layer)
        product("attention.dense", ATTENDED, ADD_TO_X, publishes=not parallel)
        if not parallel:
            product("mlp.dense_h_to_4h", LAYER_NORM_OF_X, GELU, **norm("post_attention_layernorm"))
        product("mlp.dense_4h_to_h", HIDDEN, ADD_TO_X)
    pack.linear(
        state["embed_out.weight" if "embed_out.weight" in state else "lm_head.weight"],  # older and newer name
        LAYER_NORM_OF_X,
        LOGITS,
        norm=pack.vector(state["gpt_neox.final_layer_norm.weight"]),
        norm_bias=pack.vector(state["gpt_neox.final_layer_norm.bias"]),
    )


class PersistentDecoder:
    """Generate tokens of one sequence.

    ``persistent``: if True, one launch computes a token; otherwise a new launch begins with each phase that reads the
    previous phase's results. ``splits``: the most parts of a head's keys. ``most_tokens``: prompt and generated tokens.
    ``cache``: keys and values of another program, each [layers, pages, kv_heads, page_size, head_dim], and i32 [pages],
    the pages of its text in order; by default, the decoder has a cache of its own.
    """

    def __init__(
        self,
        pack: Packing,
        most_tokens: int,
        persistent: bool = True,
        page_size: int = 16,
        splits: int = 16,
        kernel: Any = None,
        cache: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> None:
        config, device = pack.config, pack.device
        self.persistent, self.most_tokens = persistent, most_tokens
        self.phases = pack.phases
        processors, most_shared = _device_limits(device)
        self.launcher: Callable[..., None] = (kernel or load_kernel(KERNEL, device=device)).decode

        def of(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        pages = math.ceil(most_tokens / page_size)
        shape = (config.layers, pages, config.kv_heads, page_size, config.head_dim)
        if cache is None:
            cache = (of(*shape, dtype=torch.int16), of(*shape, dtype=torch.int16), torch.arange(pages).int().to(device))
        keys, values, table = cache
        for tensor in (keys, values):
            if tensor.shape != shape or tensor.element_size() != 2 or not tensor.is_contiguous():
                raise ValueError(f"the cache has {tuple(tensor.shape)} {tensor.dtype}: {shape} of 16 bits are needed")
        angles = torch.outer(
            torch.arange(most_tokens, dtype=torch.float64),
            config.theta ** (-torch.arange(0, config.rotary_dim, 2, dtype=torch.float64) / config.rotary_dim),
        )
        rope = torch.stack([angles.cos(), angles.sin()], dim=-1).float().to(device)
        self.weights = torch.cat(pack.matrices)
        self.tokens = of(most_tokens + 1, dtype=torch.int32)
        self.state = of(2, dtype=torch.int32)
        self.logits = of(config.vocabulary)
        linear = [phase for phase in pack.phases if phase.kind == LINEAR]
        columns = max(phase.columns for phase in linear)
        self.input_bytes = columns * 2
        tiles = (
            math.ceil(phase.rows / phase.row_group / processors) * phase.row_group * phase.splits for phase in linear
        )
        self.sums_bytes = 4 * math.ceil(max(tiles) / 4) * 4
        self.slot_bytes = max(WARPS // phase.splits * phase.columns * 2 for phase in linear)
        room = most_shared - 2 * (self.input_bytes + self.sums_bytes) - WORK_BYTES * len(pack.phases)
        room -= READERS // 32 * config.head_dim * 4
        self.slots = min(MOST_SLOTS, room // self.slot_bytes)
        if self.slots < 2:
            raise ValueError(f"{len(pack.phases)} phases, rows of {columns} columns: too much for the shared memory")
        self.arguments: tuple[Any, ...] = (
            self.weights.view(torch.int16),
            torch.cat(pack.vectors),
            rope,
            torch.tensor([phase.numbers() for phase in pack.phases], dtype=torch.int64, device=device),
            keys.view(torch.int16),
            values.view(torch.int16),
            table,
            self.tokens,
            self.state,
            of(config.hidden),
            of(config.hidden // 2, dtype=torch.int64),
            of(config.heads + 2 * config.kv_heads, config.head_dim, dtype=torch.int64),
            of(config.heads, splits, config.head_dim + 2, dtype=torch.int64),
            of(config.feed_forward // 2, dtype=torch.int64),
            self.logits,
            of(1, dtype=torch.int32),
            of(1, dtype=torch.int64),
            len(pack.phases),
            config.hidden,
            config.heads,
            config.kv_heads,
            config.head_dim,
            config.rotary_dim,
            page_size,
            pages,
            splits,
            config.eps,
            config.head_dim**-0.5,
            pack.dtype == torch.bfloat16,
        )
        matrices = {(phase.weights, phase.rows * phase.columns) for phase in linear}
        self.weight_bytes = 2 * sum(elements for _, elements in matrices)
        """Return the bytes that a token reads."""

    def launches(self) -> list[tuple[int, int]]:
        """Return the phases of each launch of a token: (first, one past the last)."""
        if self.persistent:
            return [(0, len(self.phases))]
        # A phase that reads what the previous one publishes needs a launch of its own.
        starts = [0] + [
            i for i, phase in enumerate(self.phases) if i and (phase.source == i - 1 or phase.kind == ATTENTION)
        ]
        return list(zip(starts, [*starts[1:], len(self.phases)], strict=True))

    def step(self, logits: bool = True) -> None:
        """Read the token at the current position, and write the token with the largest logit after it.

        Without ``logits`` nothing is written: the next token must already be stored, as in a prompt.
        """
        for first, last in self.launches():
            self.launcher(
                *self.arguments,
                first,
                last,
                logits,
                self.slots,
                self.slot_bytes,
                min(self.slots, max(1, round(FLYING / self.slot_bytes))),
                self.input_bytes,
                self.sums_bytes,
                self.persistent,
            )

    def capture(self, logits: bool = True) -> Callable[[], None]:
        """Capture one step as a CUDA graph; positions and tokens are on the device, so each replay is the next step."""
        self.step(logits)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step(logits)
        return graph.replay

    def begin(self, prompt: list[int]) -> None:
        """Start at position 0, and store a prompt; none of its tokens is read yet."""
        self.tokens[: len(prompt)] = torch.tensor(prompt, dtype=torch.int32)
        self.state[0] = 0

    def take_over(self, ids: list[int]) -> None:
        """Continue a text of which all keys and values but the last token's are in the cache already."""
        self.tokens[: len(ids)] = torch.tensor(ids, dtype=torch.int32)
        self.state[0] = len(ids) - 1

    def generate(self, prompt: list[int], count: int) -> list[int]:
        """Return the ``count`` likeliest tokens after the prompt, each given those before it."""
        if not prompt or len(prompt) + count > self.most_tokens:
            raise ValueError(f"{len(prompt)} tokens and {count} more: there is room for 1 to {self.most_tokens}")
        self.begin(prompt)
        for _ in prompt[1:]:
            self.step(logits=False)
        for _ in range(count):
            self.step()
        return self.tokens[len(prompt) : len(prompt) + count].tolist()


def _device_limits(device: str) -> tuple[int, int]:
    """Return the number of SMs and the bytes of shared memory that a block can have."""
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        return properties.multi_processor_count, properties.shared_memory_per_block_optin - STATIC_BYTES
    return 8, 227 * 1024 - STATIC_BYTES
