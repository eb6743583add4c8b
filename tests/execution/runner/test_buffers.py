"""The first contents of outputs: each element is a NaN or a large number, and no two calls have the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.execution.runner.buffers import Place, poisoned, poisoned_on
from grader.frontend.dtypes import DTYPES, torch_dtype

N = 1000


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("name", DTYPES)
def test_poison_is_never_a_plausible_result(name: str, on_device: bool) -> None:
    size = N * DTYPES[name].bytes
    outputs = {"out": Place("out", name, (N,), 4096, size, 0)}
    draw: Any = poisoned_on if on_device else poisoned
    contents = []
    for _ in range(2):
        content = draw("cpu", outputs, size + 8192) if on_device else draw(outputs, size + 8192, False)
        contents.append(content if on_device else torch.frombuffer(content, dtype=torch.uint8))
    assert not torch.equal(*contents)
    inside, guards = contents[0][4096 : 4096 + size], contents[0][:4096]
    assert len(guards.unique()) > 200
    if name == "bool":
        assert bool((inside >= 0x80).all())
    elif name in ("f64", "f32", "f16", "bf16"):
        values = inside.clone().view(torch_dtype(name))
        assert bool(values.isnan().all())
        integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[DTYPES[name].bytes]
        words = values.view(integer)
        assert len(words.unique()) > 20
        assert bool(((values + 1).view(integer) != words).all()), "a kernel that adds to an output changes it"
    elif name in ("i32", "u32", "i64"):
        values = inside.clone().view(torch.int64 if name == "i64" else torch.int32)
        assert bool((values >= (0x60 << 8 * DTYPES[name].bytes - 8)).all()) and len(values.unique()) > 900
    else:
        assert len(inside.unique()) > 200, "random bytes"
