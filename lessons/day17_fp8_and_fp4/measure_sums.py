"""Compare sums of FP8 products on this machine's GPU with the simulator's, whose accumulators are an assumption.

    python lessons/day17_fp8_and_fp4/measure_sums.py            prints a table
    python lessons/day17_fp8_and_fp4/measure_sums.py --record   also writes sums_gpu.json, which the lesson shows

Both run fp8_sums.cu on the same numbers: with all sums in the accumulators of wgmma, and promoted every 128 of k. The
table has the errors of both, and the share of sums that are equal in every bit.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from grader import load_kernel  # noqa: E402  (in the folder that was added above)
from grader.judge.timing.sources import write_record  # noqa: E402

DEPTHS = [128, 512, 2048, 4096, 8192]
MEANS = [0.0, 3.0]


def compared(device: str) -> list[dict[str, float | int | bool]]:
    """Return a row for each depth, each mean of the inputs and each way to sum.

    ``device`` computes the sums that are compared with the CPU's.
    """
    theirs, ours = (load_kernel(HERE / "fp8_sums.cu", device=name) for name in (device, "cpu"))
    generator = torch.Generator().manual_seed(17)
    rows: list[dict[str, float | int | bool]] = []
    for mean in MEANS:
        for depth in DEPTHS:
            a, b = ((torch.randn(n, depth, generator=generator) + mean).to(torch.float8_e4m3fn) for n in (64, 128))
            exact = a.double() @ b.double().T
            for promote in (False, True):
                sums = []
                for kernel, place in ((theirs, device), (ours, "cpu")):
                    y = torch.empty(64, 128, device=place)
                    operands = (each.view(torch.uint8).to(place) for each in (a, b))
                    kernel.fp8_sums(*operands, y, depth, promote)
                    sums.append(y.cpu())
                errors = [float((each - exact).norm() / exact.norm()) for each in sums]
                rows.append(
                    {
                        "mean": mean,
                        "k": depth,
                        "promoted": promote,
                        "gpu_error": errors[0],
                        "simulator_error": errors[1],
                        "equal": float((sums[0] == sums[1]).double().mean()),
                    }
                )
    return rows


def main() -> None:
    """Compare and print; with --record also write the record."""
    parser = argparse.ArgumentParser(
        description="Compare sums of FP8 products on the simulator with those on the first GPU of the machine that "
        "runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write sums_gpu.json, which the lesson shows")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    rows = compared("cuda")
    print(f"{'mean':>5}{'k':>6}  {'promoted':9}{'error, GPU':>12}{'simulator':>11}{'equal sums':>12}")
    for row in rows:
        promoted = "every 128" if row["promoted"] else "never"
        print(
            f"{row['mean']:5.1f}{row['k']:6}  {promoted:9}{row['gpu_error']:12.4%}{row['simulator_error']:11.4%}"
            f"{row['equal']:12.1%}"
        )
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure_sums.py --record",
            "rows": rows,
        }
        path = HERE / "sums_gpu.json"
        write_record(path, result, HERE.parents[1])
        print(f"recorded in {path.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
