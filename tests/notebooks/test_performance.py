"""The versions of day 15's sum of squares.

Each version that the lesson or its measuring script names exists and is correct at any size.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from grader import load_kernel

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "day15_performance"


def measure() -> ModuleType:
    """Load the lesson's script, which is not a package."""
    spec = importlib.util.spec_from_file_location("day15_measure", LESSON / "measure.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURE = measure()
VERSIONS = sorted({how[:2] for how in MEASURE.STEPS.values()} | {(w, n) for w in MEASURE.WIDTHS for n in MEASURE.LOADS})


@pytest.mark.parametrize("n", [0, 1, 3, 127, 4099, 20_011])
def test_every_version_is_correct(n: int) -> None:
    kernel = load_kernel(LESSON / "squares.cu", device="cpu")
    x = torch.randn(n, generator=torch.Generator().manual_seed(n))
    for width, loads in VERSIONS:
        partials, out = torch.full((2,), torch.nan), torch.full((1,), torch.nan)
        kernel.squares(x, partials, out, n, width, loads, 2)
        torch.testing.assert_close(out[0].double(), x.double().square().sum(), rtol=1e-5, atol=0, check_dtype=False)
