"""The GPUs that lessons draw rooflines for: ``grader/frontend/toolchain/gpus.py`` has the table."""

from __future__ import annotations

from grader.frontend.toolchain.gpus import GPUS, Gpu
from grader.frontend.toolchain.gpus import find_gpu as gpu

__all__ = ["GPUS", "Gpu", "gpu"]
