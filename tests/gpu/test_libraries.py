"""The outputs of programs that use NVIDIA's libraries are parsed correctly, and plans are built once for each length.

These tests need no GPU.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from grader.course import course_root
from tests.gpu.libraries import timed_lines

OUTPUT = """\
of 1000 floats, two equal ones at 333 and 500 are the largest
workspace of CUB: 767 bytes
f16: GemmEx, sums in f32, no bias              error 2.0e-04      123.4 us
cub::DeviceReduce::ArgMax       12.1 us
"""


def test_lines_with_a_time_are_rows() -> None:
    assert timed_lines(OUTPUT, "16 x 4096") == [
        {"size": "16 x 4096", "name": "f16: GemmEx, sums in f32, no bias", "us": 123.4, "error": 2e-4},
        {"size": "16 x 4096", "name": "cub::DeviceReduce::ArgMax", "us": 12.1},
    ]


@pytest.fixture(scope="module")
def plans() -> ModuleType:
    path = course_root() / "lessons" / "day15_performance" / "cudnn_plans.py"
    spec = importlib.util.spec_from_file_location("cudnn_plans", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("step", "lengths", "built"),
    [(1, [5, 6, 5, 7], [5, 6, 7]), (4, [1, 4, 5, 8, 3], [4, 8]), (512, range(1, 1025), [512, 1024])],
)
def test_a_plan_is_built_once_for_each_length(
    plans: ModuleType, step: int, lengths: list[int], built: list[int]
) -> None:
    asked: list[int] = []
    cache = plans.PlanCache(lambda length: asked.append(length) or length, step)
    assert all(cache.plan(length) == cache.padded(length) >= length for length in lengths)
    assert asked == built
