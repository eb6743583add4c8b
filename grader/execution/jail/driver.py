"""The files and devices that CUDA's driver needs, for the sandbox of kernels on a real GPU.

Determined by removing one item at a time, on an H200 with driver 580: without ``THREADS``, ``/sys`` or a device, cuInit
fails.
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
"""Files and folders that it reads."""

OF_ITSELF = ("/proc/self",)
"""The files that a process reads about itself."""

THREADS = "/proc/self/task"
"""The folder where it writes the names of its threads."""

_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-caps")


def devices() -> list[str]:
    """Return the devices of the GPUs and the two shared ones; with MIG, also the instances' capabilities."""
    return sorted(str(path) for pattern in _DEVICES for path in Path("/dev").glob(pattern))


@functools.cache
def libraries() -> tuple[Path, ...]:
    """Return libcuda.so.1 and the libraries that it loads by name from its folder; empty without a driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    mapped = (line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines())
    folders = {Path(path[0]).parent for path in mapped if path and Path(path[0]).name.startswith("libcuda.so.")}
    return tuple(sorted(path for folder in folders for path in folder.glob("lib*.so*") if _of_the_driver(path)))


def _of_the_driver(path: Path) -> bool:
    return path.name.startswith(("libcuda.so", "libnvidia-")) and path.is_file()
