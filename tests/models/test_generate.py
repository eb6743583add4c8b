"""Generation: sampling, pages of the KV cache, the server, int4 weights, and the course's kernels in transformers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from llm import Operators, Request, Sampling, generate, load, serve
from llm.cache import OutOfPages
from llm.checkpoint import MODELS, build
from llm.config import read_config
from llm.fit import fitted
from llm.memory import peak_bytes
from llm.operators import KERNELS
from llm.quantize import mean_loss, to_int4
from llm.sampling import draw, probabilities

from tests.models.conftest import PROMPT, TINY

BY_TORCH = Operators(use="torch")
BY_TENSOR_CORES = ("linear, 16 bits, Hopper", "attention_prefill of new texts")
BEGINNING = "The kernel of the"
PROMPTS = [" block", " cache", "", " warp and the", " memory"]


@pytest.fixture(scope="module")
def qwen2() -> Any:
    return load(TINY["qwen2"], BY_TORCH)


def test_probabilities_by_temperature_and_by_top_k_and_top_p() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0]).log_softmax(0)
    plain = logits.double().softmax(0)
    assert torch.allclose(probabilities(logits, Sampling()), plain)
    assert torch.allclose(probabilities(logits, Sampling(0.5)), plain.square() / plain.square().sum())
    two = probabilities(logits, Sampling(top_k=2))
    assert torch.allclose(two, torch.tensor([plain[0], plain[1], 0, 0]) / plain[:2].sum())
    # The first token's probability, 0.64, is less than top_p, 0.7. So the second token is kept, too, but not the third.
    assert torch.equal(probabilities(logits, Sampling(top_p=0.7)).nonzero()[:, 0], torch.tensor([0, 1]))
    assert probabilities(logits, Sampling(top_p=1e-9)).tolist() == [1, 0, 0, 0]
    assert probabilities(logits, Sampling(top_k=9)).count_nonzero() == 4


def test_drawn_tokens_follow_the_probabilities() -> None:
    logits = torch.tensor([1.0, 0.0, 2.0])
    sampling = Sampling(seed=5)
    generator = sampling.generator()
    counts = torch.bincount(torch.tensor([draw(logits, sampling, generator) for _ in range(4000)]), minlength=3) / 4000
    assert torch.allclose(counts.double(), logits.double().softmax(0), atol=0.03)


def test_a_seed_determines_the_text(qwen2: Any) -> None:
    texts = [generate(qwen2, PROMPT, 12, Sampling(1.0, seed=seed)).ids for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    greedy = generate(qwen2, PROMPT, 12)
    assert generate(qwen2, PROMPT, 12, Sampling(0)).ids == greedy.ids
    assert generate(qwen2, PROMPT, 12, Sampling(1.0, top_k=1)).ids == greedy.ids
    again = generate(qwen2, PROMPT, 11)  # the logits from which the last of the 11 tokens was chosen
    assert int(again.logits.argmax()) == again.ids[-1]


@pytest.mark.parametrize(
    ("settings", "said"), [({"temperature": -1}, "temperature is -1"), ({"top_p": 0}, "top_p is 0")]
)
def test_invalid_sampling_parameters(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sampling(**settings)


def test_invalid_prompts(qwen2: Any) -> None:
    for prompt, said in (("", "no tokens"), ([384], "token 384 is outside"), ([1] * 511, "more than the model's 512")):
        with pytest.raises(ValueError, match=said):
            generate(qwen2, prompt, 2)


def test_a_text_ends_with_its_end_token(qwen2: Any) -> None:
    whole = generate(qwen2, PROMPT, 8).ids
    model = load(TINY["qwen2"], BY_TORCH)
    model.config = dataclasses.replace(model.config, end_tokens=(whole[3],))
    assert generate(model, PROMPT, 8).ids == whole[: whole.index(whole[3]) + 1]


def test_a_finished_text_frees_its_pages(qwen2: Any) -> None:
    cache = qwen2.new_cache(64)
    free = cache.allocator.free_pages
    generate(qwen2, PROMPT, 8, cache=cache)
    assert cache.allocator.free_pages == free
    with pytest.raises(OutOfPages):
        generate(qwen2, PROMPT, 200, cache=cache)
    assert cache.allocator.free_pages == free
    cache.allocator.check()


def test_peak_memory_is_mainly_weights_and_cache() -> None:
    """Check that memory does not grow with the number of tokens, except for the cache."""

    def run(tokens: int) -> int:
        model = load(TINY["qwen2"], BY_TORCH)
        cache = model.new_cache(128)
        return peak_bytes(lambda: generate(model, PROMPT, tokens, cache=cache), "cpu")

    few, many = run(4), run(24)
    model = load(TINY["qwen2"], BY_TORCH)
    assert 0 < few < model.nbytes / 4
    assert many < few + 32 * 1024


@pytest.mark.parametrize("pages", [64, 5], ids=["room for all", "too few pages"])
@pytest.mark.parametrize("name", TINY)
def test_the_server_generates_the_same_texts_as_one_by_one(name: str, pages: int) -> None:
    model = load(TINY[name], BY_TORCH)
    alone = [generate(model, BEGINNING + prompt, 20).ids for prompt in PROMPTS]
    cache = model.new_cache(pages * 16)
    requests = [Request(BEGINNING + prompt, 20, arrives=2 * i) for i, prompt in enumerate(PROMPTS)]
    served = serve(model, requests, cache, beginning=BEGINNING, at_once=4)
    assert served.ids == alone
    assert served.most_at_once > 1
    assert served.shared_tokens > 0
    assert (served.restarts > 0) == (pages == 5)
    assert cache.allocator.free_pages == pages
    cache.allocator.check()


def test_the_server_through_the_kernels() -> None:
    """Check pages of the cache that several texts share, with the kernels paged_prefill and paged_attention."""
    model = load(TINY["qwen2"], Operators())
    requests = [Request(BEGINNING + prompt, 4, arrives=i) for i, prompt in enumerate(PROMPTS[:3])]
    served = serve(model, requests, model.new_cache(256), beginning=BEGINNING)
    by_torch = load(TINY["qwen2"], BY_TORCH)
    assert served.ids == [generate(by_torch, BEGINNING + prompt, 4).ids for prompt in PROMPTS[:3]]
    assert max(sequences for sequences, _ in served.passes) == 3


def test_a_request_that_never_fits_is_refused(qwen2: Any) -> None:
    with pytest.raises(OutOfPages, match="too small for request 0"):
        serve(qwen2, [Request([1] * 40, 4)], qwen2.new_cache(32))
    with pytest.raises(OutOfPages, match="too small for a single text"):
        serve(qwen2, [Request([1] * 30, 9)], qwen2.new_cache(32))


def test_int4_weights_through_the_kernel() -> None:
    """Check that gptq_linear gives the same result as dequantized weights, and that the model is smaller."""
    models = [load(TINY["qwen2"], Operators(choose=choose), torch.float16) for choose in ({}, {"linear_int4": "torch"})]
    before = models[0].nbytes
    for model in models:
        to_int4(model)
    assert models[0].nbytes < 0.62 * before  # the embedding table, which is also the output layer, is not quantized
    texts = [generate(model, PROMPT, 3) for model in models]
    assert texts[0].ids == texts[1].ids
    error = (texts[0].logits - texts[1].logits).abs().max() / texts[1].logits.abs().max()
    assert error < 0.02
    assert models[0].operators.calls["linear_int4", "solutions/day11_quantization/gptq_linear.cu"] == 3 * 4 * 3


@pytest.mark.parametrize("name", TINY)
def test_gptq_has_a_smaller_error_than_rounding(name: str, theirs: Any) -> None:
    """Compare the losses on texts that the model generated and that GPTQ did not use."""
    torch.manual_seed(3)
    start = torch.randint(1, 384, (96, 1))
    drawn: dict[str, Any] = {"do_sample": True, "top_k": 0, "min_new_tokens": 48, "max_new_tokens": 48}
    with torch.inference_mode():
        texts = theirs(name).generate(start, attention_mask=torch.ones_like(start), **drawn).tolist()
    exact, nearest, by_gptq = (load(TINY[name], BY_TORCH, torch.float16) for _ in range(3))
    to_int4(nearest)
    to_int4(by_gptq, texts[:64])
    assert by_gptq.nbytes == nearest.nbytes < 0.62 * exact.nbytes and by_gptq.operators is BY_TORCH
    loss, of_nearest, of_gptq = (mean_loss(model, texts[64:]) for model in (exact, nearest, by_gptq))
    assert 0 < of_gptq - loss < 0.9 * (of_nearest - loss)


def test_kernels_inside_the_modules_of_transformers(theirs: Any) -> None:
    """Check that tokens stay the same if kernels of the course replace RMSNorm and the MLP's activation."""
    model, operators = theirs("qwen2"), Operators()
    ids = torch.tensor([[5, 9, 20]])
    with torch.inference_mode():
        before = model.generate(ids, max_new_tokens=6, do_sample=False)
        with fitted(model, operators):
            inside = model.generate(ids, max_new_tokens=6, do_sample=False)
            calls = dict(operators.calls)
            assert model.generate(ids, max_new_tokens=1, do_sample=False).shape == (1, 4)
        assert torch.equal(model.generate(ids, max_new_tokens=6, do_sample=False), before)
    assert torch.equal(inside, before)
    assert calls["rms_norm", "solutions/day02_reductions/rms_norm.cu"] == 6 * 7
    assert calls["swiglu", "solutions/day03_positions_and_gates/swiglu.cu"] == 6 * 3


