"""Measure how long a model takes from its files to its first token on this machine's GPU, step by step.

    python lessons/day16_whole_models/load.py            print a table
    python lessons/day16_whole_models/load.py --record   also write load_gpu.json, which the lesson shows

The models have the shapes of measure.py with random weights, which are written to temporary safetensors files. A new
process loads each model *cold*, after the file's pages were dropped from the page cache. At its end it reads the
weights once more *warm*, with the whole file in the page cache. The kernels are built before, into an empty cache,
while the files are written.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import torch  # noqa: E402

PROMPT = list(range(10, 20))
LONGEST = 1024
REPEATS = 7
STEPS = {
    "imports": "start Python, import torch and the models",
    "context": "create the CUDA context",
    "weights": "read the files, copy the weights to the GPU",
    "join": "join the weights of q, k and v, of gate and up",
    "kernels": "load the kernels: a prompt and a token, eagerly",
    "capture": "capture the graph of a token",
    "first": "capture the graph of the prompt, first token",
}
"""The steps up to the first token, in order."""


def load_one(folder: Path, dtype: torch.dtype, began: float) -> dict[str, float]:
    """Load the model in ``folder`` and return the seconds of each step. The process began at the time ``began``."""
    from llm.checkpoint import build, read_tensors
    from llm.config import read_config
    from llm.graph import DecodeGraph
    from llm.operators import Operators
    from persistent_decode import PersistentDecoder, pack

    found = {"imports": time.time() - began}

    def step(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        torch.cuda.synchronize()
        found[name] = time.perf_counter() - start
        return result

    step("context", lambda: torch.zeros(1, device="cuda"))
    config = read_config(folder)

    def whole_model() -> None:
        tensors = step("weights", lambda: read_tensors(folder, dtype, "cuda"))
        state = dict(tensors)  # `build` takes the tensors out
        model = step("join", lambda: build(config, tensors, Operators(device="cuda")))

        def eagerly() -> None:
            cache = model.new_cache(LONGEST)
            number = cache.create()
            with torch.inference_mode():
                model.operators.argmax(model.forward(cache.append({number: PROMPT}), cache))
                model.operators.argmax(model.forward(cache.append({number: [1]}), cache))

        step("kernels", eagerly)
        decode = step("capture", lambda: DecodeGraph(model, model.new_cache(LONGEST), LONGEST))
        step("first", lambda: decode.prefill(PROMPT))
        again = []
        for _ in range(REPEATS):
            step("again", lambda: decode.prefill(PROMPT))
            again.append(found["again"])
        found["again"] = sorted(again)[REPEATS // 2]
        packed = step("pack", lambda: pack(config, state, dtype, "cuda"))
        step("persistent", lambda: PersistentDecoder(packed, LONGEST).capture()())

    whole_model()
    gc.collect()
    torch.cuda.empty_cache()  # memory for the weights is allocated anew, as in the first reading
    step("weights_warm", lambda: read_tensors(folder, dtype, "cuda"))
    return found


def write_checkpoint(folder: Path, architecture: str, sizes: dict[str, Any], dtype: torch.dtype) -> int:
    """Write a checkpoint with random weights, wait until the disk has it, and return the file's size in bytes."""
    from llm.checkpoint import MODELS, ONE_FILE
    from llm.config import parse_config
    from safetensors.torch import save_file

    folder.mkdir()
    settings = {"model_type": architecture, **sizes}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    shapes = MODELS[architecture].shapes(parse_config(settings))
    torch.manual_seed(16)
    weights = {name: (torch.randn(shape, device="cuda", dtype=dtype) * 0.02).cpu() for name, shape in shapes.items()}
    save_file(weights, folder / ONE_FILE)
    with (folder / ONE_FILE).open("rb+") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def drop_from_page_cache(file: Path) -> None:
    """Drop a file's pages from the page cache. Pages that the disk does not have yet would stay."""
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def build_kernels() -> float:
    """Build the kernels that the models of models_gpu.json call, in parallel; return the seconds that it took."""
    from llm.operators import KERNELS
    from persistent_decode import KERNEL as PERSISTENT

    from grader.execution.build.build import build, compile_directly, plan_kernel

    models = json.loads((HERE / "models_gpu.json").read_text(encoding="utf-8"))["models"].values()
    files = {ROOT / call.partition(": ")[2] for model in models for call in model["calls"]} | {PERSISTENT}
    # The models of models_gpu.json have longer texts, which paged_attention reads in parts.
    files.add(ROOT / "solutions" / f"{KERNELS['attention_decode']}.cu")
    major, minor = torch.cuda.get_device_capability()
    begin = time.perf_counter()
    with ThreadPoolExecutor(len(files)) as pool:
        plans = [plan_kernel(file, "cuda", False, arch=f"sm_{major}{minor}") for file in sorted(files)]
        list(pool.map(lambda plan: build(plan, compile_directly), plans))
    return time.perf_counter() - begin


