"""Measure whole models on this machine's GPU: time to the first token and time per token, ours and transformers'.

    python lessons/day16_whole_models/measure.py            print tables
    python lessons/day16_whole_models/measure.py --record   also write models_gpu.json, which the lesson shows

The models have the shapes of Qwen2 0.5B and 1.5B (bf16) and Pythia 2.8B (f16), with random weights: nothing is
downloaded, and they take the same time as trained weights. Both programs get the same weights. The time of a token is
from the moment at which the host knows the previous token until it knows this one: what a user waits for. *Compiled* is
torch.compile(mode="reduce-overhead") with a static cache, which captures CUDA graphs; ours is a CUDA graph too.
*Persistent* is one launch per token (persistent_decode.cu); *in parts* is the same kernel, launched anew wherever its
blocks wait; both continue with the keys and values of a prompt that our prefill has read. Prefill is a CUDA graph per
padded length, captured before it is timed. The floor is the bytes of the weights, keys and values that a token reads,
at the measured rate of a copy.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import torch  # noqa: E402
import transformers  # noqa: E402
from llm.checkpoint import build  # noqa: E402
from llm.config import Config, parse_config  # noqa: E402
from llm.graph import DecodeGraph  # noqa: E402
from llm.model import Model  # noqa: E402
from llm.operators import HERE as OWN_KERNELS  # noqa: E402
from llm.operators import KERNELS, OPERATORS, Operators  # noqa: E402
from persistent_decode import KERNEL as PERSISTENT  # noqa: E402
from persistent_decode import PersistentDecoder, pack  # noqa: E402

from grader.execution.build.build import build as build_kernel  # noqa: E402
from grader.execution.build.build import compile_directly, plan_kernel  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402

QWEN2 = {"vocab_size": 151936, "num_key_value_heads": 2, "rope_theta": 1e6, "tie_word_embeddings": True}
SHAPES: dict[str, tuple[str, torch.dtype, dict[str, Any]]] = {
    "Qwen2 0.5B, bf16": (
        "qwen2",
        torch.bfloat16,
        {
            **QWEN2,
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
        },
    ),
    "Qwen2 1.5B, bf16": (
        "qwen2",
        torch.bfloat16,
        {
            **QWEN2,
            "hidden_size": 1536,
            "intermediate_size": 8960,
            "num_hidden_layers": 28,
            "num_attention_heads": 12,
        },
    ),
    "Pythia 2.8B, f16": (
        "gpt_neox",
        torch.float16,
        {
            "vocab_size": 50304,
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "use_parallel_residual": True,
        },
    ),
}
PROMPTS = (10, 512)
"""Lengths of the prompts whose first token is timed; the later tokens follow the first prompt."""
WARMUP, TOKENS = 14, 64
FIRST_TOKENS = 7
"""Number of timed first tokens, after one warm-up."""
LONGEST = 1024
FREE_RUNNING = 20
OURS = ("ours", "persistent", "in parts")


def compile_kernels() -> float:
    """Build every kernel that the models may need, in parallel; return the seconds that it took."""
    begin = time.perf_counter()
    major, minor = torch.cuda.get_device_capability()
    files = {ROOT / "solutions" / f"{name}.cu" for name in KERNELS.values()} | {ROOT / OWN_KERNELS, PERSISTENT}

    def one(file: Path) -> None:
        build_kernel(plan_kernel(file, "cuda", False, arch=f"sm_{major}{minor}"), compile_directly)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, sorted(files)))
    return time.perf_counter() - begin


def copy_bandwidth() -> float:
    """Return the bytes read and written per second when the device copies 2 GiB."""
    source = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * source.nbytes / sorted(times)[len(times) // 2]


def make(name: str) -> Any:
    """Create Hugging Face's model with random weights on the GPU."""
    architecture, dtype, sizes = SHAPES[name]
    known = {"qwen2": "Qwen2Config", "gpt_neox": "GPTNeoXConfig"}
    config = getattr(transformers, known[architecture])(**sizes, eos_token_id=None, bos_token_id=None)
    torch.manual_seed(14)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def config_of(theirs: Any) -> Config:
    """Create the configuration of Hugging Face's model."""
    return parse_config(json.loads(theirs.config.to_json_string()))


def ours(theirs: Any, operators: Operators) -> Model:
    """Create our model with the same weights."""
    return build(config_of(theirs), {key: value.detach() for key, value in theirs.state_dict().items()}, operators)


