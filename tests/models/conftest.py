"""Day 16's library and its tiny models."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
DAY = ROOT / "lessons" / "day16_whole_models"
TINY = {name: DAY / "tiny" / name for name in ("qwen2", "neox")}
sys.path.insert(0, str(DAY))

PROMPT = "The kernel"


@pytest.fixture(scope="session")
def theirs() -> Callable[..., Any]:
    """Return the transformers model in a folder. Tests share it, so they must not change it."""
    loaded: dict[Any, Any] = {}

    def load(name: str, dtype: torch.dtype = torch.float32) -> Any:
        from transformers import AutoModelForCausalLM

        if (name, dtype) not in loaded:
            loaded[name, dtype] = AutoModelForCausalLM.from_pretrained(
                TINY[name], dtype=dtype, local_files_only=True, attn_implementation="eager"
            ).eval()
        return loaded[name, dtype]

    return load
