"""The simulator's tests on a real GPU, which must produce the results that the tests expect from the simulator.

    python -m tests.gpu.simulator_tests              runs them
    python -m tests.gpu.simulator_tests --record     also writes lessons/can_i_believe_this/simulator_tests_h200.json

Each test calls kernels of tests/simulator/kernels with numpy arrays and compares every element with numpy's results or
with CUDA's documentation. Here nvcc builds the same files and a GPU runs them. Tests of findings, counters, orders of
threads and wrong kernels are left out, because only the simulator has these. A failing test is a difference between the
simulator and the GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course import course_root
from grader.judge.timing.sources import write_record

RECORD = Path(__file__).resolve().parents[2] / "lessons/can_i_believe_this/simulator_tests_h200.json"
TESTS = Path(__file__).resolve().parents[1] / "simulator"
FILES = (
    "atomics", "barriers", "cluster", "cooperative_groups", "cub", "cuda_barrier", "half", "launch", "math", "mbarrier", "ptx",  # noqa: E501
    "runtime_api", "shared_memory", "streams", "structures_by_value", "tensor_copies", "tensor_core", "vector_types", "warp", "wmma",  # noqa: E501
)  # fmt: skip
ALSO_THE_HOST = ("runtime_api", "streams")
"""Files whose launchers write results on the host. Simulated device memory allows that.

On the GPU, their arrays are in pinned memory.
"""

ONLY_SIMULATED = "only the simulator has"
DIFFERENT = {
    "test_barriers.py::test_a_grid_needs_a_cooperative_launch_that_fits": (
        "the simulated GPU has fewer SMs than an H200"
    ),
    "test_cluster.py::test_how_many_clusters_fit": "the simulated GPU has fewer SMs than an H200",
    "test_runtime_api.py::test_failures_say_what_cuda_says": (
        "a GPU does not detect small overruns and destroyed handles"
    ),
    "test_runtime_api.py::test_memory": (
        "in host code, the simulator accepts a __device__ variable's name as its device address"
    ),
    "test_runtime_api.py::test_streams_events_properties_occupancy": (
        "the number of registers depends on the machine code"
    ),
    "test_runtime_api.py::test_kernels_launch_kernels": (
        "kernels that launch kernels need nvcc -rdc=true, with which launchers are not built"
    ),
    "test_shared_memory.py::test_blocks_start_with_fresh_memory": (
        "the simulator fills shared memory before each block; a GPU does not"
    ),
    "test_shared_memory.py::test_static_memory_ends_at_48_kb[True-1]": (
        "for sm_90a, ptxas accepts more static shared memory than the 48 KB of the guide"
    ),
    "test_streams.py::test_allocations_of_a_capture_are_refused": (
        "CUDA adds an allocation to the graph; the simulator does not support that"
    ),
    "test_streams.py::test_queries": "a GPU may have finished before the query",
    "test_tensor_copies.py::test_the_driver_s_function_is_found": "the test expects a finding of the simulator",
    "test_warp.py::test_a_lane_that_takes_no_part_gives_nothing_useful": (
        "the value is undefined in CUDA; the simulator returns a pattern"
    ),
}
"""Tests that may fail on a GPU, with the reason. They run, but are counted separately."""


class FromGpu(dict[str, Any]):
    """A replacement for the simulator's report: no findings, and no counters."""

    def __missing__(self, key: str) -> Any:
        if key == "findings":
            return []
        pytest.skip(f"{ONLY_SIMULATED} a report's {key}")


@dataclass
class Outcome:
    """The result of one call of a launcher."""

    error: int
    report: FromGpu

    @property
    def output(self) -> str:
        """Return nothing: on a GPU, kernels print to the terminal."""
        pytest.skip(f"{ONLY_SIMULATED} the output at hand")


