"""Three fused kernels of the day, each with the unfused kernels that it replaces.

The lesson runs them on the simulator, ``python -m tests.gpu.fusion`` on a real GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from grader import load_kernel

HERE = Path(__file__).resolve().parent
SOLUTIONS = HERE.parents[1] / "solutions"
EPS = 1e-5

FILES = {
    "residual_add": SOLUTIONS / "day01_residual_add" / "residual_add.cu",
    "rms_norm": SOLUTIONS / "day02_reductions" / "rms_norm.cu",
    "softmax": SOLUTIONS / "day02_reductions" / "softmax.cu",
    "rope": SOLUTIONS / "day03_positions_and_gates" / "rope.cu",
    "swiglu": SOLUTIONS / "day03_positions_and_gates" / "swiglu.cu",
    "linear_wmma": SOLUTIONS / "day04_linear" / "linear_wmma.cu",
    "scores": HERE / "scores.cu",
    "rms_norm_linear": SOLUTIONS / "day05_fusion" / "rms_norm_linear.cu",
    "linear_swiglu": SOLUTIONS / "day05_fusion" / "linear_swiglu.cu",
    "scores_softmax": SOLUTIONS / "day05_fusion" / "scores_softmax.cu",
}
"""The kernel files, by the name of their exercise."""

COUNTED = ("launches", "global_bytes", "touched_bytes", "sectors")


class Machine:
    """A simulator ("cpu") or a GPU ("cuda") that runs the course's kernels in f16 and counts their traffic."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.totals: Counter[str] = Counter()
        """Counts of the simulator since the last ``reset``; empty on a GPU."""
        self._kernels: dict[str, Any] = {}

    def reset(self) -> None:
        """Reset all counts."""
        self.totals.clear()

    def launch(self, name: str, *arguments: Any) -> None:
        """Call one launcher of one kernel file: ``launch("swiglu", gate, up, out, n)`` calls ``swiglu_f16``."""
        if name not in self._kernels:
            self._kernels[name] = load_kernel(FILES[name], device=self.device)
        kernel = self._kernels[name]
        launchers = {prototype.name for prototype in kernel.launchers}
        getattr(kernel, f"{name}_f16" if f"{name}_f16" in launchers else name)(*arguments)
        if self.device == "cpu":
            for counted in COUNTED:
                self.totals[counted] += int(kernel.report.totals.get(counted, 0))


@dataclass
class Pair:
    """A fused kernel and the kernels that it replaces, on the same inputs."""

    name: str
    sizes: dict[str, Any]
    fused: Callable[[], None]
    unfused: Callable[[], None]
    outputs: tuple[torch.Tensor, torch.Tensor]
    """The outputs of the fused kernel and of the unfused kernels."""
    reference: Callable[[], torch.Tensor]
    """A function that returns the exact output in float64, perhaps of the first rows only."""
    least_bytes: tuple[int, int]
    """The bytes that the fused and the unfused kernels move, if each kernel moves each of its tensors once."""

    def errors(self) -> tuple[float, float]:
        """Return the largest error of the fused and of the unfused output, relative to the largest output."""
        with torch.no_grad():
            right = self.reference()
            size = right.abs().max()
            return tuple(float((out[: len(right)].double() - right).abs().max() / size) for out in self.outputs)  # type: ignore[return-value]


