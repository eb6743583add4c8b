"""Runs Nsight Compute (ncu), and returns the hardware counters of the kernels that a program launches.

ncu is part of the CUDA toolkit. The error ERR_NVGPUCTRPERM means that an administrator of the machine must allow access
to the counters.
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

    Args:
        options: ncu's options, for example to select kernels.
        program: the command line of the program.
        metrics: for each figure's name, Nsight Compute's metric and a factor that converts its base unit.
        stalls: for each description, Nsight Compute's stall reason. The figure's name is "waits for DESCRIPTION"; its
            unit is cycles per issued instruction.

    Raises:
        GraderError: ncu is not installed, or it failed.
    """
    if shutil.which("ncu") is None:
        raise GraderError("ncu is not on the PATH", "Install the CUDA toolkit, which contains it.")
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
