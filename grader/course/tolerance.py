"""How far an output may be from its reference where a task says nothing; ``grader.judge.comparison`` says what it is measured by."""

from __future__ import annotations

DEFAULT = {"f64": 1e-11, "f32": 2e-5, "f16": 3e-3, "bf16": 1.6e-2}
"""By the dtype of the case: some forty roundings of f32 values, about six of the final rounding of the short ones."""

LARGEST = 0.05
"""No task may ask for less precision than this: ``grader.judge.comparison.compare`` says why."""
