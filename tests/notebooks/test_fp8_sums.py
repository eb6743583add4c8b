"""Day 17's comparison of FP8 sums: the table that its command prints, with the simulator in place of a GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parents[2] / "lessons/day17_fp8_and_fp4/measure_sums.py"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_sums", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_promotion_stops_the_growth_of_errors(measure: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "DEPTHS", [128, 1024])
    monkeypatch.setattr(measure, "MEANS", [3.0])
    shallow, shallow_promoted, deep, deep_promoted = measure.compared("cpu")
    assert all(row["equal"] == 1 for row in (shallow, shallow_promoted, deep, deep_promoted))
    assert shallow["gpu_error"] == shallow_promoted["gpu_error"]
    assert deep["gpu_error"] > 20 * shallow["gpu_error"]
    assert deep_promoted["gpu_error"] < 2 * shallow["gpu_error"]
