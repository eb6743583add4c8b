"""Put day 1's fused residual addition into transformers' GPT-NeoX, and measure what the whole program gains.

``python lessons/day16_whole_models/neox_residual.py [--record]`` on a GPU (about a minute): transformers' model in the
shape of Pythia 2.8B, with random weights, in f16. For both residuals (``use_parallel_residual`` true and false) it
compares the hidden states after some layers and the generated tokens with transformers' own, plants the classic fault
(the other residual), and times 30 tokens: transformers' layers (*original*), the same with our additions (*fused*), and
with our layers but torch's additions (*off*). A profile of *off* gives the share of the additions and, by Amdahl's law,
the most that any faster addition can gain. ``--layers N`` makes a smaller model.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]
from llm.fit import FusedResiduals  # noqa: E402
from llm.operators import Operators  # noqa: E402

from grader.judge.timing.sources import write_record  # noqa: E402

RECORD = HERE / "neox_residual_gpu.json"
PROMPT_TOKENS, TOKENS, WARMUP = 16, 30, 5
REPEATS = 15
"""The number of times that each variant generates the tokens, in turns; the record has the median time."""
LAYERS = (0, 1, 8, 16, 20, 32)
"""Layers whose hidden states are compared; 0 is the embedding."""
SIZES = {"vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32}


def make(parallel: bool, layers: int, device: str, dtype: torch.dtype, **sizes: int) -> Any:
    """Create transformers' model with random weights."""
    config = transformers.GPTNeoXConfig(
        **{**SIZES, **sizes},
        num_hidden_layers=layers,
        use_parallel_residual=parallel,
        eos_token_id=None,
        bos_token_id=None,
    )
    torch.manual_seed(16)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def generate(model: Any, ids: torch.Tensor, tokens: int) -> list[int]:
    """Return the ids that greedy decoding appends."""
    mask = torch.ones_like(ids)
    made = model.generate(ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
    return made[0, ids.shape[1] :].tolist()


def hidden_states(model: Any, ids: torch.Tensor) -> list[torch.Tensor]:
    """Return the residual stream after the embedding and after each layer, as float32.

    transformers normalizes the last entry of ``hidden_states``, so the last layer's output is taken by a hook.
    """
    last: list[torch.Tensor] = []
    layer = model.gpt_neox.layers[-1]
    hook = layer.register_forward_hook(lambda _, __, output: last.append(output))
    try:
        states = model(ids, output_hidden_states=True).hidden_states
    finally:
        hook.remove()
    return [state.float() for state in (*states[:-1], last[0])]


def errors(wanted: list[torch.Tensor], found: list[torch.Tensor]) -> dict[str, float]:
    """Return the largest error after each layer of LAYERS that the model has."""
    known = [layer for layer in LAYERS if layer < len(wanted)]
    return {str(layer): float(f"{(wanted[layer] - found[layer]).abs().max():.3g}") for layer in known}


def time_in_turns(ways: dict[str, Callable[[], Any]], tokens: int) -> dict[str, float]:
    """Return the median milliseconds per token of each variant; the variants take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(REPEATS + 1):
        for name, way in ways.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            way()
            torch.cuda.synchronize()
            if repeat:  # the first round warms up
                found[name].append((time.perf_counter() - begin) * 1e3 / tokens)
    return {name: round(statistics.median(times), 4) for name, times in found.items()}


def share_of_additions(way: Callable[[], Any]) -> float:
    """Return the additions' share of the GPU's busy time, by torch's profiler."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        way()
        torch.cuda.synchronize()
    rows = profile.key_averages()
    additions = sum(row.device_time_total for row in rows if row.key == "residual" and row.device_time_total)
    kernels = sum(row.self_device_time_total for row in rows if row.key != "residual")
    return additions / kernels


def call_microseconds(calls: int = 2000) -> dict[str, float]:
    """Return the host's time of one addition of 2,560 numbers: from Python to the launch, without waiting for it."""
    x = torch.ones(SIZES["hidden_size"], device="cuda", dtype=torch.float16)
    out = torch.empty_like(x)
    launch = Operators(device="cuda").launcher("residual_add", x.dtype)
    found = {}
    for name, call in {"torch": lambda: torch.add(x, x, out=out), "ours": lambda: launch(x, x, out, 2560)}.items():
        times = []
        for _ in range(7):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - begin) * 1e6 / calls)
        found[name] = round(statistics.median(times), 2)
    return found


