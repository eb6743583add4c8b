"""Nsight Compute's counters of a day's solutions, to explain the goals that they miss.

    python -m tests.gpu.profile DAY               profiles each size that misses a goal
    python -m tests.gpu.profile DAY EXERCISE...   profiles only the sizes of these exercises
    python -m tests.gpu.profile ... --record      also writes profiles_gpu.json, which the lesson shows

ncu empties the caches before each kernel, and excludes the launch overhead. A launcher that starts several kernels has
a column for each.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from typing import Any

from grader.course import Course, course_root
from grader.frontend.dtypes import torch_dtype
from grader.judge.timing import nsight_compute
from grader.judge.timing.bench import draw_on_gpu
from grader.judge.timing.goals import reached
from grader.judge.timing.sources import write_record
from grader.setup.errors import GraderError

FILE = "profiles_gpu.json"
METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "DRAM, MB read": ("dram__bytes_read.sum", 1e-6),
    "DRAM, MB written": ("dram__bytes_write.sum", 1e-6),
    "DRAM, % of peak": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "L2, % of peak": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "issue slots, % used": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1.0),
    "integer and logic unit, %": ("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 1.0),
    "float unit, %": ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", 1.0),
    "tensor cores, % of time": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 1.0),
    "warps per SM": ("sm__warps_active.avg.per_cycle_active", 1.0),
    "registers": ("launch__registers_per_thread", 1.0),
}
"""By name: Nsight Compute's metric, and the factor of its base unit (ns, bytes)."""
STALLS = {
    "global memory": "long_scoreboard",
    "shared memory": "short_scoreboard",
    "a barrier": "barrier",
    "the arithmetic unit": "math_pipe_throttle",
    "a fixed latency": "wait",
    "a wgmma": "gmma",
}
"""Reasons why warps wait, with Nsight Compute's names: cycles per issued instruction."""


def missed(day: str) -> list[tuple[str, str, str]]:
    """Return exercise, size and dtype of each recorded size of a day that misses a goal; of several dtypes, one."""
    rows: dict[tuple[str, str], str] = {}
    for found in reached(course_root(), day):
        for row in found.missed:
            if row.timing is not None:
                rows.setdefault((found.goal.exercise, row.size), row.dtype)
    return [(*place, dtype) for place, dtype in rows.items()]


def short(name: str) -> str:
    """Return an exercise's name without its day."""
    return name.rpartition("/")[2]


def run(name: str, size: str, dtype: str) -> None:
    """Launch a solution twice. The profiler counts the kernels of the second launch."""
    import torch

    from grader import load_kernel

    entry = Course().find(name)
    exercise = entry.load()
    kernel = load_kernel(entry.solution, device="cuda")
    (case,) = (case for case in exercise.bench if case.name == size)
    call = draw_on_gpu(exercise, case, dtype, seed=1)
    tensors = {name: tensor.cuda() for name, tensor in call.tensors.items()}
    for name, shape in call.output_shapes.items():
        if name not in tensors:
            tensors[name] = torch.empty(*shape, dtype=torch_dtype(call.output_dtypes[name]), device="cuda")
    arguments = [
        tensors[parameter.name] if parameter.is_pointer else call.scalars[parameter.name]
        for parameter in exercise.parameters(dtype)
        if not parameter.is_stream
    ]
    launcher = getattr(kernel, exercise.launcher(dtype))
    launcher(*arguments)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    launcher(*arguments)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def profile(name: str, size: str, dtype: str) -> dict[str, dict[str, float]]:
    """Return the figures of each kernel that the launcher starts, by the kernel's name."""
    program = [sys.executable, "-m", "tests.gpu.profile", Course().find(name).day, "--run", name, size, dtype]
    found = nsight_compute.count(["--profile-from-start", "off"], program, METRICS, STALLS)
    return {kernel.split("(")[0].split("<")[0].split()[-1]: figures for kernel, figures in found}


def main() -> None:
    """Profile and print; with --record also write the record."""
    parser = argparse.ArgumentParser(description="Nsight Compute's counters of the sizes that miss a goal")
    parser.add_argument("day", help="the day's folder")
    parser.add_argument("names", nargs="*", metavar="EXERCISE", help="only these exercises; the others' rows are kept")
    parser.add_argument("--record", action="store_true", help=f"write {FILE} for the lesson")
    parser.add_argument("--run", nargs=3, metavar=("EXERCISE", "SIZE", "DTYPE"), help="only launch, for the profiler")
    arguments = parser.parse_args()
    if arguments.run:
        return run(*arguments.run)
    rows = [row for row in missed(arguments.day) if not arguments.names or short(row[0]) in arguments.names]
    if unknown := {*arguments.names} - {short(row[0]) for row in rows}:
        raise SystemExit(f"no size of {', '.join(sorted(unknown))} misses a goal in the recorded times")
    file = course_root() / "lessons" / arguments.day / FILE
    kernels: dict[str, Any] = json.loads(file.read_text())["kernels"] if arguments.names and file.exists() else {}
    kernels = {label: figures for label, figures in kernels.items() if label.split(",")[0] not in arguments.names}
    for name, size, dtype in rows:
        try:
            found = profile(name, size, dtype)
        except GraderError as error:
            raise SystemExit(f"{short(name)}, {size}, {dtype}: {error}") from None
        for kernel, figures in found.items():
            label = f"{short(name)}, {size}, {dtype}" + (f": {kernel}" if len(found) > 1 else "")
            kernels[label] = figures
            print(label, flush=True)
            for figure, value in figures.items():
                print(f"    {figure:36}{value:12.2f}", flush=True)
    if arguments.record:
        import torch

        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(),
            "command": f"python -m tests.gpu.profile {arguments.day} --record",
            "kernels": kernels,
        }
        renewed = tuple({f"solutions/{name}.cu" for name, _, _ in rows})
        write_record(file, result, course_root(), renewed if arguments.names else None)
    return None


if __name__ == "__main__":
    main()
