"""Day 16's table of operators.

Inputs of every row can be drawn, rows of small sizes are correct on the simulator, and errors are reported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import fused_layer
import operator_table
import pytest
import torch

from grader.judge.timing.machine import Machine
from tests.models.conftest import ROOT

MACHINE = Machine(
    device="a GPU",
    l2_bytes=1000,
    copy_gigabytes_per_second=4000.0,
    product_gigaflops={"f32": 5e4, "f16": 7e5, "bf16": 7e5},
)


def quiet(_: str) -> None:
    """Ignore a progress message."""


def test_the_table_has_every_operator_in_every_dtype_small_and_large() -> None:
    seen: dict[str, set[tuple[str, bool]]] = {}
    for size in operator_table.sizes():
        assert operator_table.Kernels.file(size.exercise).is_file()
        task = operator_table.exercise_of(size)
        assert set(size.dtypes) <= set(task.dtypes) and task.torch_baseline is not None
        seen.setdefault(size.operator, set()).update((dtype, size.small) for dtype in size.dtypes)
    names = "add argmax embedding linear RMSNorm LayerNorm RoPE prefill decode SwiGLU GELU softmax"
    assert set(seen) == set(names.split())
    assert all(found == {(d, small) for d in operator_table.ALL for small in (True, False)} for found in seen.values())
    for layer in fused_layer.LAYERS:
        assert all(operator_table.Kernels.file(name).is_file() for name in fused_layer.kernels(layer))


def test_the_smallest_sizes_are_right_on_the_simulator() -> None:
    machine, found = operator_table.table(["GELU", "softmax"], "cpu", show=quiet)
    assert machine is None and found["layers"] == []
    assert [(row["operator"], row["dtype"]) for row in found["rows"]] == [
        (operator, dtype) for operator in ("GELU", "softmax") for dtype in operator_table.ALL
    ]
    assert all("problem" not in row and row["difference"] < 1e-3 for row in found["rows"])
    _, found = operator_table.table(["layers"], "cpu", show=quiet)
    prompt, token = found["layers"]
    assert list(prompt["versions"]) == ["unfused", "fused", "flash"] and list(token["versions"]) == ["unfused", "fused"]
    for layer in (prompt, token):
        versions = list(layer["versions"].values())
        assert "problem" not in layer and all(one["error"] < 2e-3 for one in versions)
        assert [one["launches"] for one in versions] == sorted((one["launches"] for one in versions), reverse=True)
        assert layer["name"] in fused_layer.line_of(layer)


def test_a_row_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_on_gpu(functions: list[Any], runs: int, flush: int) -> list[float]:
        for function in functions:
            function()
        return [3.0, 2.0, 4.0]

    monkeypatch.setattr(operator_table, "time_on_gpu", time_on_gpu)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(operator_table, "CALLS", 2)
    size = next(size for size in operator_table.sizes() if size.operator == "GELU")
    row = operator_table.measure(size, "f32", operator_table.Kernels("cpu"), MACHINE, compiled=True)
    assert row["device_us"] == row["eager_device_us"] == 3.0 and row["bytes"] == 48 and row["called_us"] > 0
    assert row["copy_us"] == row["floor_us"] == pytest.approx(48 / 4000 * 1e-3)
    text = operator_table.line_of({"operator": "GELU", "dtype": "f32", "size": size.name, **row})
    assert text.startswith("GELU       f32   2 x 3") and "1.00" in text


def test_a_failure_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    original = operator_table.measure

    def measure(size: Any, dtype: str, *more: Any) -> dict[str, Any]:
        if dtype == "f16":
            raise RuntimeError("out of luck\nand more")
        return original(size, dtype, *more)

    monkeypatch.setattr(operator_table, "measure", measure)
    _, found = operator_table.table(["GELU"], "cpu", show=quiet)
    problems = {row["dtype"]: row.get("problem") for row in found["rows"]}
    assert problems == {"f32": None, "f16": "RuntimeError: out of luck", "bf16": None}
    monkeypatch.setattr(operator_table, "LIMIT", dict.fromkeys(operator_table.ALL, -1.0))
    monkeypatch.setattr(operator_table, "measure", original)
    _, found = operator_table.table(["GELU"], "cpu", show=quiet)
    assert all("differs from torch's" in row["problem"] for row in found["rows"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "nothing"], "no operator has 'nothing' in its name"),
        (["--record", "--device", "cpu"], "--record keeps the whole table"),
        (["--record", "--only", "add"], "--record keeps the whole table"),
    ],
)
def test_requests_that_cannot_be_met_are_reported(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["operator_table.py", *arguments])
    with pytest.raises(SystemExit):
        operator_table.main()
    assert says in capsys.readouterr().err


def test_the_record_covers_the_table() -> None:
    if not operator_table.RECORD.exists():
        pytest.skip("not recorded yet: run `python lessons/day16_whole_models/operator_table.py --record` on a GPU")
    content = json.loads(operator_table.RECORD.read_text())
    again = f"run `{content['command']}` on a GPU"
    recorded = {(row["operator"], row["kernel"], row["dtype"], row["size"]) for row in content["rows"]}
    every = {(s.operator, s.exercise, dtype, s.name) for s in operator_table.sizes() for dtype in s.dtypes}
    assert recorded == every, again
    assert [layer["name"] for layer in content["layers"]] == [layer.name for layer in fused_layer.LAYERS], again
    assert all(content[key] for key in ("gpu", "driver", "torch", "cuda", "compiler", "python", "date")), again
    for row in content["rows"]:
        assert "problem" in row or 0 < row["floor_us"] < 1.2 * row["device_us"], f"{row['operator']}: {again}"
    assert Path(ROOT / content["command"].split()[1]).is_file()
