"""The tables of day 15's timeline, from invented events."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from grader.course import course_root


@pytest.fixture(scope="module")
def timeline() -> ModuleType:
    """Load the lesson's file, which is not in a package."""
    path = course_root() / "lessons" / "day15_performance" / "timeline.py"
    spec = importlib.util.spec_from_file_location("timeline", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event(cat: str, name: str, ts: float, dur: float, correlation: int) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


def token(at: float, number: int) -> list[dict[str, Any]]:
    """Return the events of one token: two launches of 5 us, kernels of 2 and 3 us, and a copy that the host awaits."""
    return [
        event("cuda_runtime", "cudaLaunchKernel", at, 5, number),
        event("kernel", "void at::native::first<8>()", at + 6, 2, number),
        event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, number + 1),
        event("kernel", "second", at + 17, 3, number + 1),
        event("cuda_runtime", "cudaMemcpyAsync", at + 20, 2, number + 2),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 23, 1, number + 2),
        event("cuda_runtime", "cudaStreamSynchronize", at + 22, 4, number + 3),
    ]


def test_summary(timeline: ModuleType) -> None:
    events = [{"ph": "M", "name": "process_name"}, *token(0, 1), *token(100, 11), *token(200, 21)]
    found = timeline.summary(events)
    assert (found["span"], found["busy"], found["kernels"]) == (224, 18, 6)
    launches, waits = found["cuda_api_sum"][:2]
    assert (launches["name"], launches["count"], launches["total"], launches["avg"]) == ("cudaLaunchKernel", 6, 30, 5)
    assert (waits["name"], waits["percent"]) == ("cudaStreamSynchronize", pytest.approx(100 * 12 / 48))
    assert [row["name"] for row in found["cuda_gpu_kern_sum"]] == ["second", "first<8>()"]
    assert found["cuda_kern_exec_sum"] == {"api": 5, "queue": 1.5, "kernel": 2.5}
    assert found["gaps"] == {"med": 9, "avg": pytest.approx((9 + 86 + 9 + 86 + 9) / 5), "max": 86}
    one = found["one_token"]
    assert one["us"] == 100 and [name for _, _, name in one["device"]][:2] == ["first<8>()", "second"]
    assert [start for start, _, _ in one["host"]] == [76, 86, 96, 98]


def test_kernels_of_one_graph_share_a_launch(timeline: ModuleType) -> None:
    one = [
        event("cuda_runtime", "cudaGraphLaunch", 0, 8, 1),
        event("kernel", "first", 10, 2, 1),
        event("kernel", "second", 13, 2, 1),
        event("gpu_memcpy", "Memcpy DtoH", 16, 1, 2),
    ]
    other = [{**each, "ts": each["ts"] + 50, "args": {"correlation": each["args"]["correlation"] + 2}} for each in one]
    found = timeline.summary([*one, *other])
    assert found["cuda_kern_exec_sum"] == {"api": 8, "queue": 2, "kernel": 2} and found["gaps"]["med"] == 1


def test_a_profiler_without_cupti_is_an_error(timeline: ModuleType) -> None:
    with pytest.raises(SystemExit, match="CUPTI is not available"):
        timeline.summary([])
