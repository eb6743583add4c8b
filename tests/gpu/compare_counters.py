"""Compare the simulator's counters with Nsight Compute's, kernel by kernel, and record the comparison.

``python -m tests.gpu.compare_counters --out FILE.json [NAME...]`` on a machine with a GPU, nvcc, ncu and g++. Each call
is run on the simulator and, under ``ncu``, on the GPU, with the same inputs. The counters of all kernels of a call are
summed. If names are given, only the rows of these calls are replaced in the file. ``--again`` updates the simulator's
counters of a record and needs no GPU.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.gpu.counted import Counted, build_ahead, compared, replace_rows, runnable

_MULTICAST = "l1tex__m_l1tex2xbar_read_requests_mem_global_op_tma_ld_dest_multicast"
"""The metric of TMA multicast requests, whose data go to several blocks of a cluster.

It counts a request once. A count of arriving sectors would count the request once for each block.

"""

METRICS = {
    "requests": [
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st",
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom",
        "l1tex__t_requests_pipe_lsu_mem_global_op_red",
        "smsp__inst_executed_op_tma_ld",
        "smsp__inst_executed_op_tma_st",
    ],
    "sectors": [
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_atom",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_red",
        "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld_dest_self",
        *(f"{_MULTICAST}_size_{bytes}B" for bytes in (32, 64, 96, 128)),
        "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
    ],
    "shared_requests": [
        "smsp__inst_executed_op_shared_ld",
        "smsp__inst_executed_op_shared_st",
        "smsp__inst_executed_op_ldsm",
        "smsp__inst_executed_op_shared_stsm",
        "smsp__inst_executed_op_ldgsts",
    ],
    "shared_wavefronts": [
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    ],
    "tensor_operations": [
        "sm__ops_path_tensor_src_fp16",
        "sm__ops_path_tensor_src_bf16_dst_fp32",
        "sm__ops_path_tensor_src_tf32_dst_fp32",
        "sm__ops_path_tensor_src_fp8",
        "sm__ops_path_tensor_src_int8",
    ],
    "operand_bytes": ["sm__sass_data_bytes_mem_shared_op_gmma"],
}
"""For each counter of the simulator, the metrics of ncu whose sum it equals; metrics that this GPU lacks are skipped.

The metrics end in an operation such as ``_ld``, because plain ``mem_shared`` is not zero even in kernels without
shared memory.
 """

SECTORS = {f"{_MULTICAST}_size_{bytes}B": bytes // 32 for bytes in (32, 64, 96, 128)}
"""The number of sectors per request, for metrics that count requests of a fixed size."""

ALLOWED = {
    "requests": 0.01,
    "sectors": 0.01,
    "shared_requests": 0.01,
    "shared_wavefronts": 0.05,
    "tensor_operations": 0.0,
    "operand_bytes": 0.0,
}
"""The maximum relative difference that counts as agreement.

Wavefronts can agree only if both compilers generate the same shared-memory instructions. For example, nvcc merges
neighboring loads of an unrolled loop into a 16-byte load, and g++ does not.
"""


MARKER = "spin_kernel"
"""The name of torch's spin kernel, which this program launches before each call as a marker."""


def kernels_for(items: list[Counted], device: str) -> dict[Path, Any]:
    """Return the loaded kernel of each file, built in parallel."""
    from grader.execution.in_process.kernel import load_kernel

    files = sorted({item.file for item in items})
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(files, pool.map(lambda file: load_kernel(file, device=device), files)))


def on_the_simulator(items: list[Counted]) -> list[dict[str, float]]:
    """Return the simulator's totals of each call."""
    kernels = kernels_for(items, "cpu")
    totals = []
    for item in items:
        item.call(kernels[item.file], "cpu")
        totals.append(dict(kernels[item.file].report.totals))
    return totals


def ncu_command(metrics: list[str], names: list[str]) -> list[str]:
    """Return the ncu command with this program as its target."""
    command = ["ncu", "--target-processes", "application-only", "--clock-control", "none", "--csv", "--page", "raw"]
    command += ["--print-units", "base", "--metrics", ",".join(f"{metric}.sum" for metric in metrics)]
    return [*command, sys.executable, "-m", "tests.gpu.compare_counters", "--target", *names]


