"""Attacks on the clock of the stage *fast*: kernels that try to appear faster than they are, on a real GPU.

``python -m tests.gpu.timing_attacks [--out FILE.json] [--record] [NAME...]`` times the honest solution of an exercise
before and after the attacks of tests/attacks/gpu, which all call this solution. For each attack it prints the time by
events in the attack's process, the time by the grader's own clock, and the share of the honest time that the attack
saved. 5 % or more is reported as a failure. ``--recorded`` prints the table of the record and needs no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.course import course_root, find
from grader.judge.timing.sources import write_record
from grader.setup.errors import GraderError

ATTACKS = Path(__file__).parents[1] / "attacks" / "gpu"
RECORD = ATTACKS / "h200.json"
EXERCISE = "day04_linear/linear_register_tiled"
SIZE = "large"
MOST_GAIN = 0.05


@dataclass
class Row:
    """The measured times of one kernel."""

    name: str
    tries: str
    """The first line of the attack's file, which describes the attack."""
    sha256: str
    events_us: float | None = None
    """The median of the times in the attack's process, or None if it could not be measured."""
    verified_us: float | None = None
    off_us: float = 0.0
    problem: str = ""
    gained: float | None = None
    """The share of the honest kernel's time that the attack saved; None if the grader rejected it."""


def source_of(attack: Path | None) -> str:
    """Return the honest solution, renamed to ``honest``, followed by the attack, which may call it."""
    entry = find(EXERCISE)
    text = entry.solution.read_text(encoding="utf-8")
    if attack is None:
        return text
    launcher = f'extern "C" void {entry.variable}('
    assert text.count(launcher) == 1
    return text.replace(launcher, "static void honest(") + "\n" + attack.read_text(encoding="utf-8")


def attacks(names: list[str]) -> list[Path]:
    """Return the attack files whose names contain one of ``names`` (default: all)."""
    return [path for path in sorted(ATTACKS.glob("*.cu")) if not names or any(name in path.stem for name in names)]


def measure(row: Row, kernel: Any, runner: Path, nothing: Any, machine: Any) -> Row:
    """Time one kernel with both clocks."""
    import torch

    from grader.execution.runner import tiers
    from grader.execution.runner.buffers import prepare
    from grader.execution.runner.client import Child
    from grader.execution.runner.gpu import GpuMemory, gpu_architecture
    from grader.judge.timing import bench, events, verified

    task = find(EXERCISE).load()
    case = next(case for case in task.bench if case.name == SIZE)
    call = bench.draw_on_gpu(task, case, "f32", task.case_seed(1, case, "f32"))
    jail = tiers.in_force(gpu_architecture()).jail
    try:
        with Child(runner, kernel.library, jail=jail) as child, prepare(call, quick=True) as buffers:
            sets, flush = bench.rotation(sum(t.numel() * 4 for t in call.tensors.values()), machine.l2_bytes)
            row.events_us = events.percentiles(bench.time_in_child(task, call, buffers, child, 40, sets, flush))[
                "median_us"
            ]
    except GraderError as error:
        print(f"  {row.name}: no times by events: {error}")
    torch.cuda.empty_cache()
    result = verified.verify(
        task,
        [(case, "f32")],
        lambda: Child(runner, kernel.library, jail=jail),
        lambda: Child(runner, nothing.library, jail=jail),
        GpuMemory,
        machine.limits(),
    )[0]
    row.problem, row.off_us = result.problem, result.standard_error
    row.verified_us = None if result.problem else result.microseconds
    return row


