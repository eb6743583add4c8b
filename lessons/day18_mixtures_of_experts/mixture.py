"""A whole Qwen2-MoE: day 16's Qwen2, whose MLPs are mixtures of experts that this day's kernels compute.

    model = load_mixture(HERE / "tiny", Operators())
    print(generate(model, "The kernel", 24).text)

A prompt goes through five solutions per layer (route, permute, gate and up, down, combine), one token through two
(route, decode).
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from llm import Config, ConfigError, Operators, PagedCache
from llm.cache import Batch
from llm.checkpoint import check, read_tensors
from llm.config import parse_config
from llm.model import Block
from llm.qwen2 import Qwen2
from llm.tokenizer import Tokenizer
from torch import Tensor

from grader import load_kernel
from grader.course import course_root

DAY = "day18_mixtures_of_experts"
KERNELS = {
    "route": f"solutions/{DAY}/moe_router.cu",
    "permute": f"solutions/{DAY}/moe_permute.cu",
    "gate_up": f"solutions/{DAY}/moe_swiglu.cu",
    "down": f"solutions/{DAY}/grouped_gemm.cu",
    "combine": f"solutions/{DAY}/moe_combine.cu",
    "decode": f"solutions/{DAY}/moe_decode.cu",
    "shared_gate": f"lessons/{DAY}/shared_gate.cu",
}
"""The kernel file of each step."""


@dataclass(frozen=True)
class MixtureConfig(Config):
    """The settings of a Qwen2-MoE model."""

    experts: int = 0
    top_k: int = 0
    expert_width: int = 0
    """The width inside the MLP of one expert."""
    shared_width: int = 0
    """The width inside the MLP of the shared expert."""
    normalized: bool = False
    """True if the weights of a token's experts are divided by their sum."""


