"""Fixtures of the simulator's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.simulator.harness import KERNELS, SimulatedKernel


@pytest.fixture(scope="session")
def load() -> Callable[..., SimulatedKernel]:
    """Return a function: ``load("name")`` builds tests/simulator/kernels/name.cu once and loads it."""
    loaded: dict[tuple[str, bool], SimulatedKernel] = {}

    def load_once(name: str, checks: bool = False) -> SimulatedKernel:
        key = (name, checks)
        if key not in loaded:
            loaded[key] = SimulatedKernel(KERNELS / f"{name}.cu", checks=checks)
        loaded[key].configure(checks=int(checks), workers=1, schedule="forward", watchdog_seconds=10)
        return loaded[key]

    return load_once


@pytest.fixture(params=["forward", "reverse", "random:1", "random:2", "workers"])
def schedule(request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    """Return a setting of the scheduler. A correct kernel must give the same results with each."""
    if request.param == "workers":
        yield {"workers": 2, "schedule": "forward"}
    else:
        yield {"workers": 1, "schedule": request.param}
