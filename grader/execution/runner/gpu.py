"""This machine's GPU: its architecture, its peak rates, and memory that a child process maps.

The grader allocates the memory of timed calls, writes the inputs there and reads the outputs. It allocates with the
driver's cuMemCreate, and passes a file descriptor of the memory to the child. Unlike the runtime's IPC handles, this
also works between users and process namespaces (CUDA Driver API, "Virtual Memory Management").
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
import uuid as uuids
from typing import Any

from grader.frontend.toolchain.gpus import runs
from grader.setup.errors import GraderError

_PINNED, _ON_DEVICE, _AS_FILE, _READ_WRITE = 1, 1, 1, 3
"""Constants of cuda.h.

CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR and
CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
"""

_CLOCK_KILOHERTZ, _MEMORY_KILOHERTZ, _BUS_BITS, _MAJOR, _MINOR = 13, 36, 37, 75, 76
"""Numbers of device attributes.

CU_DEVICE_ATTRIBUTE_CLOCK_RATE, _MEMORY_CLOCK_RATE, _GLOBAL_MEMORY_BUS_WIDTH, _COMPUTE_CAPABILITY_MAJOR and
_COMPUTE_CAPABILITY_MINOR.
"""


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
        """Reset to normal all L2 cache lines that a kernel marked as persisting (cudaAccessPropertyPersisting)."""
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
    """Return the UUID of the first GPU, as nvidia-smi shows it: ``GPU-1234...``."""
    content = (ctypes.c_ubyte * 16)()
    _ask("cuDeviceGetUuid_v2", content, _device())
    return f"GPU-{uuids.UUID(bytes=bytes(content))}"


def total_memory() -> int:
    """Return the size of the first GPU's memory in bytes."""
    size = ctypes.c_size_t()
    _ask("cuDeviceTotalMem_v2", ctypes.byref(size), _device())
    return size.value


def driver_version() -> int:
    """Return the newest version of CUDA that the driver supports, such as 13000 for CUDA 13.0."""
    version = ctypes.c_int()
    _ask("cuDriverGetVersion", ctypes.byref(version))
    return version.value


def gpu_architecture(needed: str = "sm_50") -> str:
    """Return the architecture of the first GPU, such as ``sm_90``.

    Raise an error if there is no GPU, or if it cannot run code for the architecture ``needed``. The driver is asked
    directly, because importing torch for this takes seconds.
    """
    found = f"sm_{_attribute(_MAJOR)}{_attribute(_MINOR)}"
    if not runs(found, needed):
        name = ctypes.create_string_buffer(256)
        _ask("cuDeviceGetName", name, len(name), _device())
        which = f"{needed.removesuffix('a')} only" if needed.endswith("a") else f"{needed} or newer"
        here = name.value.decode(errors="replace")
        raise GraderError(
            f"the exercise needs a GPU of {which}; the first GPU here, {here}, is {found}",
            "Use --device cpu: the simulated GPU runs it.",
        )
    return found


def require_torch() -> None:
    """Raise GraderError if torch cannot use the GPU, for example because it is built for CPUs."""
    import torch

    _driver()
    if not torch.cuda.is_available():
        raise GraderError(
            "torch cannot use the GPU of this machine",
            "Times are compared with torch. `grader doctor` shows the installed torch and the driver.",
        )


def start_context() -> None:
    """Create torch's CUDA context and load cuBLAS in a thread, while the caller waits for compilers."""

    def start() -> None:
        import torch

        with contextlib.suppress(RuntimeError):  # the first use of the GPU raises the error again
            small = torch.zeros(16, 16, device="cuda")
            torch.matmul(small, small)

    threading.Thread(target=start, daemon=True).start()


def _attribute(number: int) -> int:
    value = ctypes.c_int()
    _ask("cuDeviceGetAttribute", ctypes.byref(value), number, _device())
    return value.value


def _device() -> int:
    """Return the driver's handle of the first GPU."""
    device = ctypes.c_int()
    _ask("cuDeviceGet", ctypes.byref(device), 0)
    return device.value


def _ask(name: str, *arguments: Any) -> None:
    """Call the driver's function ``name``; raise GraderError if it returns an error."""
    if (code := getattr(_driver(), name)(*arguments)) != 0:
        raise GraderError(f"the GPU's driver does not answer: {name} returns error {code}")


@functools.cache
def _driver() -> Any:
    """Return the initialized CUDA driver; raise GraderError if it finds no GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        code = driver.cuInit(0)
    except OSError:
        code = -1
    if code != 0:
        raise GraderError(
            "there is no usable GPU here", "Use --device cpu, the simulated GPU. `grader doctor` shows what is missing."
        )
    return driver
