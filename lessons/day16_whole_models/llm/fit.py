"""Run our kernels inside transformers' own modules: how to try a kernel in an existing program.

The module keeps its class, weights and signature; only its computation is replaced. So the patch can be undone safely,
and code that calls the module or uses its attributes still works.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from llm.operators import Operators


@contextmanager
def fitted(model: Any, operators: Operators) -> Iterator[None]:
    """Replace the RMSNorms and SwiGLUs of a transformers Qwen2 inside the context, and restore them afterwards."""
    changed = []
    for module in model.modules():
        kind = type(module).__name__
        if kind == "Qwen2RMSNorm":
            module.forward = _rms_norm(module, operators)
        elif kind == "Qwen2MLP":
            module.forward = _mlp(module, operators)
        else:
            continue
        changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward  # the class's own method is visible again


def _rms_norm(module: Any, operators: Operators) -> Any:
    def forward(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        return operators.rms_norm(rows, module.weight, module.variance_epsilon).view(x.shape)

    return forward


def _mlp(module: Any, operators: Operators) -> Any:
    def forward(x: Tensor) -> Tensor:
        return module.down_proj(operators.swiglu(module.gate_proj(x), module.up_proj(x)))

    return forward


class Call(NamedTuple):
    """A call of a layer: its index, its residual, the kernel's source, the tokens, and whether a cache was passed."""

    layer: int
    residual: str
    """"parallel" (x + attention + MLP) or "serial" (two additions, the MLP reads the first sum)."""
    fused: bool
    tokens: int
    cached: bool


@dataclass
class FusedResiduals:
    """The residual additions of a transformers GPT-NeoX, computed by our kernels inside a ``with`` block.

    Every other part of a layer is called as transformers calls it, with all its arguments (mask, positions, cache), and
    a layer returns what transformers' layer returns.
    """

    model: Any
    operators: Operators
    enabled: bool = True
    """False: the layers add with torch, as before. May be changed at any time."""
    residual: str | None = None
    """"parallel" or "serial" for all layers; None: as each layer's ``use_parallel_residual`` says."""
    calls: list[Call] = field(default_factory=list)
    """The trace: one entry per call of a layer."""
    annotated: bool = False
    """True: the additions are a range called "residual" in torch's profiler, which costs some microseconds a call."""

    def __enter__(self) -> FusedResiduals:
        for index, layer in enumerate(self._layers()):
            layer.forward = self._forward(layer, index)
        return self

    def __exit__(self, *_: object) -> None:
        for layer in self._layers():
            del layer.forward  # the class's own method is visible again

    def _layers(self) -> list[Any]:
        return [module for module in self.model.modules() if type(module).__name__ == "GPTNeoXLayer"]

    def _forward(self, layer: Any, index: int) -> Any:
        def forward(x: Tensor, *arguments: Any, **options: Any) -> Tensor:
            parallel = layer.use_parallel_residual if self.residual is None else self.residual == "parallel"
            cached = options.get("layer_past") is not None
            tokens = x.shape[:-1].numel()
            self.calls.append(Call(index, "parallel" if parallel else "serial", self.enabled, tokens, cached))
            attention, _ = layer.attention(layer.input_layernorm(x), *arguments, **options)
            attention = layer.post_attention_dropout(attention)
            if parallel:
                mlp = layer.post_mlp_dropout(layer.mlp(layer.post_attention_layernorm(x)))
                return self._add(x, attention, mlp)
            x = self._add(x, attention)
            return self._add(x, layer.post_mlp_dropout(layer.mlp(layer.post_attention_layernorm(x))))

        return forward

    def _add(self, x: Tensor, *branches: Tensor) -> Tensor:
        if self.annotated:
            with torch.profiler.record_function("residual"):
                return self._sum(x, *branches)
        return self._sum(x, *branches)

    def _sum(self, x: Tensor, attention: Tensor, mlp: Tensor | None = None) -> Tensor:
        if not self.enabled:
            return attention + x if mlp is None else mlp + attention + x  # added in the order of transformers
        if mlp is None:
            return self.operators.residual_add(x.contiguous(), attention.contiguous())
        return self.operators.parallel_residual(x.contiguous(), attention.contiguous(), mlp.contiguous())
