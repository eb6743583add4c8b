"""Default tolerances; ``grader.judge.comparison`` defines how errors are measured."""

from __future__ import annotations

DEFAULT = {"f64": 1e-11, "f32": 2e-5, "f16": 3e-3, "bf16": 1.6e-2}
"""The tolerance by dtype of the case: about forty roundings of f32 values, about six final roundings of 16-bit ones."""

LARGEST = 0.05
"""The largest tolerance of a task: ``grader.judge.comparison.compare`` gives the reason."""
