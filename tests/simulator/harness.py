"""Build kernels for the simulator's tests from a file or text, and call them with numpy arrays and numbers.

Neither torch nor the grader is used. A call returns CUDA's error, the printed text, and the simulator's report.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.execution.build.build import compile_kernel, entry_point

KERNELS = Path(__file__).parent / "kernels"
COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}"))
    for name in ("g++", "clang++")
]

_DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int32": "i32", "int64": "i64", "uint16": "bf16"}
_CLOCKS = (time.perf_counter, time.thread_time, time.process_time)
"""Clocks of wall time, of the calling thread, and of all threads."""


def open_simulator(libsim: Path) -> ctypes.CDLL:
    """Load the simulator's library and declare the functions that take or return pointers."""
    sim = ctypes.CDLL(str(libsim))
    text, pointer, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
    sim.sim_tensor_alloc.restype = pointer
    sim.sim_tensor_alloc.argtypes = [text, text, ctypes.c_int, pointer, size, size]
    sim.sim_tensor_write.argtypes = sim.sim_tensor_read.argtypes = [pointer, pointer, size]
    sim.sim_expect_output.argtypes = sim.sim_tensor_readonly.argtypes = [pointer]
    sim.sim_writer.argtypes = [pointer, pointer]
    sim.sim_report.restype = sim.sim_take_output.restype = text
    return sim


@dataclass
class Outcome:
    """The result of one call of a launcher."""

    error: int
    output: str
    report: dict[str, Any]


class SimulatedKernel:
    """A loaded kernel file. ``kernel("launcher", array, number, ...)`` runs it and changes arrays in place.

    With ``constant_inputs``, arrays that a launcher takes as pointers to const are read-only, as when a kernel is
    judged.
    """

    in_order = True
    """True: lanes that execute the same instruction execute it one after another, unlike on a GPU."""

    def __init__(
        self, path: Path, checks: bool = False, compiler: str | None = None, constant_inputs: bool = False
    ) -> None:
        self.checks = checks
        self.constant_inputs = constant_inputs
        self.built = compile_kernel(path, "cpu", checks=checks, compiler=compiler)
        self.sim = open_simulator(self.built.libsim)
        self.configure(checks=int(checks), workers=1, schedule="forward", watchdog_seconds=10, trace=0, record="none")
        self._library = ctypes.CDLL(str(self.built.library))
        self.seconds = self.cpu_seconds = self.all_cpu_seconds = 0.0  # times of the launcher's last call
        self._launchers = {p.name: p for p in self.built.launchers}

    def configure(self, **settings: object) -> None:
        """Change settings of the simulator. Raise an error if a setting is unknown."""
        for key, value in settings.items():
            assert self.sim.sim_configure(key.encode(), str(value).encode()) == 0, f"{key}={value} was refused"

    def __call__(self, launcher: str, *arguments: Any) -> Outcome:
        """Run a launcher. The stream argument is added."""
        prototype = self._launchers[launcher]
        entry = getattr(self._library, entry_point(prototype))
        self.sim.sim_reset()
        values: list[Any] = []
        tensors: list[tuple[int, np.ndarray]] = []
        given = iter(arguments)
        for parameter in prototype.parameters:
            if parameter.kind == "stream":
                values.append(ctypes.c_void_p(None))
                continue
            argument = next(given)
            if isinstance(argument, np.ndarray):
                address = self._place(parameter.name, argument)
                if self.constant_inputs and parameter.const:
                    self.sim.sim_tensor_readonly(address)
                tensors.append((address, argument))
                values.append(ctypes.c_void_p(address))
            else:
                values.append(_scalar(parameter.dtype, argument))
        addresses = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(v) for v in values))
        started = [clock() for clock in _CLOCKS]
        error = entry(addresses)
        ended = [clock() for clock in _CLOCKS]
        self.seconds, self.cpu_seconds, self.all_cpu_seconds = (b - a for a, b in zip(started, ended, strict=True))
        for address, array in tensors:
            self.sim.sim_tensor_read(address, array.ctypes.data, array.nbytes)
        report = json.loads(self.sim.sim_report().decode(errors="replace"))
        output = self.sim.sim_take_output().decode(errors="replace")
        self.sim.sim_reset()
        return Outcome(error, output, report)

    def _place(self, name: str, array: np.ndarray) -> int:
        assert array.flags.c_contiguous
        shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        dtype = _DTYPES.get(str(array.dtype), "i32").encode()
        address = self.sim.sim_tensor_alloc(name.encode(), dtype, array.ndim, shape, array.nbytes, 0)
        assert address, "the arena is full"
        self.sim.sim_tensor_write(address, array.ctypes.data, array.nbytes)
        return address


def run(kernel: SimulatedKernel, launcher: str, *arguments: Any, **settings: object) -> Outcome:
    """Run a launcher of correct kernels with these settings. Assert that there is no error and no finding."""
    kernel.configure(**settings)
    outcome = kernel(launcher, *arguments)
    assert outcome.error == 0 and not outcome.report.get("findings"), outcome
    return outcome


def _scalar(dtype: str, value: Any) -> Any:
    types = {
        "f32": ctypes.c_float,
        "f64": ctypes.c_double,
        "i64": ctypes.c_longlong,
        "i32": ctypes.c_int,
        "bool": ctypes.c_bool,
    }
    return types.get(dtype, ctypes.c_int)(value)
