"""Attention by a cuDNN graph, whose execution plans are kept by length.

cuDNN's Python front end is the package nvidia-cudnn-frontend, which is imported as ``cudnn``. A plan is for one shape,
and building it takes long. So a program that meets many lengths builds few plans and keeps them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")
MISSING = "cuDNN's Python front end is not installed: pip install nvidia-cudnn-frontend (1.13 or newer; it needs a GPU)"


class PlanCache(Generic[T]):
    """Plans by length, each built once. A length uses the plan of the next multiple of ``step``."""

    def __init__(self, build: Callable[[int], T], step: int = 1) -> None:
        self.build = build
        self.step = step
        self.plans: dict[int, T] = {}

    def padded(self, length: int) -> int:
        """Return the length of the plan for a length."""
        return -(-length // self.step) * self.step

    def plan(self, length: int) -> T:
        """Return the plan for a length, built at the first call."""
        padded = self.padded(length)
        if padded not in self.plans:
            self.plans[padded] = self.build(padded)
        return self.plans[padded]


def frontend() -> Any:
    """Return the module ``cudnn``; None if it is not installed or does not load."""
    try:
        return importlib.import_module("cudnn")
    except (ImportError, OSError, RuntimeError):
        return None


class Attention:
    """A plan of causal attention in bf16, for one length: q, k, v and out are [length, heads, head_dim] on the GPU."""

    def __init__(self, cudnn: Any, handle: Any, length: int, heads: int, head_dim: int) -> None:
        self.cudnn, self.handle = cudnn, handle
        # The graph counts dimensions as batch, head, token, element. Strides say how they lie in memory.
        dim = [1, heads, length, head_dim]
        stride = [length * heads * head_dim, head_dim, heads * head_dim, 1]
        bf16, f32 = cudnn.data_type.BFLOAT16, cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            handle=handle, io_data_type=bf16, intermediate_data_type=f32, compute_data_type=f32, name="attention"
        )
        self.inputs = [graph.tensor(name=name, dim=dim, stride=stride, data_type=bf16) for name in "qkv"]
        q, k, v = self.inputs
        self.out, _ = graph.sdpa(
            name="sdpa", q=q, k=k, v=v, generate_stats=False, attn_scale=head_dim**-0.5, use_causal_mask=True
        )
        self.out.set_output(True).set_dim(dim).set_stride(stride)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        self.graph = graph
        self.workspace = torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
        """Enqueue the attention in torch's current stream."""
        self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        tensors = dict(zip((*self.inputs, self.out), (q, k, v, out), strict=True))
        self.graph.execute(tensors, self.workspace, handle=self.handle)
