"""Warns before pip downloads gigabytes of a build of torch that this machine does not need."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader.setup.display import megabytes
from grader.setup.failures import Failure
from grader.setup.installer import Installer

_SECONDS = 10.0  # the time limit of one request for a file's size


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


def notice(installer: Installer, pip: Sequence[str | Path], flags: Sequence[str]) -> str:
    """Return a notice if pip would choose a build of torch for CUDA although this machine has no GPU; else empty."""
    if has_nvidia_gpu():
        return ""
    report = installer.folder.scratch / "torch.json"
    command = [*pip, "install", "--dry-run", "--report", report, "--use-feature=fast-deps", *flags]
    try:
        installer.run([*command, "-c", "constraints.txt", "torch"], "Asking pip which torch it would install")
        planned = json.loads(report.read_text(encoding="utf-8"))["install"]
    except (Failure, OSError, ValueError, KeyError):
        return ""  # the installation will report the same error
    return in_words(planned)


def in_words(planned: list[dict[str, Any]]) -> str:
    """Return the notice about an installation that pip planned; empty if pip chose no build of torch for CUDA."""
    versions = {package["metadata"]["name"].lower(): package["metadata"]["version"] for package in planned}
    if "torch" not in versions or not any(name.startswith("nvidia-") for name in versions):
        return ""
    sizes = sizes_of([package["download_info"]["url"] for package in planned])
    known_size = megabytes(sum(size for size in sizes if size))
    if None not in sizes:
        amount = f"{known_size} in {len(sizes)} packages"
    elif any(sizes):
        amount = f"more than {known_size} in {len(sizes)} packages"
    else:
        amount = f"{len(sizes)} packages of unknown size"
    return (
        f"There is no NVIDIA GPU here, and pip chooses torch {versions['torch']}, a build for CUDA: {amount}.\n"
        "The course needs only the build for CPUs. To choose that one, press Ctrl-C and run:  make TORCH=cpu"
    )


def sizes_of(addresses: list[str]) -> list[int | None]:
    """Return the size in bytes of the file at each address; None if unknown."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(_size_of, addresses))


def _size_of(address: str) -> int | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme == "file":
            return os.path.getsize(urllib.request.url2pathname(parts.path))
        trusted = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
        question = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(question, timeout=_SECONDS, context=trusted) as answer:
            return int(answer.headers["Content-Length"])
    return None