def on_the_gpu(names: list[str]) -> list[list[dict[str, Any]]]:
    """Return ncu's counters of each call's kernel launches, in order."""
    known = [metric for group in METRICS.values() for metric in group]
    while True:
        done = subprocess.run(ncu_command(known, names), capture_output=True, text=True)
        missing = [metric for metric in known if f"Failed to find metric {metric}" in done.stdout + done.stderr]
        if not missing:
            break
        print(f"this GPU has no metric {', '.join(missing)}", flush=True)
        known = [metric for metric in known if metric not in missing]
    start = done.stdout.find('"ID"')
    if start < 0:
        raise SystemExit(f"ncu gave no table:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    rows = list(csv.DictReader(io.StringIO(done.stdout[start:])))
    calls: list[list[dict[str, Any]]] = []
    for row in rows[1:]:  # the first row contains the units
        if MARKER in row["Kernel Name"]:
            calls.append([])
            continue
        each = {metric: float(row[f"{metric}.sum"].replace(",", "") or 0) for metric in known}
        values = {
            name: sum(SECTORS.get(metric, 1) * each[metric] for metric in group if metric in known)
            for name, group in METRICS.items()
        }
        calls[-1].append({"kernel": row["Kernel Name"], **values, "metrics": each})
    return calls


def beside(name: str, ours: float, theirs: float) -> dict[str, float | bool]:
    """Return a counter of the simulator and of ncu, and whether they agree."""
    off = abs(ours - theirs) / theirs if theirs else float(ours != 0)
    return {"simulator": ours, "ncu": theirs, "difference": off, "agrees": off <= ALLOWED[name]}


def count_again(path: Path, names: list[str]) -> dict[str, Any]:
    """Return a record with the simulator's counters updated after a change of the simulator. It needs no GPU."""
    content = json.loads(path.read_text())
    rows = {row["name"]: row for row in content["rows"]}
    items = [item for item in compared(names) if item.name in rows]
    for item, totals in zip(items, on_the_simulator(items)):
        for name in ALLOWED:
            rows[item.name][name] = beside(name, float(totals.get(name, 0)), rows[item.name][name]["ncu"])
    return content


def compare(items: list[Counted], simulated: list[dict[str, float]], calls: list[list[dict[str, Any]]]) -> list[dict]:
    """Return a row with the counters of both sides for each call."""
    rows = []
    for item, totals, launches in zip(items, simulated, calls, strict=True):
        if len(launches) != totals["launches"]:
            print(f"{item.name} is left out: ncu saw {len(launches)} launches, the simulator {totals['launches']:.0f}")
            continue
        row: dict[str, Any] = {
            "name": item.name,
            "kernels": [launch["kernel"] for launch in launches],
            "metrics": {
                metric: sum(launch["metrics"][metric] for launch in launches) for metric in launches[0]["metrics"]
            },
        }
        for name in ALLOWED:
            row[name] = beside(name, float(totals.get(name, 0)), sum(launch[name] for launch in launches))
        rows.append(row)
    return rows


def versions() -> dict[str, str]:
    """Return the GPU and the versions of the programs that were used."""
    import torch

    def first(command: list[str], marker: str = "") -> str:
        text = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        return next((line.strip() for line in text if marker in line), "")

    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": first(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
        "ncu": first(["ncu", "--version"], "Version"),
        "nvcc": first(["nvcc", "--version"], "release"),
        "g++": first(["g++", "--version"]),
        "date": datetime.date.today().isoformat(),
        "command": "python -m tests.gpu.compare_counters --out FILE.json",
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table and the number of calls that agree."""
    for row in rows:
        cells = [
            f"{row[name]['simulator']:9.0f} {row[name]['ncu']:9.0f} {'' if row[name]['agrees'] else '!':1}"
            for name in ALLOWED
        ]
        print(f"{row['name'][:52]:52} {'  '.join(cells)}")
    agreed = {name: sum(row[name]["agrees"] for row in rows) for name in ALLOWED}
    print(f"{len(rows)} calls; agree: {agreed}")


def main() -> int:
    """Run both sides, print the table and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", action="store_true", help="update only the simulator's counters in --out")
    parser.add_argument("--target", action="store_true", help="run the calls as the program that ncu profiles")
    arguments = parser.parse_args()
    if arguments.again:
        if not arguments.out:
            parser.error("--again needs the record: --out FILE.json")
        content = count_again(arguments.out, arguments.names)
        write_record(arguments.out, content, course_root(), renewed=())
        show(content["rows"])
        return 0
    import torch

    items = list(runnable(compared(arguments.names)))
    if arguments.target:
        kernels = kernels_for(items, "cuda")
        for item in items:
            torch.cuda._sleep(1)  # MARKER
            item.call(kernels[item.file], "cuda")
            torch.cuda.synchronize()
        return 0
    build_ahead(item.file for item in items)  # before ncu starts, so that ncu does not profile the compiler
    rows = compare(items, on_the_simulator(items), on_the_gpu(arguments.names))
    show(rows)
    if arguments.out:
        renewed = replace_rows(arguments.out, rows, (item.file for item in items)) if arguments.names else None
        rows.sort(key=lambda row: str(row["name"]).partition("/")[0])  # by day; a new call comes last in its day
        write_record(arguments.out, {**versions(), "rows": rows}, course_root(), renewed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
