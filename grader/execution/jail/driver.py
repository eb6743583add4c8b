"""Files and devices that CUDA's driver needs in the process that uses it, for the jail on a real GPU.

Found out by taking away one thing after the other, on an H200 with driver 580: without ``THREADS``, ``/sys`` or a
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
"""Files and folders that it reads."""

OF_ITSELF = ("/proc/self",)
"""What a process reads about itself."""

THREADS = "/proc/self/task"
"""Where it writes the names of its threads."""

_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-caps")


def devices() -> list[str]:
    """Return the GPUs and their two shared devices, to be read and written; with slices of GPUs (MIG) their rights, too."""
    return sorted(str(path) for pattern in _DEVICES for path in Path("/dev").glob(pattern))


@functools.cache
def libraries() -> tuple[Path, ...]:
    """libcuda.so.1 and what it loads by name from the folder where it lies; none without a driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    mapped = (line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines())
    folders = {Path(path[0]).parent for path in mapped if path and Path(path[0]).name.startswith("libcuda.so.")}
    return tuple(sorted(path for folder in folders for path in folder.glob("lib*.so*") if _of_the_driver(path)))


def _of_the_driver(path: Path) -> bool:
    return path.name.startswith(("libcuda.so", "libnvidia-")) and path.is_file()
