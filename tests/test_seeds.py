"""Random inputs are the same in every run, whichever tests ran before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.seeds import SEED

RNG = np.random.default_rng()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_draws_do_not_depend_on_earlier_tests(turn: str) -> None:
    assert RNG.integers(2**60) == np.random.default_rng(SEED).integers(2**60)
    assert torch.equal(torch.rand(4), torch.rand(4, generator=torch.Generator().manual_seed(SEED)))