def pinned_bandwidth() -> float:
    """Return the bytes per second of a copy of 1 GiB from pinned memory to the GPU."""
    source = torch.empty(2**30, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(source, device="cuda")
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source, non_blocking=True)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return source.nbytes / sorted(times)[2]


def measure(only: str) -> dict[str, Any]:
    """Measure the models whose name has ``only``, print each when it is done, and return the figures."""
    from measure import SHAPES

    models: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="load-") as place, ThreadPoolExecutor(1) as pool:
        os.environ["GRADER_CACHE"] = str(Path(place) / "kernels")  # for this process and those that load
        building = pool.submit(build_kernels)
        names = [name for name in SHAPES if only in name]
        folders = {name: Path(place) / str(number) for number, name in enumerate(names)}
        for name in names:
            architecture, dtype, sizes = SHAPES[name]
            models[name] = {"file_bytes": write_checkpoint(folders[name], architecture, sizes, dtype)}
        copied = pinned_bandwidth()
        torch.cuda.empty_cache()
        built = building.result()
        print(f"kernels built in {built:.1f} s; pinned memory is copied at {copied / 1e9:.1f} GB/s", flush=True)
        for name in names:
            dtype = SHAPES[name][1]
            drop_from_page_cache(folders[name] / "model.safetensors")
            command = [sys.executable, __file__, "--one", str(folders[name]), str(dtype).removeprefix("torch.")]
            done = subprocess.run([*command, repr(time.time())], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{name} could not be loaded: the process ended with status {done.returncode}")
            steps = json.loads(done.stdout.splitlines()[-1])
            models[name]["seconds"] = {step: round(seconds, 5) for step, seconds in steps.items()}
            show(name, models[name])
    return {"build_seconds": round(built, 1), "pinned_gigabytes_per_second": round(copied / 1e9, 1), "models": models}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the steps of one model as a table."""
    seconds, gigabytes = found["seconds"], found["file_bytes"] / 1e9
    print(f"\n{name}: a file of {gigabytes:.2f} GB")
    for step, what in STEPS.items():
        print(f"  {what:50}{seconds[step]:9.3f} s")
    print(f"  {'all':50}{sum(seconds[step] for step in STEPS):9.3f} s")
    print(f"  {'the weights again, from the page cache':50}{seconds['weights_warm']:9.3f} s")
    print(f"  {'the prompt again':50}{seconds['again']:9.5f} s")
    print(f"  {'pack the weights for the persistent kernel':50}{seconds['pack']:9.3f} s")
    print(f"  {'load and capture the persistent kernel, one token':50}{seconds['persistent']:9.3f} s", flush=True)


def main() -> None:
    """Measure, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Time the steps from a model's files to its first token on the first GPU of the machine that "
        "runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write load_gpu.json, which the lesson shows")
    parser.add_argument("--only", metavar="TEXT", default="", help="only models whose name contains TEXT, such as 0.5B")
    parser.add_argument("--one", nargs=3, metavar=("FOLDER", "DTYPE", "BEGAN"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder, dtype, began = arguments.one
        print(json.dumps(load_one(Path(folder), getattr(torch, dtype), float(began))))
        return
    from grader.judge.timing.sources import write_record  # here, because the processes that load do not need it

    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    found = measure(arguments.only)
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/load.py --record",
            **found,
        }
        path = HERE / "load_gpu.json"
        write_record(path, result, ROOT)
        print(f"recorded in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
