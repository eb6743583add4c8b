"""Run our kernels inside transformers' own modules: how to try a kernel in an existing program.

The module keeps its class, weights and signature; only its computation is replaced. So the patch can be undone safely,
and does not break what else the program passes around.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
