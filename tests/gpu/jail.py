"""The jail for kernels on a real GPU: attacks, its overhead, and several graders that share the GPU.

``python -m tests.gpu.jail [--record] [--steps attacks,cost,together]``, on a machine with a GPU:

- ``attacks`` compiles attacks of tests/attacks/run that target files, networks or processes with nvcc, and runs them on
  the GPU in each tier that works here. None may pass. A correct and a wrong kernel run as controls.
- ``cost`` measures the seconds of a check (builds and correct), of starting a child and loading a kernel, and of one
  request, in each tier and without a jail: medians of alternating runs.
- ``together`` runs four graders at once, each with a different kernel and all stages. Their verdicts must equal those
  of single runs.

It takes about 90 seconds. The results of each step are written before the next one begins.

``--record`` writes the results to tests/attacks/gpu/jail_h200.json. ``--recorded`` prints them and needs no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader.course import course_root, find
from grader.judge.timing.sources import write_record
from tests.attacks.conftest import HERE, REACHES_OUTSIDE, exercise, wanted_places

RECORD = HERE / "gpu" / "jail_h200.json"
STEPS = ("attacks", "cost", "together")
RUNS = 7
AT_ONCE = (
    "day04_linear/transpose",
    "day15_performance/pipelined_norm",
    "day06_flash_attention/flash_attention_debug",
    "day02_reductions/row_sum_debug",
)
"""Exercises whose solutions are graded at the same time. A fault is added to the last one; the first two are timed."""

RIGHT, WRONG = "distance = 16;", "distance = 8;"
MOST_SECONDS = 100
"""Time limit in seconds for one grader."""


def tiers_here(arch: str) -> list[str]:
    """Return the tiers that work on this machine."""
    from grader.execution.runner import tiers

    found = []
    for tier in ("bwrap", "landlock"):
        reason = tiers.why_not(tier, arch)
        found += [] if reason else [tier]
        print(f"{tier}: {reason or 'holds'}", flush=True)
    return found


def attacks(tiers: list[str]) -> list[dict[str, str]]:
    """Return the outcome of each attack in each tier."""
    from grader.judge import check

    with wanted_places() as places, tempfile.TemporaryDirectory() as name:
        files = {}
        for path in [HERE / "controls" / f"{control}.cu" for control in ("honest", "wrong")] + [
            HERE / "run" / f"{attack}.cu" for attack in REACHES_OUTSIDE
        ]:
            text = (HERE / "prelude.cu").read_text() + path.read_text()
            for word, place in places.items():
                text = text.replace(word, place)
            files[path.stem] = Path(name) / path.stem / "twice.cu"
            files[path.stem].parent.mkdir()
            files[path.stem].write_text(text)
        before = sorted(os.listdir(places["@FOLDER@"]))

        def judge(tier: str, attack: str) -> dict[str, str]:
            verdict = check(exercise(), files[attack], device="cuda", seed=1, stages=["builds", "correct"])
            stage = verdict.failed_stage
            cases = stage.cases if stage else []
            why = sorted({case.problem for case in cases if case.problem}) or ([stage.summary] if stage else [])
            left = sorted(os.listdir(places["@FOLDER@"])) != before
            return {
                "tier": tier,
                "attack": attack,
                "isolation": verdict.isolation,
                "stage": stage.name if stage else "",
                "problem": ", ".join(why) + (", and left files behind" if left else ""),
            }

        rows = []
        for tier in tiers:
            os.environ["GRADER_JAIL"] = tier
            judge(tier, "honest")  # builds the shared libraries before the parallel runs
            with ThreadPoolExecutor(8) as pool:
                rows += list(pool.map(lambda attack, tier=tier: judge(tier, attack), files))
        os.environ.pop("GRADER_JAIL", None)
    return rows


def escaped(rows: list[dict[str, str]]) -> list[str]:
    """Return the attacks that passed or left files behind, and the controls with a wrong verdict."""
    bad = []
    for row in rows:
        deserved = row["stage"] == ("" if row["attack"] == "honest" else "correct")
        if not deserved or "left" in row["problem"] or row["isolation"] != row["tier"]:
            bad.append(f"{row['attack']} in {row['tier']}")
    return bad


def cost(tiers: list[str], arch: str) -> dict[str, dict[str, float]]:
    """Return median seconds of a check, of starting a child that loads a kernel and the driver, and of a request."""
    from grader.execution.build.build import compile_kernel
    from grader.execution.jail.running import NO_JAIL, Jail
    from grader.execution.runner.client import Child
    from grader.execution.runner.program import build_runner
    from grader.judge import check
    from grader.judge.timing.verified import NOTHING

    kernel, runner = compile_kernel(NOTHING, "cuda", checks=False, arch=arch), build_runner("cuda", arch)
    seconds: dict[str, dict[str, list[float]]] = {
        tier: {"check": [], "start": [], "awake": []} for tier in ["none", *tiers]
    }
    with tempfile.TemporaryDirectory() as name:
        honest = Path(name) / "twice.cu"
        honest.write_text((HERE / "prelude.cu").read_text() + (HERE / "controls/honest.cu").read_text())
        for round_ in range(RUNS + 1):
            for tier, took in seconds.items():
                os.environ["GRADER_JAIL"] = tier
                began = time.perf_counter()
                verdict = check(exercise(), honest, device="cuda", seed=round_, stages=["builds", "correct"])
                took["check"].append(time.perf_counter() - began)
                assert verdict.passed and verdict.isolation == tier
                began = time.perf_counter()
                with Child(runner, kernel.library, jail=NO_JAIL if tier == "none" else Jail(tier, gpu=True)) as child:
                    child.start()
                    took["start"].append(time.perf_counter() - began)
                    for _ in range(20):
                        began = time.perf_counter()
                        child.request("awake")
                        took["awake"].append(time.perf_counter() - began)
        os.environ.pop("GRADER_JAIL", None)
    return {  # excludes the first round, which compiles
        tier: {
            "check_seconds": round(statistics.median(took["check"][1:]), 4),
            "start_seconds": round(statistics.median(took["start"][1:]), 4),
            "awake_seconds": round(statistics.median(took["awake"][20:]), 6),
        }
        for tier, took in seconds.items()
    }


def together() -> list[dict[str, Any]]:
    """Return the results of each kernel's stages, alone and with all graders at once."""
    with tempfile.TemporaryDirectory() as name:
        jobs = [(entry.name, entry.solution) for entry in map(find, AT_ONCE)]
        wrong = Path(name) / "wrong.cu"
        text = jobs[-1][1].read_text()
        assert text.count(RIGHT) == 1
        wrong.write_text(text.replace(RIGHT, WRONG))
        jobs[-1] = (jobs[-1][0], wrong)

        def grade(job: tuple[str, Path]) -> dict[str, Any]:
            result = Path(name) / f"{threading.get_ident()}.json"
            command = [sys.executable, "-m", "grader", "check", job[0], "--file", str(job[1]), "--seed", "1"]
            began = time.monotonic()
            row: dict[str, Any] = {"exercise": job[0], "file": job[1].name, "stages": {}, "cases": {}}
            try:
                subprocess.run(
                    [*command, "--device", "cuda", "--again", "--json", str(result)],
                    capture_output=True,
                    timeout=MOST_SECONDS,
                    check=False,
                )
                verdict = json.loads(result.read_text())
                result.unlink()
            except (subprocess.TimeoutExpired, OSError) as error:
                return {**row, "largest_us": None, "isolation": "", "fast": f"no verdict: {error}", "seconds": 0.0}
            stages = {stage["name"]: stage for stage in verdict["stages"]}
            return {
                **row,
                "stages": {name: stage["status"] for name, stage in stages.items()},
                "cases": Counter(case["status"] for case in stages["correct"]["cases"]),
                "largest_us": max((t["median_us"] for t in stages["fast"]["timings"]), default=None),
                "isolation": verdict["isolation"],
                "fast": stages["fast"]["summary"],
                "seconds": round(time.monotonic() - began, 1),
            }

        alone = [grade(job) for job in jobs]
        with ThreadPoolExecutor(len(jobs)) as pool:
            at_once = list(pool.map(grade, jobs))
    return [{"alone": a, "together": b} for a, b in zip(alone, at_once)]


