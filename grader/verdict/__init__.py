"""The data types of a verdict. Other parts of the grader create verdicts, show them and store them."""

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
    Diagnosis,
    Diagnostic,
    KernelResources,
    OutputResult,
    SourceLine,
    Stage,
    TimeBarResult,
    TimeBound,
    Timing,
    UnitTime,
    Verdict,
    WorstElement,
)
from grader.verdict.finding import Finding, Memory, Side, merged

__all__ = [
    "ERROR",
    "FAILED",
    "PASSED",
    "SCHEMA_VERSION",
    "SKIPPED",
    "STAGES",
    "BarResult",
    "CaseResult",
    "Diagnosis",
    "Diagnostic",
    "Finding",
    "KernelResources",
    "Memory",
    "OutputResult",
    "Side",
    "SourceLine",
    "Stage",
    "TimeBarResult",
    "TimeBound",
    "Timing",
    "UnitTime",
    "Verdict",
    "WorstElement",
    "merged",
]
