"""The GPUs that lessons draw rooflines for: ``grader/judge/timing/gpus.py`` has the table."""

from __future__ import annotations

from grader.judge.timing.gpus import GPUS, PeakRates, gpu

__all__ = ["GPUS", "PeakRates", "gpu"]