def test_a_replayed_token_advances_its_own_state(qwen2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test DecodeGraph without a GPU: instead of a graph launch, the function that was captured runs again."""
    from llm.cache import Batch
    from llm.graph import DecodeGraph

    class Graph:
        def __init__(self, decode: DecodeGraph, batch: Batch) -> None:
            self.replay = lambda: decode._token(batch)
            self.replay()

    monkeypatch.setattr(DecodeGraph, "_capture", lambda decode, batch: Graph(decode, batch))
    prompt = qwen2.tokenizer.encode(PROMPT)
    decode = DecodeGraph(qwen2, qwen2.new_cache(48), 48)
    for ids in (prompt, prompt[:3], prompt[:1], prompt):  # each time, it starts again with a prompt
        made = [decode.prefill(ids), *(decode.step() for _ in range(9))]
        assert made == generate(qwen2, ids, 10).ids
    assert set(decode.prompts) == {16}
    long = (prompt * 20)[:30]
    assert [decode.prefill(long), *(decode.step() for _ in range(3))] == generate(qwen2, long, 4).ids
    assert set(decode.prompts) == {16, 32}
    for ids in ([], [1] * 48):
        with pytest.raises(ValueError, match=rf"a prompt of {len(ids)} tokens: there is room for 1 to 47"):
            decode.prefill(ids)


@pytest.mark.parametrize("name", TINY)
def test_hopper_reads_prompts_with_wgmma(name: str) -> None:
    """Long prompts go through day 13's products and day 12's attention, and the logits stay those of torch."""
    sizes = dict(hidden=128, feed_forward=160, heads=2, head_dim=64, rotary_dim=32, layers=1, vocabulary=96)
    config = dataclasses.replace(read_config(TINY[name]), **sizes)
    generator = torch.Generator().manual_seed(16)
    weights = {
        key: torch.randn(shape, generator=generator) * (0.1 if len(shape) > 1 else 1.0)
        for key, shape in MODELS[config.architecture].shapes(config).items()
    }
    prompt = torch.randint(0, config.vocabulary, (40,), generator=generator).tolist()
    logits, calls = {}, {}
    for who in ("solutions", "torch"):
        operators = Operators(use=who)
        operators.generation = 9
        dtype = torch.float16 if who == "solutions" else torch.float64
        model = build(config, {key: value.to(dtype) for key, value in weights.items()}, operators)
        cache = model.new_cache(64)
        batch = cache.append({cache.create(): prompt})
        assert batch.all_new
        logits[who] = model.forward(batch, cache).double()
        calls[who] = operators.calls
    used = {name for _, name in calls["solutions"]}
    assert {f"solutions/{KERNELS[kind]}.cu" for kind in BY_TENSOR_CORES} <= used
    error = (logits["solutions"] - logits["torch"]).abs().max() / logits["torch"].std()
    assert error < 0.02, f"{error:.4f} of the standard deviation"