class KernelOnGpu:
    """A kernel file built by nvcc, with the interface of ``tests.simulator.harness.SimulatedKernel``."""

    checks = in_order = False

    def __init__(self, path: Path, checks: bool = False) -> None:
        from grader import load_kernel

        if checks:
            pytest.skip(f"{ONLY_SIMULATED} checks")
        self._launchers = load_kernel(path, device="cuda")._launchers
        self._pinned = path.stem in ALSO_THE_HOST

    def configure(self, **settings: object) -> None:
        """Accept the simulator's default settings; skip the test for any other, such as an order of threads."""
        if settings.get("schedule", "forward") != "forward" or settings.get("workers", 1) != 1:
            pytest.skip(f"{ONLY_SIMULATED} orders to choose from")

    def __call__(self, launcher: str, *arguments: Any) -> Outcome:
        """Run a launcher on copies of the arrays, and copy them back."""
        import torch

        from grader.execution.in_process.libsim import call_entry
        from tests.simulator.harness import _scalar

        called = self._launchers[launcher]
        values: list[Any] = []
        tensors: list[tuple[np.ndarray, Any]] = []
        given = iter(arguments)
        for parameter in called.prototype.parameters:
            if parameter.kind == "stream":
                values.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
                continue
            argument = next(given)
            if isinstance(argument, np.ndarray):
                copied = torch.from_numpy(argument.reshape(-1).view(np.uint8).copy())
                tensor = copied.pin_memory() if self._pinned else copied.cuda()
                tensors.append((argument, tensor))
                values.append(ctypes.c_void_p(tensor.data_ptr()))
            else:
                values.append(_scalar(parameter.dtype, argument))
        error = call_entry(called.entry, values)
        torch.cuda.synchronize()
        for array, tensor in tensors:
            array[...] = tensor.cpu().numpy().view(array.dtype).reshape(array.shape)
        return Outcome(error, FromGpu())


def pytest_collection_finish() -> None:
    """Replace the simulator by the GPU in the tests. pytest calls this hook in each worker."""
    sys.modules["tests.simulator.conftest"].SimulatedKernel = KernelOnGpu  # type: ignore[attr-defined]


class Counts:
    """A pytest plugin that collects the outcome of each test."""

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = {}
        self.failed: dict[str, str] = {}
        self.different: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of each test's setup, call and teardown."""
        if report.when != "call" and report.passed:
            return
        known = DIFFERENT.get(report.nodeid.removeprefix("tests/simulator/"))
        if known and report.when == "call":
            self.different[report.nodeid] = f"{report.outcome}: {known}"
            return
        skipped = report.skipped and ONLY_SIMULATED in str(report.longrepr)
        outcome = "left out" if skipped else report.outcome
        self.files.setdefault(Path(report.location[0]).stem, Counter())[outcome] += 1
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else report.longreprtext
            self.failed[report.nodeid] = " ".join(message.split())[:300]


def main() -> int:
    """Run the tests and print how many the GPU passed; with ``--record`` also write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(FILES)}")
    parser.add_argument("--workers", type=int, default=min(len(FILES), os.cpu_count() or 1))
    arguments = parser.parse_args()
    if arguments.record and arguments.names:
        parser.error("--record needs all figures: omit the names")
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("there is no GPU here")
    files = [str(TESTS / f"test_{name}.py") for name in arguments.names or FILES]
    counts = Counts()
    flags = [
        "-q",
        "--tb=short",
        "--timeout=120",
        "-p",
        __spec__.name,
        "-p",
        "no:cacheprovider",
        "-n",
        str(arguments.workers),
        "--dist",
        "loadfile",
    ]
    pytest.main([*flags, *files], plugins=[counts])
    for name, numbers in sorted(counts.files.items()):
        print(f"{name:28s}" + "  ".join(f"{count} {what}" for what, count in sorted(numbers.items())))
    if arguments.record:
        content = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "date": datetime.date.today().isoformat(),
            "command": "python -m tests.gpu.simulator_tests --record",
            "files": {name: dict(numbers) for name, numbers in sorted(counts.files.items())},
            "different": counts.different,
            "failed": counts.failed,
        }
        write_record(RECORD, content, course_root())
        print(f"recorded in {RECORD.name}")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
