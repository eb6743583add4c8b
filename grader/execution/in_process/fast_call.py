"""Calls of a launcher on a GPU with only a few microseconds of overhead in Python.

A fast call accepts only the usual arguments: contiguous tensors of the right type on the current GPU, and numbers of
the exact Python type and in range. For other arguments it returns ``DECLINED`` without calling the launcher. The caller
must then use ``arguments.bind``, which is slower, accepts more, and raises errors that name the wrong argument.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from grader.frontend.dtypes import DTYPES
from grader.frontend.prototype import Prototype

DECLINED = -1
"""The result of a fast call that did not call the launcher, because an argument is unusual or wrong."""


class FastCall:
    """A launcher with preallocated C values for its arguments, one set for each Python thread."""

    def __init__(
        self,
        prototype: Prototype,
        entry: Callable[[Any], int],
        current_device: Callable[[], int],
        stream_of: Callable[[int], int],
    ) -> None:
        """Prepare calls of ``entry``, the C function that calls the launcher.

        ``current_device()`` returns the number of the current GPU; ``stream_of(number)`` returns the current stream of
        a GPU.
        """
        import torch

        self._entry, self._current_device, self._stream_of = entry, current_device, stream_of
        self._takes_stream = prototype.takes_stream
        parameters = [parameter for parameter in prototype.parameters if parameter.kind != "stream"]
        self._count = len(parameters)
        self._checks: list[tuple[bool, Any, Any]] = []
        """For each parameter: whether it is a pointer, the allowed tensor types or Python type, a number's range."""
        self._types: list[Any] = []
        for parameter in parameters:
            dtype = DTYPES.get(parameter.dtype)
            if parameter.kind == "pointer":
                allowed = None if dtype is None else frozenset(getattr(torch, name) for name in dtype.tensors)
                self._checks.append((True, allowed, None))
                self._types.append(ctypes.c_void_p)
                continue
            assert dtype is not None
            integer = dtype.range
            plain = isinstance(dtype.number, type) and dtype.name != "bool"
            self._checks.append((False, (int if integer else float) if plain else None, integer or (-1e38, 1e38)))
            self._types.append(dtype.number if plain else ctypes.c_uint64)
        self._local = threading.local()

    def __call__(self, given: tuple[Any, ...]) -> int:
        """Call the launcher on the current stream; return its CUDA error, or ``DECLINED``."""
        if len(given) != self._count:
            return DECLINED
        try:
            slots, addresses = self._local.slots
        except AttributeError:
            slots, addresses = self._local.slots = self._new_slots()
        current = self._current_device()
        for slot, (pointer, allowed, limits), value in zip(slots, self._checks, given):
            if not pointer:
                if type(value) is not allowed or not limits[0] <= value <= limits[1]:
                    return DECLINED
                slot.value = value
            elif value is None:
                slot.value = None
            else:
                try:
                    if (
                        (allowed is not None and value.dtype not in allowed)
                        or value.get_device() != current
                        or not value.is_contiguous()
                    ):
                        return DECLINED
                    slot.value = value.data_ptr()
                except (AttributeError, RuntimeError, TypeError):  # not a tensor, or a sparse tensor
                    return DECLINED
        if self._takes_stream:
            slots[-1].value = self._stream_of(current)
        return self._entry(addresses)

    def _new_slots(self) -> tuple[list[Any], Any]:
        slots = [kind() for kind in self._types] + [ctypes.c_void_p()] * self._takes_stream
        return slots, (ctypes.c_void_p * max(1, len(slots)))(*(ctypes.addressof(slot) for slot in slots))


def on_current_gpu(prototype: Prototype, entry: Callable[[Any], int]) -> FastCall:
    """Return a ``FastCall`` that uses torch's current GPU and stream."""
    import torch

    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    stream_of = raw_stream or (lambda device: int(torch.cuda.current_stream(device).cuda_stream))
    current = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device
    return FastCall(prototype, entry, current, stream_of)