def parse_mixture(values: dict[str, Any]) -> MixtureConfig:
    """Parse the settings of config.json. Raise ConfigError."""
    if values.get("model_type") != "qwen2_moe":
        raise ConfigError(f"model_type is {values.get('model_type')!r}; this file supports only qwen2_moe")
    if values.get("decoder_sparse_step", 1) != 1 or values.get("mlp_only_layers"):
        raise ConfigError(
            "some layers have no experts (decoder_sparse_step or mlp_only_layers): this file needs them in all"
        )
    sizes = {}
    for name in ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size"):
        size = values.get(name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ConfigError(f"{name} is {size!r}; it must be a whole number of at least 1")
        sizes[name] = size
    if sizes["num_experts_per_tok"] > sizes["num_experts"]:
        raise ConfigError(f"{sizes['num_experts_per_tok']} experts per token, of {sizes['num_experts']}")
    base = parse_config({**values, "model_type": "qwen2"})
    common = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    return MixtureConfig(
        **{**common, "architecture": "qwen2_moe"},
        experts=sizes["num_experts"],
        top_k=sizes["num_experts_per_tok"],
        expert_width=sizes["moe_intermediate_size"],
        shared_width=sizes["shared_expert_intermediate_size"],
        normalized=bool(values.get("norm_topk_prob", False)),
    )


def load_mixture(folder: str | Path, operators: Operators | None = None, tokenizer: Path | None = None) -> Qwen2Moe:
    """Load the model in a folder as f16. Raise ConfigError or CheckpointError."""
    folder, operators = Path(folder), operators or Operators()
    try:
        config = parse_mixture(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as problem:
        raise problem if isinstance(problem, ConfigError) else ConfigError(f"config.json: {problem}") from None
    tensors = read_tensors(folder, torch.float16, operators.device)
    check(Qwen2Moe.shapes(config), tensors, config)
    return Qwen2Moe(config, tensors, operators, Tokenizer(tokenizer) if tokenizer else None)


class Qwen2Moe(Qwen2):
    """Hugging Face's Qwen2MoeForCausalLM."""

    config: MixtureConfig

    def __init__(self, *given: Any) -> None:
        self.kernels: dict[str, Any] = {}
        self.rows_of_experts: Counter[tuple[int, int]] = Counter()
        """The number of tokens by layer and expert, so far."""
        super().__init__(*given)

    @classmethod
    def shapes(cls, config: Config) -> dict[str, tuple[int, ...]]:
        assert isinstance(config, MixtureConfig)
        c, f, s = config.hidden, config.expert_width, config.shared_width
        found = {name: shape for name, shape in super().shapes(config).items() if ".mlp." not in name}
        for i in range(config.layers):
            mlp = f"model.layers.{i}.mlp"
            found |= {f"{mlp}.gate.weight": (config.experts, c), f"{mlp}.shared_expert_gate.weight": (1, c)}
            for part, width in [(f"experts.{e}", f) for e in range(config.experts)] + [("shared_expert", s)]:
                found |= {f"{mlp}.{part}.{name}_proj.weight": (width, c) for name in ("gate", "up")}
                found[f"{mlp}.{part}.down_proj.weight"] = (c, width)
        return found

    def block(self, tensors: dict[str, Tensor], i: int) -> Block:
        mlp = f"model.layers.{i}.mlp"

        def take(name: str) -> Tensor:
            return tensors.pop(f"{mlp}.{name}.weight")

        experts = range(self.config.experts)
        own: Block = {
            "router": take("gate").float(),  # a token's experts must not depend on rounding
            "shared_gate": take("shared_expert_gate"),
            "experts_gate_up": torch.stack(
                [torch.cat([take(f"experts.{e}.{name}_proj") for name in ("gate", "up")]) for e in experts]
            ),
            "experts_down": torch.stack([take(f"experts.{e}.down_proj") for e in experts]),
        }
        # The shared expert is an ordinary MLP: Qwen2's code computes it, under the names of Qwen2's MLP.
        for name in ("gate", "up", "down"):
            tensors[f"{mlp}.{name}_proj.weight"] = take(f"shared_expert.{name}_proj")
        return super().block(tensors, i) | own

    def run_block(self, i: int, x: Tensor, batch: Batch, cache: PagedCache) -> Tensor:
        op, block, s = self.operators, self.blocks[i], self.config.shared_width
        x = op.residual_add(x, self.attend(i, self.norm(x, block["norm_1"]), batch, cache))
        y = self.norm(x, block["norm_2"])
        gate, up = op.linear_parts(y, block["gate_up"], None, (s, s))
        shared = torch.empty_like(y)
        sigmoid_of = op.linear(y, block["shared_gate"])
        self.run("shared_gate", sigmoid_of, op.linear(op.swiglu(gate, up), block["down"]), shared, *y.shape)
        return op.residual_add(x, self.experts(i, y, shared))

    def experts(self, i: int, x: Tensor, shared: Tensor) -> Tensor:
        """Return the weighted sum of each token's experts, plus the shared expert's result: [tokens, C]."""
        config, block = self.config, self.blocks[i]
        tokens, c = x.shape
        n, k, f = config.experts, config.top_k, config.expert_width
        logits = self.operators.linear(x.float(), block["router"])
        weights, ids = x.new_empty(tokens, k, dtype=torch.float32), x.new_empty(tokens, k, dtype=torch.int32)
        self.run("route", logits, weights, ids, tokens, n, k, True, config.normalized, dtype="f32")
        self.rows_of_experts.update((i, e) for e in ids.flatten().tolist())

        out = torch.empty_like(x)
        gate_up, down = block["experts_gate_up"], block["experts_down"]
        middle = x.new_empty(tokens * k, f)
        if tokens == 1:
            self.run("decode", x, ids, weights, gate_up, down, middle, out, tokens, n, k, c, f)
            return self.operators.residual_add(out, shared)
        rows, y = x.new_empty(tokens * k, c), x.new_empty(tokens * k, c)
        offsets, rows_of = ids.new_empty(n + 1), torch.empty_like(ids)
        work = ids.new_empty((-(-tokens * k // 256) + 1) * n)
        self.run("permute", x, ids, rows, offsets, rows_of, work, tokens, n, k, c)
        self.run("gate_up", rows, gate_up, offsets, middle, len(rows), n, c, f)
        self.run("down", middle, down, offsets, y, len(rows), n, f, c)
        self.run("combine", y, rows_of, weights, shared, out, tokens, k, c, True)
        return out

    def run(self, step: str, *arguments: Any, dtype: str = "f16") -> None:
        """Call the launcher of a step, loading its kernel on first use, and count the call."""
        op, file = self.operators, KERNELS[step]
        if step not in self.kernels:
            self.kernels[step] = load_kernel(course_root() / file, device=op.device, checks=op.checks)
        name = f"{Path(file).stem}_{dtype}"
        op.calls[step, file] += 1
        getattr(self.kernels[step], name)(*arguments)