def run(names: list[str]) -> dict[str, Any]:
    """Build all kernels, then time them one after another."""
    import torch

    from grader.execution.build.build import compile_kernel
    from grader.execution.runner.gpu import gpu_architecture
    from grader.execution.runner.program import build_runner
    from grader.judge.timing.machine import measure_machine
    from grader.judge.timing.verified import NOTHING

    arch = gpu_architecture()
    files: list[tuple[str, Path | None]] = [
        ("honest", None),
        *((p.stem, p) for p in attacks(names)),
        ("honest again", None),
    ]
    with tempfile.TemporaryDirectory() as folder:

        def build(item: tuple[int, tuple[str, Path | None]]) -> Any:
            place = Path(folder) / str(item[0]) / "kernel.cu"
            place.parent.mkdir()
            place.write_text(source_of(item[1][1]), encoding="utf-8")
            return compile_kernel(place, "cuda", checks=False, arch=arch)

        with ThreadPoolExecutor(8) as pool:
            kernels = list(pool.map(build, enumerate(files)))
        nothing, runner = compile_kernel(NOTHING, "cuda", checks=False, arch=arch), build_runner("cuda", arch)
        machine = measure_machine()
        rows = []
        for (name, path), kernel in zip(files, kernels):
            text = path.read_text(encoding="utf-8") if path else ""
            tries = text.splitlines()[0].removeprefix("// ") if text else "The honest solution without an attack."
            row = Row(name, tries, hashlib.sha256(text.encode()).hexdigest())
            rows.append(measure(row, kernel, runner, nothing, machine))
            print(describe(rows[-1]), flush=True)
    honest = [row.verified_us for row in rows if row.name.startswith("honest") and row.verified_us]
    if not honest:
        raise GraderError("the honest kernel could not be timed")
    for row in rows:
        if row.verified_us is not None:
            row.gained = 1 - row.verified_us / min(honest)
    return {
        "version": 1,
        "exercise": EXERCISE,
        "size": SIZE,
        "gpu": machine.device,
        "driver": machine.driver,
        "cuda": machine.cuda,
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": "python -m tests.gpu.timing_attacks --record",
        "rows": [asdict(row) for row in rows],
    }


def describe(row: Row) -> str:
    """Return one line of the table."""
    events = "" if row.events_us is None else f"{row.events_us:,.1f}"
    verified = "" if row.verified_us is None else f"{row.verified_us:,.1f} +- {row.off_us:,.1f}"
    said = row.problem or ("" if row.gained is None else f"gained {row.gained:+.1%}")
    return f"{row.name:20} {events:>10} {verified:>20}  {said}".rstrip()


def undetected(content: dict[str, Any]) -> list[Row]:
    """Return the attacks that gained time without being rejected."""
    rows = [Row(**row) for row in content["rows"]]
    return [row for row in rows if not row.problem and (row.gained is None or row.gained >= MOST_GAIN)]


def show(content: dict[str, Any]) -> None:
    """Print the table."""
    print(
        f"{content['exercise']}, {content['size']}: {content['gpu']}, driver {content['driver']}, CUDA "
        f"{content['cuda']}, ",
        end="",
    )
    print(f"torch {content['torch']}, {content['date']}: {content['command']}")
    print(f"{'kernel':20} {'events, us':>10} {'own clock, us':>20}")
    for row in content["rows"]:
        print(describe(Row(**row)))


def main() -> int:
    """Run the attacks; return 1 if an attack gained time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the attacks' names (default: all)")
    parser.add_argument("--out", type=Path, help="write the rows to this file")
    parser.add_argument("--record", action="store_true", help="write the rows to the record in tests/attacks/gpu")
    parser.add_argument("--recorded", action="store_true", help="print the record")
    arguments = parser.parse_args()
    if arguments.record and arguments.names:
        parser.error("--record needs all attacks: omit the names")
    try:
        content = json.loads(RECORD.read_text()) if arguments.recorded else run(arguments.names)
    except GraderError as error:
        print(error, file=sys.stderr)
        return 2
    except FileNotFoundError:
        print(f"nothing is recorded yet in {RECORD.relative_to(course_root())}", file=sys.stderr)
        return 2
    show(content)
    for path in (arguments.out, RECORD if arguments.record else None):
        if path is not None:
            write_record(path, content, course_root())
    away = undetected(content)
    print(
        f"{len(away)} of {len(content['rows'])} kernels gained time"
        + (f": {', '.join(row.name for row in away)}" if away else "")
    )
    return 1 if away else 0


if __name__ == "__main__":
    sys.exit(main())