def statistics(seconds: list[float]) -> dict[str, float]:
    """Return mean and percentiles in milliseconds."""
    t = torch.tensor(seconds, dtype=torch.float64) * 1e3
    found = {"mean": t.mean()} | {f"P{p}": t.quantile(p / 100) for p in (50, 90, 99)}
    return {key: round(float(value), 4) for key, value in found.items()}


def timed(step: Callable[[], int], count: int) -> tuple[list[float], list[int]]:
    """Time ``count`` calls that each wait for their token; return seconds and tokens."""
    seconds, tokens = [], []
    torch.cuda.synchronize()
    for _ in range(count):
        begin = time.perf_counter()
        tokens.append(step())
        seconds.append(time.perf_counter() - begin)
    return seconds, tokens


Run = dict[str, Any]
"""Statistics of first tokens by prompt length and of later tokens, and the token ids."""


def run_ours(model: Model, prompts: dict[int, list[int]]) -> Run:
    """Measure prefill and decode as CUDA graphs."""
    decode = DecodeGraph(model, model.new_cache(LONGEST), LONGEST)
    found: Run = {"first": {}}
    for length in sorted(prompts, reverse=True):
        seconds, _ = timed(lambda: decode.prefill(prompts[length]), FIRST_TOKENS + 1)  # noqa: B023
        found["first"][str(length)] = statistics(seconds[1:])
    first = decode.prefill(prompts[PROMPTS[0]])
    seconds, ids = timed(decode.step, WARMUP + TOKENS)
    found |= {"token": statistics(seconds[WARMUP:]), "ids": [first, *ids]}
    found["token_of_device_ms"] = free_running(decode.graph.replay)
    return found


def run_persistent(theirs: Any, model: Model, prompts: dict[int, list[int]], persistent: bool) -> Run:
    """Measure the persistent kernel, in one launch per token or in parts, after our model's prefill."""
    packing = pack(config_of(theirs), theirs.state_dict(), theirs.dtype, "cuda")
    reader = DecodeGraph(model, model.new_cache(LONGEST), LONGEST)
    cache = reader.cache.k, reader.cache.v, reader.whole.block_tables[0]
    decoder = PersistentDecoder(packing, LONGEST, persistent, cache=cache)
    write = decoder.capture()

    def first(prompt: list[int]) -> int:
        token = reader.prefill(prompt)
        decoder.take_over([*prompt, token])
        return token

    found: Run = {"launches": len(decoder.launches()), "slots": decoder.slots, "first": {}}
    for length, prompt in prompts.items():
        seconds, _ = timed(lambda: first(prompt), FIRST_TOKENS + 1)  # noqa: B023
        found["first"][str(length)] = statistics(seconds[1:])
    prompt = prompts[PROMPTS[0]]
    at = len(prompt)

    def step() -> int:
        nonlocal at
        write()
        at += 1
        return int(decoder.tokens[at])

    newest = first(prompt)
    seconds, ids = timed(step, WARMUP + TOKENS)
    found |= {"token": statistics(seconds[WARMUP:]), "ids": [newest, *ids]}
    found["token_of_device_ms"] = free_running(write)
    # A long prompt, for which the kernel splits the keys: compare its logits with float32 and with Hugging Face's.
    long = prompts[PROMPTS[1]]
    made = decoder.generate(long, 1)
    with torch.inference_mode():
        ids_of_prompt = torch.tensor([long], device="cuda")
        rounded = theirs(ids_of_prompt, logits_to_keep=1).logits[0, -1].float()
        dtype = theirs.dtype
        exact = theirs.float()(ids_of_prompt, logits_to_keep=1).logits[0, -1]
        theirs.to(dtype)
    found["logits"] = {
        "largest_error": round(float((decoder.logits - exact).abs().max()), 5),
        "largest_error_of_transformers": round(float((rounded - exact).abs().max()), 5),
        "standard_deviation": round(float(exact.std()), 4),
        "same_token": made[0] == int(exact.argmax()),
    }
    return found


@torch.inference_mode()
def rounding(theirs: Any, text: list[int], mine: int, wanted: int) -> dict[str, float]:
    """Compare two candidates for the next token in float32: the gap of their logits, and the error of the 16-bit model.

    A gap below the error shows that rounding decides between the two.
    """
    ids, dtype = torch.tensor([text], device="cuda"), theirs.dtype
    rounded = theirs(ids, logits_to_keep=1).logits[0, -1].float()
    exact = theirs.float()(ids, logits_to_keep=1).logits[0, -1]
    theirs.to(dtype)
    return {
        "gap_in_float32": round(float(exact[wanted] - exact[mine]), 5),
        "largest_error_of_transformers": round(float((rounded - exact).abs().max()), 5),
    }


