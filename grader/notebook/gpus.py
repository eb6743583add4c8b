"""The GPUs that lessons draw rooflines for: ``grader/timing/gpus.py`` has the table."""

from __future__ import annotations

from grader.timing.gpus import GPUS, PeakRates, gpu

__all__ = ["GPUS", "PeakRates", "gpu"]
