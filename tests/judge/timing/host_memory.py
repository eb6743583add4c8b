"""A replacement for GPU memory that processes share."""

from __future__ import annotations

import os

import torch


class HostMemory:
    """A file in memory, which the simulator's runner maps as its device memory."""

    device = "cpu"

    def __init__(self, size: int) -> None:
        self.bytes = -(-size // 4096) * 4096
        self.file = os.memfd_create("device")
        os.ftruncate(self.file, self.bytes)
        self.tensor = torch.from_file(f"/proc/self/fd/{self.file}", shared=True, size=self.bytes, dtype=torch.uint8)

    def finish(self) -> None:
        """Do nothing, because the simulator works synchronously."""

    def forget_cached(self) -> None:
        """Do nothing, because the simulator has no cache."""

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)