def free_running(replay: Callable[[], None]) -> float:
    """Return milliseconds per token if the host does not wait for each token: the time that the device alone takes."""
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(FREE_RUNNING):
        replay()
    end.record()
    end.synchronize()
    return round(begin.elapsed_time(end) / FREE_RUNNING, 4)


def run_theirs(model: Any, prompts: dict[int, list[int]], compiled: bool) -> Run:
    """Measure Hugging Face's model with a growing cache, or compiled with a static one."""

    def forward(ids: torch.Tensor, cache: Any) -> torch.Tensor:
        return model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)

    def new_cache() -> Any:
        if compiled:
            return transformers.StaticCache(config=model.config, max_cache_len=LONGEST)
        return transformers.DynamicCache(config=model.config)

    found: Run = {"first": {}}
    cache = new_cache()
    token = None
    for length in sorted(prompts, reverse=True):

        def first() -> int:
            nonlocal cache, token
            cache = new_cache()
            token = forward(torch.tensor([prompts[length]], device="cuda"), cache)  # noqa: B023
            return int(token)

        seconds, firsts = timed(first, FIRST_TOKENS + 1 if not compiled else 1)
        found["first"][str(length)] = statistics(seconds[1:] or seconds)
    step = torch.compile(forward, mode="reduce-overhead") if compiled else forward

    def one() -> int:
        nonlocal token
        if compiled:
            torch.compiler.cudagraph_mark_step_begin()
        token = step(token, cache).clone()
        return int(token)

    begin = time.perf_counter()
    seconds, ids = timed(one, WARMUP + TOKENS)
    found |= {"token": statistics(seconds[WARMUP:]), "ids": [firsts[-1], *ids]}
    if compiled:
        found["first"] = {}  # the prompt is not compiled
        found["compile_seconds"] = round(time.perf_counter() - begin, 1)
    return found


def operator_shares(model: Model) -> dict[str, float]:
    """Return microseconds per operator in one token: all its calls of that token as one CUDA graph."""
    cache, operators = model.new_cache(LONGEST), model.operators
    number = cache.create()
    calls: list[tuple[str, tuple[Any, ...]]] = []

    def recording(name: str) -> Callable[..., Any]:
        method = getattr(operators, name)

        def call(*arguments: Any) -> Any:
            calls.append((name, arguments))
            return method(*arguments)

        return call

    names = sorted({name.replace("_prefill", "").replace("_decode", "") for name in OPERATORS})
    names = [name for name in names if name not in ("linear_int4", "linear_gelu")]  # these call other operators
    with torch.inference_mode():
        model.forward(cache.append({number: list(range(PROMPTS[0]))}), cache)
        batch = cache.append({number: [1]})
        for name in names:
            setattr(operators, name, recording(name))
        operators.argmax(model.forward(batch, cache))
        for name in names:
            delattr(operators, name)
        found = {}
        for name in names:
            own = [arguments for called, arguments in calls if called == name]
            if own:
                found[name] = round(graph_microseconds([(getattr(operators, name), a) for a in own]), 2)
    return found


