"""Tests of day 11's gptq.py: packing of int4 weights, rounding to nearest, and GPTQ."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from grader import load_kernel

DAY = Path(__file__).parents[2] / "lessons" / "day11_quantization"


def load() -> ModuleType:
    """Load the lesson's module, which is not a package."""
    spec = importlib.util.spec_from_file_location("day11_gptq", DAY / "gptq.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["day11_gptq"] = module
    spec.loader.exec_module(module)
    return module


gptq = load()


def layer(k: int = 64, n: int = 24, samples: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights, and correlated inputs of different magnitudes."""
    generator = torch.Generator().manual_seed(3)
    mix = torch.randn(k, k, generator=generator, dtype=torch.float64) / k**0.5 + torch.eye(k)
    x = torch.randn(samples, k, generator=generator, dtype=torch.float64) @ mix
    x = x * torch.rand(k, generator=generator, dtype=torch.float64).pow(2)
    return torch.randn(k, n, generator=generator, dtype=torch.float64), x


@pytest.mark.parametrize("dim", [0, 1])
def test_packing_keeps_every_nibble(dim: int) -> None:
    nibbles = torch.randint(0, 16, (16, 24), generator=torch.Generator().manual_seed(1))
    words = gptq.pack(nibbles, dim)
    assert words.dtype == torch.int32 and words.numel() * 8 == nibbles.numel()
    assert torch.equal(gptq.unpack(words, dim), nibbles)


def test_the_first_of_eight_is_in_the_lowest_bits() -> None:
    column = torch.tensor([1, 2, 3, 4, 5, 6, 7, 15])[:, None]
    assert gptq.pack(column, 0).item() & 0xFFFFFFFF == 0xF7654321


@pytest.mark.parametrize("group_size", [8, 24, 13, 64])
def test_rounding_is_off_by_half_a_step_at_most(group_size: int) -> None:
    w, _ = layer()
    layer_q = gptq.round_to_nearest(w, group_size)
    step = layer_q.scales.double()[layer_q.g_idx.long()]
    # At the lowest and highest of the 16 values, rounding of zero point and scale adds an error of up to one scale.
    assert ((layer_q.dequantize() - w).abs() <= 1.01 * step).all()
    assert layer_q.qzeros.shape == (-(-64 // group_size), 3) and layer_q.qweight.shape == (8, 24)


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("group_size", [16, 24, 64])
def test_gptq_has_a_smaller_error_than_rounding(group_size: int, act_order: bool) -> None:
    w, x = layer()
    rounded = gptq.output_error(w, gptq.round_to_nearest(w, group_size).dequantize(), x)
    better = gptq.output_error(w, gptq.gptq(w, x, group_size, act_order).dequantize(), x)
    assert better < 0.8 * rounded


def test_independent_inputs_need_no_error_compensation() -> None:
    w, _ = layer()
    assert torch.equal(gptq.gptq(w, torch.eye(64), 16).qweight, gptq.round_to_nearest(w, 16).qweight)


def test_act_order_takes_the_largest_inputs_first() -> None:
    w, x = layer()
    largest = x.square().sum(dim=0).argsort(descending=True)
    g_idx = gptq.gptq(w, x, 16, act_order=True).g_idx
    assert g_idx[largest].tolist() == [k // 16 for k in range(64)]


@pytest.mark.parametrize("act_order", [False, True])
def test_the_solution_multiplies_what_the_quantizer_wrote(act_order: bool) -> None:
    w, x = layer()
    layer_q = gptq.gptq(w, x, 16, act_order)
    rows = x[:3].half()
    out = torch.empty(3, 24, dtype=torch.float16)
    solution = DAY.parents[1] / "solutions" / DAY.name / "gptq_linear.cu"
    load_kernel(solution, device="cpu").gptq_linear(
        rows, layer_q.qweight, layer_q.qzeros, layer_q.scales, layer_q.g_idx, torch.empty(0).half(), out, 3, 64, 24, 16,
        act_order, False,
    )  # fmt: skip
    expected = rows.double() @ layer_q.dequantize()
    assert (out.double() - expected).abs().max() < 2e-3 * expected.abs().max()
