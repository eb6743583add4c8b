"""Calls of launchers on libsim, the simulator's library, in this process.

A call copies its tensors to the simulator's memory, runs the launcher, and copies the tensors back. The simulator has a
single device, so a lock admits one call at a time.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.execution.in_process.arguments import Argument, dtype_name
from grader.setup.errors import GraderError

_turn = threading.RLock()


class Simulator:
    """A loaded libsim, called through its C interface (``runtime/api.h``)."""

    def __init__(self, path: Path) -> None:
        lib = ctypes.CDLL(str(path))
        lib.sim_tensor_alloc.restype = ctypes.c_void_p
        lib.sim_tensor_alloc.argtypes = [
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_size_t,
            ctypes.c_size_t,
        ]
        lib.sim_tensor_write.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        lib.sim_tensor_read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        lib.sim_tensor_write.restype = lib.sim_tensor_read.restype = None
        lib.sim_tensor_readonly.argtypes = [ctypes.c_void_p]
        lib.sim_tensor_readonly.restype = None
        lib.sim_configure.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        lib.sim_report.restype = lib.sim_take_output.restype = ctypes.c_char_p
        lib.sim_reset.restype = None
        self._lib = lib

    def configure(self, **settings: str) -> None:
        """Change settings, which stay in force until they are changed again."""
        for key, value in settings.items():
            if self._lib.sim_configure(key.encode(), value.encode()) != 0:
                raise GraderError(f"the simulator does not accept the setting {key}={value}")

    def call(self, entry: Any, arguments: Sequence[Argument], takes_stream: bool) -> tuple[int, str, str]:
        """Run a launcher on CPU tensors; return its CUDA error, the report as JSON, and the output of printf."""
        with _turn:
            self._lib.sim_reset()
            try:
                pointers = self._tensors(arguments)
                values = [
                    ctypes.c_void_p(pointers[id(a.tensor)] if a.tensor is not None else None)
                    if a.value is None
                    else a.value
                    for a in arguments
                ]
                if takes_stream:
                    values.append(ctypes.c_void_p(None))
                error = call_entry(entry, values)
                for argument in arguments:
                    if argument.tensor is not None and not argument.parameter.const and argument.tensor.numel():
                        tensor = argument.tensor
                        self._lib.sim_tensor_read(pointers[id(tensor)], tensor.data_ptr(), _bytes(tensor))
                report = (self._lib.sim_report() or b"{}").decode(errors="replace")
                output = (self._lib.sim_take_output() or b"").decode(errors="replace")
            finally:
                self._lib.sim_reset()
        return error, report, output

    def _tensors(self, arguments: Sequence[Argument]) -> dict[int, int | None]:
        """Copy each tensor into the simulator's memory once, even if it is passed for several parameters."""
        placed: dict[int, int | None] = {}
        ranges: list[tuple[int, int, int | None, Argument]] = []
        for argument in arguments:
            tensor = argument.tensor
            if tensor is None or id(tensor) in placed:
                continue
            start, size = tensor.data_ptr(), _bytes(tensor)
            if size == 0:
                placed[id(tensor)] = None
                continue
            for other_start, other_size, device, other in ranges:
                if (start, size) == (other_start, other_size):
                    placed[id(tensor)] = device
                    break
                if start < other_start + other_size and other_start < start + size:
                    raise GraderError(
                        f"the memory of {argument.parameter.name} and {other.parameter.name} overlaps",
                        "Pass the same tensor, or tensors that do not overlap.",
                    )
            if id(tensor) in placed:
                continue
            device = self._place(argument)
            ranges.append((start, size, device, argument))
            placed[id(tensor)] = device
        written = {placed[id(a.tensor)] for a in arguments if a.tensor is not None and not a.parameter.const}
        for _, _, device, _ in ranges:
            if device not in written:
                self._lib.sim_tensor_readonly(device)
        return placed

    def _place(self, argument: Argument) -> int:
        tensor, size = argument.tensor, _bytes(argument.tensor)
        shape = (ctypes.c_int64 * max(1, tensor.dim()))(*tensor.shape)
        # A slice of a tensor gets the alignment that it would have on a GPU.
        offset = tensor.storage_offset() * tensor.element_size() % 256
        name, dtype = argument.parameter.name.encode(), dtype_name(tensor).encode()
        device = self._lib.sim_tensor_alloc(name, dtype, tensor.dim(), shape, size, offset)
        if not device:
            raise GraderError(
                f"{argument.parameter.name} does not fit into the simulated GPU's memory ({size:,} bytes)"
            )
        self._lib.sim_tensor_write(device, tensor.data_ptr(), size)
        return device


@functools.lru_cache(maxsize=8)
def open_simulator(path: Path) -> Simulator:
    """Return the simulator for the libsim at ``path``. Load each libsim only once."""
    return Simulator(path)


def call_entry(entry: Any, values: Sequence[Any]) -> int:
    """Call a launcher's entry point with the addresses of ``values``; return its CUDA error."""
    addresses = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
    return entry(addresses)


def _bytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()
