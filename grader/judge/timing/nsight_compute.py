"""Nsight Compute's counters of the kernels that a program launches.

ncu comes with the CUDA toolkit; where it says ERR_NVGPUCTRPERM, the machine's owner has to allow counters.
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
    """Each kernel that ``options`` have ncu look at, in the order of the launches: its name, and its figures.

    ``metrics``: by a name of one's own Nsight Compute's, and what its base unit is multiplied by. ``stalls``: what a
    warp waits for, by Nsight Compute's name of it; its figure "waits for ..." is in cycles for each instruction that
    the warp issues. Raises GraderError where there is no ncu, or it fails.
    """
    if shutil.which("ncu") is None:
        raise GraderError("there is no ncu on the PATH", "It comes with the CUDA toolkit.")
    figures = {**metrics}
    for what, stall in stalls.items():
        figures[f"waits for {what}"] = (f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio", 1.0)
    command = ["ncu", "--clock-control", "none", *options, "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(metric for metric, _ in figures.values()), *program]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout[done.stdout.find('"ID"') :])))[1:]  # the first has the units
    if done.returncode or not rows:
        raise GraderError(f"ncu failed, or saw no kernel:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [
        (
            row["Kernel Name"],
            {name: round(float(row[metric].replace(",", "")) * unit, 2) for name, (metric, unit) in figures.items()},
        )
        for row in rows
    ]