def graph_microseconds(calls: list[tuple[Callable[..., Any], tuple[Any, ...]]], repeats: int = 20) -> float:
    """Return the time of some calls, captured as one CUDA graph: the median over the repeats."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for function, arguments in calls:
            function(*arguments)
    times = []
    for _ in range(repeats + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times[3:])[repeats // 2]


def measure_model(name: str, bandwidth: float) -> dict[str, Any]:
    """Measure everything about one model."""
    theirs = make(name)
    operators = Operators(device="cuda")
    model = ours(theirs, operators)
    generator = torch.Generator().manual_seed(3)
    prompts = {n: torch.randint(0, model.config.vocabulary, (n,), generator=generator).tolist() for n in PROMPTS}
    config = model.config
    keys = PROMPTS[0] + WARMUP + TOKENS // 2
    cache_bytes = 2 * config.layers * config.kv_heads * config.head_dim * model.table.element_size() * keys
    # If the embedding table is not the output layer as well, a token reads only one row of it.
    weights = model.nbytes - (0 if config.tied else model.table.nbytes)
    found: dict[str, Any] = {
        "parameters": sum(p.numel() for p in theirs.parameters()),
        "read_bytes": weights + cache_bytes,
        "floor_ms": round((weights + cache_bytes) / bandwidth * 1e3, 4),
    }
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found["ours"] = run_ours(model, prompts)
    found["ours"]["beyond_weights_bytes"] = torch.cuda.max_memory_allocated() - before
    found["calls"] = {f"{operator}: {who}": count for (operator, who), count in sorted(operators.calls.items())}
    found["operators_us"] = operator_shares(model)
    found["persistent"] = run_persistent(theirs, model, prompts, persistent=True)
    found["in parts"] = run_persistent(theirs, model, prompts, persistent=False)
    del model
    gc.collect()
    with torch.inference_mode():
        found["eager"] = run_theirs(theirs, prompts, compiled=False)
    with torch.no_grad():
        found["compiled"] = run_theirs(theirs, prompts, compiled=True)
    found["compiled"].pop("ids")
    wanted, first_of_eager = found["eager"].pop("ids"), found["eager"]["first"]
    compiled = found["compiled"]["token"]["P50"]
    for who in OURS:
        mine = found[who].pop("ids")
        same = next((i for i, (a, b) in enumerate(zip(mine, wanted)) if a != b), len(wanted))
        found[who]["same_tokens_as_eager"] = f"{same} of {len(wanted)}"
        if same < len(wanted):
            text = [*prompts[PROMPTS[0]], *wanted[:same]]
            found[who]["where_they_differ"] = rounding(theirs, text, mine[same], wanted[same])
        found[who]["times_as_fast_as_compiled"] = round(compiled / found[who]["token"]["P50"], 3)
        firsts = {n: first["P50"] for n, first in found[who]["first"].items()}
        found[who]["first_over_eager"] = {n: round(ms / first_of_eager[n]["P50"], 3) for n, ms in firsts.items()}
        found[who]["first_over_token"] = {n: round(ms / found[who]["token"]["P50"], 2) for n, ms in firsts.items()}
        found[who]["times_the_floor"] = round(found[who]["token"]["P50"] / found["floor_ms"], 3)
    torch._dynamo.reset()
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """Print one model as a table."""
    print(f"\n{name}: {found['parameters'] / 1e9:.2f} G parameters, floor {found['floor_ms']:.3f} ms")
    print(
        "                first token" + "".join(f"{f'{n} in':>10s}" for n in PROMPTS) + "     token P50     P90     P99"
    )
    for who in (*OURS, "compiled", "eager"):
        run = found[who]
        firsts = "".join(
            f"{run['first'][str(n)]['P50']:10.2f}" if str(n) in run["first"] else f"{'':10s}" for n in PROMPTS
        )
        token = run["token"]
        print(f"{who:27s}{firsts}{token['P50']:14.3f}{token['P90']:8.3f}{token['P99']:8.3f}")
    whole = sum(found["operators_us"].values())
    print(
        f"a token on the device alone: {found['ours']['token_of_device_ms']:.3f} ms; "
        f"its operators, each timed by itself: {whole / 1e3:.3f} ms"
    )
    for operator, us in sorted(found["operators_us"].items(), key=lambda item: -item[1]):
        print(f"    {operator:20s}{us:9.1f} us{us / whole:7.1%}")
    for who in OURS:
        run = found[who]
        print(
            f"{who}: {run['times_as_fast_as_compiled']:.2f} x as fast as compiled, {run['times_the_floor']:.2f} x "
            f"the floor; "
            f"{run['token_of_device_ms']:.3f} ms of the device; the same tokens as eager: {run['same_tokens_as_eager']}"
        )
        if "where_they_differ" in run:
            print(f"    where they differ: {run['where_they_differ']}")
    print(f"logits of the persistent kernel after {PROMPTS[1]} tokens: {found['persistent']['logits']}")


def main() -> None:
    """Measure, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Time whole models, prefill and decoding, on the first GPU of the machine that runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write models_gpu.json, which the lesson shows")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only models whose name contains TEXT, such as Pythia"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    names = [name for name in SHAPES if arguments.only in name]
    if not names:
        parser.error(f"no model has {arguments.only!r} in its name: {', '.join(SHAPES)}")
    print(f"kernels built in {compile_kernels():.0f} s")
    bandwidth = copy_bandwidth()
    models = {}
    for name in names:
        begin = time.perf_counter()
        models[name] = measure_model(name, bandwidth)
        show(name, models[name])
        print(f"({time.perf_counter() - begin:.0f} s)", flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py --record",
            "copy_gigabytes_per_second": round(bandwidth / 1e9, 1),
            "models": models,
        }
        path = HERE / "models_gpu.json"
        write_record(path, result, ROOT)
        print(f"recorded in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
