"""Default tolerances; ``grader.judge.comparison`` defines how errors are measured."""

from __future__ import annotations

DEFAULT = {"f64": 1e-11, "f32": 2e-5, "f16": 3e-3, "bf16": 1.6e-2}
"""The tolerance by dtype of the case: about 40 rounding errors in f32, and about 6 in f16 and bf16."""

LARGEST = 0.05
"""The largest tolerance that a task may have. ``grader.judge.comparison.compare`` explains the value."""
