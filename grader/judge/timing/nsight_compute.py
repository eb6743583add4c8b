"""Nsight Compute's counters of the kernels that a program launches.

ncu comes with the CUDA toolkit; for the error ERR_NVGPUCTRPERM, the machine's owner must allow access to counters.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from grader.setup.errors import GraderError


def count(
    options: Sequence[str], program: Sequence[str], metrics: Mapping[str, tuple[str, float]], stalls: Mapping[str, str]
) -> list[tuple[str, dict[str, float]]]:
    """Return the name and the figures of each kernel that ``options`` select, in the order of the launches.

    ``metrics``: Nsight Compute's metric and a factor for its base unit, by a name of the caller's choice. ``stalls``: a
    description, by Nsight Compute's stall reason; its figure "waits for ..." is in cycles per issued instruction.
    A GraderError means
    that there is no ncu, or that it failed.
    """
    if shutil.which("ncu") is None:
        raise GraderError("ncu is not on the PATH", "It comes with the CUDA toolkit.")
    figures = {**metrics}
    for what, stall in stalls.items():
        figures[f"waits for {what}"] = (f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio", 1.0)
    command = ["ncu", "--clock-control", "none", *options, "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(metric for metric, _ in figures.values()), *program]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout[done.stdout.find('"ID"') :])))[1:]  # the first row has the units
    if done.returncode or not rows:
        raise GraderError(f"ncu failed, or saw no kernel:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [
        (
            row["Kernel Name"],
            {name: round(float(row[metric].replace(",", "")) * unit, 2) for name, (metric, unit) in figures.items()},
        )
        for row in rows
    ]