def numbers(device: str, *shape: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    """Return normal random numbers in f16, the same for each seed."""
    generator = torch.Generator(device).manual_seed(seed)
    return (torch.randn(shape, generator=generator, device=device) * scale).half()


def bytes_of(*tensors: torch.Tensor) -> int:
    """Return the total bytes of the tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def rms_norm_linear(machine: Machine, rows: int, in_features: int, out_features: int) -> Pair:
    """Return the pair for RMSNorm and the linear layer after it."""
    device = machine.device
    x = numbers(device, rows, in_features, seed=1)
    norm_weight = 1 + numbers(device, in_features, scale=0.2, seed=2)
    weight = numbers(device, out_features, in_features, scale=in_features**-0.5, seed=3)
    bias = torch.zeros(out_features, device=device).half()
    normed, out, fused_out = torch.empty_like(x), x.new_empty(rows, out_features), x.new_empty(rows, out_features)

    def fused() -> None:
        machine.launch("rms_norm_linear", x, norm_weight, weight, fused_out, rows, in_features, out_features, EPS)

    def unfused() -> None:
        machine.launch("rms_norm", x, norm_weight, normed, rows, in_features, EPS)
        machine.launch("linear_wmma", normed, weight, bias, out, rows, in_features, out_features)

    def reference() -> torch.Tensor:
        head = x[:2048].double()
        factor = torch.rsqrt(head.square().mean(dim=-1, keepdim=True) + EPS)
        return head * factor * norm_weight.double() @ weight.double().T

    return Pair(
        "rms_norm_linear",
        {"rows": rows, "in_features": in_features, "out_features": out_features},
        fused,
        unfused,
        (fused_out, out),
        reference,
        (
            bytes_of(x, norm_weight, weight, out),
            bytes_of(x, norm_weight, normed) + bytes_of(normed, weight, bias, out),
        ),
    )


def linear_swiglu(machine: Machine, rows: int, in_features: int, hidden: int) -> Pair:
    """Return the pair for the gate and up projections and SwiGLU."""
    device = machine.device
    x = numbers(device, rows, in_features, seed=1)
    gate_weight = numbers(device, hidden, in_features, scale=in_features**-0.5, seed=2)
    up_weight = numbers(device, hidden, in_features, scale=in_features**-0.5, seed=3)
    bias = torch.zeros(hidden, device=device).half()
    gate, up, out, fused_out = (x.new_empty(rows, hidden) for _ in range(4))

    def fused() -> None:
        machine.launch("linear_swiglu", x, gate_weight, up_weight, fused_out, rows, in_features, hidden)

    def unfused() -> None:
        machine.launch("linear_wmma", x, gate_weight, bias, gate, rows, in_features, hidden)
        machine.launch("linear_wmma", x, up_weight, bias, up, rows, in_features, hidden)
        machine.launch("swiglu", gate, up, out, rows * hidden)

    def reference() -> torch.Tensor:
        head = x[:2048].double()
        return torch.nn.functional.silu(head @ gate_weight.double().T) * (head @ up_weight.double().T)

    return Pair(
        "linear_swiglu",
        {"rows": rows, "in_features": in_features, "hidden": hidden},
        fused,
        unfused,
        (fused_out, out),
        reference,
        (
            bytes_of(x, gate_weight, up_weight, out),
            bytes_of(x, gate_weight, bias, gate) + bytes_of(x, up_weight, bias, up) + bytes_of(gate, up, out),
        ),
    )


def scores_softmax(machine: Machine, heads: int, query_len: int, key_len: int, head_dim: int, causal: bool) -> Pair:
    """Return the pair for scores and softmax, for a single batch."""
    device = machine.device
    q = numbers(device, heads, query_len, head_dim, scale=1.5, seed=1)
    k = numbers(device, heads, key_len, head_dim, seed=2)
    scores, out, fused_out = (q.new_empty(heads, query_len, key_len) for _ in range(3))
    scale = head_dim**-0.5
    shape = (1, heads, query_len, key_len, head_dim, scale, causal)

    def fused() -> None:
        machine.launch("scores_softmax", q, k, fused_out, *shape)

    def unfused() -> None:
        machine.launch("scores", q, k, scores, *shape)
        machine.launch("softmax", scores, out, heads * query_len, key_len)

    def reference() -> torch.Tensor:
        exact = q[:1].double() @ k[:1].double().transpose(-1, -2) * scale
        if causal:
            hidden = torch.ones(query_len, key_len, dtype=torch.bool, device=device).triu(key_len - query_len + 1)
            exact = exact.masked_fill(hidden, -torch.inf)
        return torch.softmax(exact, dim=-1)

    return Pair(
        "scores_softmax",
        {"heads": heads, "query_len": query_len, "key_len": key_len, "head_dim": head_dim, "causal": causal},
        fused,
        unfused,
        (fused_out, out),
        reference,
        (bytes_of(q, k, out), bytes_of(q, k, scores) + bytes_of(scores, out)),
    )


PAIRS = {"rms_norm_linear": rms_norm_linear, "linear_swiglu": linear_swiglu, "scores_softmax": scores_softmax}

GOALS = {
    "rms_norm_linear": (0.25, 1.33),
    "linear_swiglu": (0.25, 1.33),
    "scores_softmax": (0.30, 1.36),
}
"""The share of the traffic that fusion should save, and the speedup."""

SMALL: dict[str, dict[str, Any]] = {
    "rms_norm_linear": {"rows": 512, "in_features": 512, "out_features": 128},
    "linear_swiglu": {"rows": 512, "in_features": 256, "hidden": 256},
    "scores_softmax": {"heads": 2, "query_len": 256, "key_len": 512, "head_dim": 64, "causal": False},
}
"""Sizes that the simulator runs in a second or two."""

LARGE: list[tuple[str, str, dict[str, Any]]] = [
    ("rms_norm_linear", "narrow", {"rows": 32768, "in_features": 4096, "out_features": 128}),
    ("rms_norm_linear", "wide", {"rows": 4096, "in_features": 4096, "out_features": 4096}),
    ("linear_swiglu", "small model", {"rows": 32768, "in_features": 256, "hidden": 1024}),
    ("linear_swiglu", "few rows", {"rows": 64, "in_features": 2048, "hidden": 5632}),
    ("linear_swiglu", "wide", {"rows": 4096, "in_features": 4096, "hidden": 11008}),
    (
        "scores_softmax",
        "D 64",
        {"heads": 32, "query_len": 4096, "key_len": 4096, "head_dim": 64, "causal": False},
    ),
    (
        "scores_softmax",
        "D 64, causal",
        {"heads": 32, "query_len": 4096, "key_len": 4096, "head_dim": 64, "causal": True},
    ),
    (
        "scores_softmax",
        "D 128",
        {"heads": 32, "query_len": 4096, "key_len": 4096, "head_dim": 128, "causal": False},
    ),
]
"""Sizes for a GPU: some are memory-bound, some are not."""

PROMISED = ("narrow", "small model", "D 64", "D 64, causal")
"""The sizes to which the goals apply: they are memory-bound."""
