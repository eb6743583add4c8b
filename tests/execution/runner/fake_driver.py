"""A stand-in for the CUDA driver of a machine with one GPU, for ``grader.execution.runner.gpu``."""

from __future__ import annotations

import ctypes
from typing import Any

MAJOR, MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h."""


class FakeDriver:
    """The driver's functions. Like those of C, they store results through pointers and return an error code."""

    def __init__(self, major: int, minor: int, name: bytes = b"a GPU", code: int = 0) -> None:
        self._attributes = {MAJOR: major, MINOR: minor}
        self._name, self._code = name, code

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        """Return the first GPU's handle."""
        device._obj.value = 40 + ordinal
        return self._code

    def cuDeviceGetAttribute(self, value: Any, number: int, device: int) -> int:
        """Return an attribute."""
        assert device == 40
        value._obj.value = self._attributes[number]
        return 0

    def cuDeviceGetName(self, name: Any, length: int, device: int) -> int:
        """Return the GPU's name."""
        assert device == 40 and length > len(self._name)
        name.value = self._name
        return 0

    def cuDeviceGetUuid_v2(self, uuid: Any, device: int) -> int:
        """Return the bytes 0x01, 0x23, ..., 0xef, and again 0x01, ..., 0xef."""
        assert device == 40
        ctypes.memmove(uuid, bytes.fromhex("0123456789abcdef" * 2), 16)
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: int) -> int:
        """Return 24 GiB."""
        assert device == 40
        size._obj.value = 24 << 30
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        """Return a version."""
        version._obj.value = 13000
        return 0
