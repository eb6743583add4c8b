"""The GPU's properties come from the driver, without torch."""

from __future__ import annotations

import pytest
import torch

from grader.execution.runner import gpu
from grader.setup.errors import GraderError
from tests.execution.runner.fake_driver import FakeDriver


def test_the_driver_describes_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: FakeDriver(8, 6))
    monkeypatch.setattr(torch, "cuda", None)  # torch takes seconds to import
    assert gpu.gpu_architecture() == gpu.gpu_architecture("sm_80") == "sm_86"
    assert gpu.uuid() == "GPU-01234567-89ab-cdef-0123-456789abcdef"
    assert gpu.driver_version() == 13000
    assert gpu.total_memory() == 24 << 30
    with pytest.raises(GraderError, match="needs a GPU of sm_90 or newer; the first GPU here, a GPU, is sm_86"):
        gpu.gpu_architecture("sm_90")


def test_an_error_of_the_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: FakeDriver(8, 6, code=101))
    with pytest.raises(GraderError, match="cuDeviceGet returns error 101"):
        gpu.gpu_architecture()


def test_a_torch_for_processors_cannot_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: FakeDriver(9, 0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(GraderError, match="torch cannot use the GPU"):
        gpu.require_torch()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    gpu.require_torch()