def run(steps: list[str]) -> Iterator[dict[str, Any]]:
    """Run these steps, and yield the results after each."""
    import torch

    from grader.execution.runner.gpu import gpu_architecture

    arch = gpu_architecture()
    here = tiers_here(arch)
    content: dict[str, Any] = {
        "version": 2,
        "gpu": torch.cuda.get_device_name(0),
        "linux": os.uname().release,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": "python -m tests.gpu.jail --record",
        "tiers": here,
    }
    does = {"attacks": lambda: attacks(here), "cost": lambda: cost(here, arch), "together": together}
    for step in steps:
        began = time.monotonic()
        content[step] = does[step]()
        print(f"{step}: {time.monotonic() - began:.0f} s", flush=True)
        yield content


def show(content: dict[str, Any]) -> list[str]:
    """Print the results and return the failures."""
    bad = [] if content["tiers"] else ["no tier works here"]
    print(f"{content['gpu']}, Linux {content['linux']}, {content['date']}: {content['command']}")
    for row in content.get("attacks", []):
        print(f"{row['tier']:9} {row['attack']:26} {row['stage'] or 'passes':8} {row['problem']}")
    bad += escaped(content.get("attacks", []))
    for tier, times in content.get("cost", {}).items():
        start, call = times["start_seconds"] * 1e3, times["awake_seconds"] * 1e6
        whole = f"checks in {times['check_seconds'] * 1e3:.0f} ms, " if "check_seconds" in times else ""
        print(f"{tier:9} {whole}starts in {start:.0f} ms, wakes the device in {call:.0f} us")
    for pair in content.get("together", []):
        for how, row in pair.items():
            print(f"{how:9} {row['exercise']:40} {row['file']:20} {row['seconds']:5.1f} s  {row['fast']}")
        alone, at_once = ({what: row[what] for what in ("stages", "cases", "isolation")} for row in pair.values())
        if alone != at_once or not alone["stages"]:
            bad.append(f"{pair['alone']['exercise']} ({pair['alone']['file']}) at once with others")
    print(f"{len(bad)} not as it should be" + (f": {', '.join(bad)}" if bad else ""))
    return bad


def main() -> int:
    """Run the steps; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default=",".join(STEPS), help="comma-separated: attacks, cost, together")
    parser.add_argument("--out", type=Path, help="write the results to this file")
    parser.add_argument(
        "--record", action="store_true", help="update the record; steps that do not run keep their results"
    )
    parser.add_argument("--recorded", action="store_true", help="print the record")
    arguments = parser.parse_args()
    steps = arguments.steps.split(",")
    if unknown := sorted(set(steps) - set(STEPS)):
        parser.error(f"no step is called {', '.join(unknown)}; there are {', '.join(STEPS)}")
    if arguments.recorded and not RECORD.exists():
        print(f"nothing is recorded yet in {RECORD.relative_to(course_root())}", file=sys.stderr)
        return 2
    content = json.loads(RECORD.read_text()) if RECORD.exists() and (arguments.recorded or arguments.record) else {}
    for found in [] if arguments.recorded else run(steps):
        content |= found
        for path in (arguments.out, RECORD if arguments.record else None):
            if path is not None:
                write_record(path, content, course_root())
    return 1 if show(content) else 0


if __name__ == "__main__":
    sys.exit(main())
