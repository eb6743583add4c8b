"""Makes the content of ``results.json``: a verdict's facts, and a ``text`` for each record named in ``WORDED``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grader.setup.files import write_file
from grader.verdict import Verdict
from grader.verdict.wording import bars, cases, findings, limits, outputs, stages


def results(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as lists, dicts, texts and numbers, with the ``text`` of each record in ``WORDED``."""
    data = verdict.to_dict()
    for stage, shown in zip(verdict.stages, data["stages"]):
        shown["text"] = stages.text(stage)
        for case, shown_case in zip(stage.cases, shown["cases"]):
            shown_case["text"] = cases.text(case)
            for output, shown_output in zip(case.outputs, shown_case["outputs"]):
                shown_output["text"] = outputs.text(output)
            for finding, shown_finding in zip(case.findings, shown_case["findings"]):
                shown_finding["text"] = findings.text(finding)
        for finding, shown_finding in zip(stage.findings, shown["findings"]):
            shown_finding["text"] = findings.text(finding)
        for bar, shown_bar in zip(stage.bars, shown["bars"]):
            shown_bar["text"] = bars.text(bar)
        for limit, shown_limit in zip(stage.time_bars, shown["time_bars"]):
            shown_limit["text"] = bars.time_text(limit)
        if stage.bound is not None:
            shown["bound"]["text"] = limits.text(stage.bound)
    return data


def as_json(verdict: Verdict) -> str:
    """Return the text of a ``results.json``."""
    return json.dumps(results(verdict), indent=2, allow_nan=False) + "\n"


def save(verdict: Verdict, path: str | Path) -> None:
    """Write a ``results.json``."""
    write_file(path, as_json(verdict))