def experiment(parallel: bool, layers: int) -> dict[str, Any]:
    """Measure one of the two residuals."""
    model = make(parallel, layers, "cuda", torch.float16)
    ids = torch.randint(0, SIZES["vocab_size"], (1, PROMPT_TOKENS), generator=torch.Generator().manual_seed(3)).cuda()
    wanted, states = generate(model, ids, TOKENS), hidden_states(model, ids)
    operators = Operators(device="cuda")
    fused = FusedResiduals(model, operators)
    with fused:
        made, fused_states = generate(model, ids, TOKENS), hidden_states(model, ids)
        fused.residual = "serial" if parallel else "parallel"
        faulty, faulty_states = generate(model, ids, TOKENS), hidden_states(model, ids)
    kernels = {f"{name}: {file}": count for (name, file), count in operators.calls.items()}

    def original() -> list[int]:
        return generate(model, ids, TOKENS)

    def with_additions(enabled: bool, annotated: bool = False) -> list[int]:
        with FusedResiduals(model, operators, enabled, annotated=annotated):
            return generate(model, ids, TOKENS)

    ways = {"original": original, "fused": lambda: with_additions(True), "off": lambda: with_additions(False)}
    share = share_of_additions(lambda: with_additions(False, annotated=True))
    return {
        "layers": layers,
        "errors": errors(states, fused_states),
        "errors_of_the_fault": errors(states, faulty_states),
        "same_tokens": made == wanted,
        "tokens_of_the_fault_that_are_the_same": sum(a == b for a, b in zip(faulty, wanted, strict=True)),
        "tokens": TOKENS,
        "calls": kernels,
        "milliseconds_per_token": time_in_turns(ways, TOKENS),
        "share_of_the_additions": round(share, 4),
        "most_that_amdahl_allows": round(1 / (1 - share), 4),
    }


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one residual."""
    print(f"{name} residual, {found['layers']} layers; the same {found['tokens']} tokens: {found['same_tokens']}")
    print("  largest error after layer" + "".join(f"{layer:>9}" for layer in found["errors"]))
    print("    our addition           " + "".join(f"{error:9.3g}" for error in found["errors"].values()))
    print("    the other residual     " + "".join(f"{error:9.3g}" for error in found["errors_of_the_fault"].values()))
    times = found["milliseconds_per_token"]
    print("  ms per token: " + ", ".join(f"{way} {ms:.3f}" for way, ms in times.items()))
    print(
        f"  fused is {times['original'] / times['fused']:.3f} x as fast; the additions take "
        f"{found['share_of_the_additions']:.1%} of the GPU's time, so at most {found['most_that_amdahl_allows']:.3f} x"
    )


def main() -> None:
    """Measure both residuals, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Time the fused residual addition inside transformers' GPT-NeoX on the first GPU of the machine "
        "that runs this script."
    )
    parser.add_argument("--record", action="store_true", help=f"also write {RECORD.name}, which the lesson shows")
    parser.add_argument(
        "--layers", type=int, default=32, help="the number of layers of the model (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if arguments.record and arguments.layers != 32:
        parser.error("--record keeps the figures of 32 layers: leave --layers out")
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    with torch.inference_mode():
        residuals = {name: experiment(name == "parallel", arguments.layers) for name in ("parallel", "serial")}
        host = call_microseconds()
    for name, found in residuals.items():
        show(name, found)
    print("host's microseconds for one addition: " + ", ".join(f"{name} {us:.1f}" for name, us in host.items()))
    if arguments.record:
        content = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/{Path(__file__).name} --record",
            "call_us": host,
            "residuals": residuals,
        }
        write_record(RECORD, content, ROOT)
        print(f"recorded in {RECORD.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
