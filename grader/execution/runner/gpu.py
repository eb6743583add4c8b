"""This machine's GPU: its architecture, its peak rates, and memory that a child process maps.

The grader allocates the memory of timed calls, writes the inputs there and reads the outputs. It allocates with the
driver's cuMemCreate, and passes a file descriptor of the memory to the child. Unlike the runtime's IPC handles, this
also works between users and process namespaces (CUDA Driver API, "Virtual Memory Management").
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from grader.frontend.toolchain.gpus import runs
from grader.setup.errors import GraderError

_PINNED, _ON_DEVICE, _AS_FILE, _READ_WRITE = 1, 1, 1, 3
"""Constants of cuda.h.

CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR and
CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
"""

_CLOCK_KILOHERTZ, _MEMORY_KILOHERTZ, _BUS_BITS = 13, 36, 37
"""Numbers of device attributes: CU_DEVICE_ATTRIBUTE_CLOCK_RATE, _MEMORY_CLOCK_RATE, _GLOBAL_MEMORY_BUS_WIDTH."""


class SharingFailed(GraderError):
    """An error of a driver that cannot share memory between processes, for example under WSL. No kernel causes it."""


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUDA's C structure CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """CUDA's C structure CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class GpuMemory:
    """Device memory that is shared with a child process.

    ``tensor`` is the memory as a uint8 tensor in this process, ``file`` its file descriptor for the child, and
    ``bytes`` its size. Close it after use.
    """

    device = "cuda"

    def __init__(self, size: int) -> None:
        import torch

        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the context current
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._address, self.file = ctypes.c_uint64(), -1
        wanted = _Properties(_PINNED, _AS_FILE, _Location(_ON_DEVICE, torch.cuda.current_device()), None)
        grain = ctypes.c_size_t()
        self._ask("cuMemGetAllocationGranularity", ctypes.byref(grain), ctypes.byref(wanted), 0)
        self.bytes = -(-size // grain.value) * grain.value
        handle, file = ctypes.c_uint64(), ctypes.c_int(-1)
        self._ask("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(self.bytes), ctypes.byref(wanted), _u64(0))
        try:
            self._ask("cuMemExportToShareableHandle", ctypes.byref(file), handle, _AS_FILE, _u64(0))
            self.file = file.value
            size_, zero = ctypes.c_size_t(self.bytes), ctypes.c_size_t(0)
            self._ask("cuMemAddressReserve", ctypes.byref(self._address), size_, zero, _u64(0), _u64(0))
            self._ask("cuMemMap", self._address, size_, zero, handle, _u64(0))
        finally:
            self._ask("cuMemRelease", handle)  # the memory stays allocated for the mapping and the file
        access = _Access(wanted.location, _READ_WRITE)
        self._ask("cuMemSetAccess", self._address, size_, ctypes.byref(access), ctypes.c_size_t(1))
        view = {"shape": (self.bytes,), "typestr": "|u1", "data": (self._address.value, False), "version": 3}
        self.tensor = torch.as_tensor(type("View", (), {"__cuda_array_interface__": view})(), device="cuda")

    def finish(self) -> None:
        """Wait until the device has completed all work of this process."""
        import torch

        torch.cuda.synchronize()

    def forget_cached(self) -> None:
        """Make L2 cache lines normal that a kernel marked as persisting (cudaAccessPropertyPersisting)."""
        self._ask("cuCtxResetPersistingL2Cache")

    def close(self) -> None:
        """Free the memory."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        if self._address.value:
            del self.tensor
            self.finish()
            self._ask("cuMemUnmap", self._address, ctypes.c_size_t(self.bytes))
            self._ask("cuMemAddressFree", self._address, ctypes.c_size_t(self.bytes))
            self._address.value = 0

    def _ask(self, name: str, *arguments: Any) -> None:
        """Call the driver's function ``name``; raise SharingFailed if it returns an error."""
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise SharingFailed(f"the GPU's driver cannot share memory: {name} returns error {code}")


def _u64(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


def peak_bandwidth() -> float:
    """Return the peak bandwidth of the device's memory in bytes per second: 2 transfers a clock x bus width."""
    return 2e3 * _attribute(_MEMORY_KILOHERTZ) * _attribute(_BUS_BITS) / 8


def highest_clock() -> float:
    """Return the highest clock rate of the SMs, in Hz."""
    return 1e3 * _attribute(_CLOCK_KILOHERTZ)


def uuid() -> str:
    """Return the UUID of the first GPU that torch uses, as nvidia-smi shows it: ``GPU-1234...``."""
    import torch

    gpu_architecture()  # raises the error if there is no GPU
    return f"GPU-{torch.cuda.get_device_properties(0).uuid}"


def _attribute(number: int) -> int:
    value = ctypes.c_int()
    driver = ctypes.CDLL("libcuda.so.1")
    code = driver.cuInit(0) or driver.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
    if code != 0:
        raise GraderError(
            f"the GPU's driver does not report the device attribute {number} (CUdevice_attribute): error {code}"
        )
    return value.value


def gpu_architecture(needed: str = "sm_50") -> str:
    """Return the architecture of the first GPU, such as ``sm_90``.

    Raise an error if there is no GPU, or if it cannot run code for the architecture ``needed``.
    """
    import torch

    if not torch.cuda.is_available():
        raise GraderError(
            "there is no usable GPU here", "Use --device cpu, the simulated GPU. `grader doctor` shows what is missing."
        )
    major, minor = torch.cuda.get_device_capability(0)
    found = f"sm_{major}{minor}"
    if not runs(found, needed):
        which = f"{needed.removesuffix('a')} only" if needed.endswith("a") else f"{needed} or newer"
        raise GraderError(
            f"the exercise needs a GPU of {which}; the first GPU here, {torch.cuda.get_device_name(0)}, is {found}",
            "Use --device cpu: the simulated GPU runs it.",
        )
    return found
