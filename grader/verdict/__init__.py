"""What a check found, as facts: every other part of the grader makes these, draws them, or keeps them."""

from __future__ import annotations

from grader.verdict.facts import (
    ERROR,
    FAILED,
    PASSED,
    SCHEMA_VERSION,
    SKIPPED,
    STAGES,
    BarResult,
    CaseResult,
    Diagnostic,
    Finding,
    KernelResources,
    OutputResult,
    SourceLine,
    Stage,
    Timing,
    Verdict,
    WorstElement,
)

__all__ = [
    "ERROR",
    "FAILED",
    "PASSED",
    "SCHEMA_VERSION",
    "SKIPPED",
    "STAGES",
    "BarResult",
    "CaseResult",
    "Diagnostic",
    "Finding",
    "KernelResources",
    "OutputResult",
    "SourceLine",
    "Stage",
    "Timing",
    "Verdict",
    "WorstElement",
]
