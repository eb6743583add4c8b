"""Warns before pip downloads gigabytes of a build of torch that this machine does not need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NOTICE = (
    "There is no NVIDIA GPU here, but pip usually chooses a build of torch for CUDA, which needs several GB.\n"
    "The course needs only the build for CPUs. To choose that one, press Ctrl-C and run:  make TORCH=cpu"
)


def has_nvidia_gpu() -> bool:
    """Return whether the driver or nvidia-smi reports an NVIDIA GPU. In WSL, only nvidia-smi does."""
    if any(Path("/proc/driver/nvidia/gpus").glob("*")):
        return True
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and "GPU" in answer.stdout
