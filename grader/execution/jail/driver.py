"""The files and devices that CUDA's driver needs in the sandbox of a kernel on a real GPU.

The list was found by removing one item at a time, on an H200 with driver 580. Without ``THREADS``, ``/sys`` or a
device, cuInit fails.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

READ = (
    "/etc/ld.so.cache",
    "/proc/driver/nvidia",
    "/proc/devices",
    "/proc/modules",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/sys/vm",
    "/sys",
)
"""Files and folders that the driver reads."""

OWN_PROCESS = ("/proc/self",)
"""Files that the driver reads about its own process."""

THREADS = "/proc/self/task"
"""The folder in which the driver writes the names of its threads."""

_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-caps")


def devices() -> list[str]:
    """Return the device files: one for each GPU, two for the driver, and with MIG those of the instances."""
    return sorted(str(path) for pattern in _DEVICES for path in Path("/dev").glob(pattern))


@functools.cache
def libraries() -> tuple[Path, ...]:
    """Return libcuda.so.1 and the libraries that it loads from its folder; empty if no driver is installed."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    mapped = (line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines())
    folders = {Path(path[0]).parent for path in mapped if path and Path(path[0]).name.startswith("libcuda.so.")}
    found = (path for folder in folders for kind in ("libcuda.so*", "libnvidia-*.so*") for path in folder.glob(kind))
    return tuple(sorted(path for path in found if path.is_file()))
