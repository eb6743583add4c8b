"""The fake simulator of the runner's tests, also used by the tests of ``grader bench``, and a fake GPU."""

from __future__ import annotations

import pytest

from grader.judge.timing import bench as b
from grader.judge.timing import events
from grader.judge.timing.machine import Machine
from tests.execution.runner.conftest import libraries
from tests.judge.timing.host_memory import HostMemory

__all__ = ["libraries", "pretended_gpu"]


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the GPU by the simulator and the times by fixed ones. All else is real."""
    compile_kernel, build_runner = b.compile_kernel, b.build_runner
    monkeypatch.setattr(b, "GPU", "cpu")
    monkeypatch.setattr(b, "gpu_architecture", lambda *_: "sm_90")
    monkeypatch.setattr(b, "compile_kernel", lambda path, *_, **__: compile_kernel(path, "cpu", checks=False))
    monkeypatch.setattr(b, "build_runner", lambda *_: build_runner("cpu"))
    machine = Machine("NVIDIA H200", l2_bytes=16384, copy_gigabytes_per_second=1000.0)
    monkeypatch.setattr(b, "measure_machine", lambda: machine)
    monkeypatch.setattr(b, "uuid", lambda: "GPU-of-this-test")
    monkeypatch.setattr(b, "GpuMemory", HostMemory)

    def time_calls(functions, runs: int = 0, flush_bytes: int = 0, pace: events.Pace = events.THOROUGH) -> list[float]:
        for function in functions:
            function()
        return [3.0] * (runs or 20)

    monkeypatch.setattr(b, "time_on_gpu", time_calls)
    monkeypatch.setattr(events, "PAUSE", 0.0)
