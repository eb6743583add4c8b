"""Both models generate the same tokens as Hugging Face's, with a kernel of the course for every operator."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import torch
from llm import Operators, generate, load
from llm.operators import FEW_ROWS, OPERATORS

from grader.setup.errors import GraderError
from tests.models.conftest import PROMPT, TINY

NEW = 24
NOT_HERE = {"linear_int4", "linear_gelu", "add_bias"}
"""Operators that these tests do not run: optional, for prompts of more than 16 tokens, and for Hopper."""
LONG_PROMPT = "Every thread of a warp reads the keys and values of the cache once, and"
ONLY = {
    "qwen2": {"rms_norm", "swiglu", "residual_add"},
    "neox": {"layer_norm", "gelu", "parallel_residual"},
}


@pytest.mark.parametrize("name", TINY)
def test_tokens_and_text_are_those_of_transformers(name: str, theirs: Any) -> None:
    model = load(TINY[name], Operators())
    ids = model.tokenizer.encode(PROMPT)
    with torch.inference_mode():
        wanted = theirs(name).generate(torch.tensor([ids]), max_new_tokens=NEW, do_sample=False)[0, len(ids) :]
    made = generate(model, PROMPT, NEW)
    assert made.ids == wanted.tolist()
    from transformers import PreTrainedTokenizerFast

    their_tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TINY[name] / "tokenizer.json"))
    assert made.text == their_tokenizer.decode(wanted.tolist(), skip_special_tokens=True)
    assert len(set(made.ids)) > 8, "the text repeats itself, so equal texts prove little: choose another prompt"

    # Every operator of the architecture ran as a kernel, and none as a torch function.
    used = {operator for operator, _ in model.operators.calls}
    assert used == set(OPERATORS) - NOT_HERE - ONLY["neox" if name == "qwen2" else "qwen2"]
    assert not [who for _, who in model.operators.calls if who == "torch"]
    layers = model.config.layers
    assert model.operators.calls["attention_prefill", "lessons/day16_whole_models/operators.cu"] == layers
    assert model.operators.calls["attention_decode", "lessons/day16_whole_models/operators.cu"] == layers * (NEW - 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_sixteen_bits_through_every_kernel(dtype: torch.dtype) -> None:
    """Check that the logits of a prompt and of one more token are close to those of float64."""
    for name, folder in TINY.items():
        exact = load(folder, Operators(use="torch"), torch.float64)
        model = load(folder, Operators(), dtype)
        ids = model.tokenizer.encode(LONG_PROMPT)
        assert len(ids) > FEW_ROWS
        found = []
        for one in (exact, model):
            cache = one.new_cache(64)
            number = cache.create()
            with torch.inference_mode():
                one.forward(cache.append({number: ids}), cache)
                found.append(one.forward(cache.append({number: ids[:1]}), cache)[0].double())
        files = {who.rpartition("/")[2] for _, who in model.operators.calls}
        assert "torch" not in files
        assert {"linear_wmma.cu", "linear_decode.cu", "paged_prefill.cu", "paged_attention.cu"} <= files
        assert name == "qwen2" or "linear_gelu.cu" in files
        error = float((found[1] - found[0]).abs().max() / found[0].abs().max())
        assert error < (0.01 if dtype == torch.float16 else 0.06), (name, error)
        assert error > 1e-5, "without rounding errors, the model cannot have computed in 16 bits"


def test_an_operator_is_switched_by_its_name(tmp_path: Any) -> None:
    own = tmp_path / "own.cu"
    own.write_text("""
#include <cuda_runtime.h>
__global__ void zeros(float* out, long long n) {
    for (long long i = 0; i < n; ++i) out[i] = 0;
}
extern "C" void swiglu_f32(const float* gate, const float* up, float* out, long long n, cudaStream_t stream) {
    zeros<<<1, 1, 0, stream>>>(out, n);
}
""")
    right = generate(load(TINY["qwen2"], Operators(use="torch")), PROMPT, 3)
    operators = Operators(use="torch", choose={"swiglu": str(own)})
    wrong = generate(load(TINY["qwen2"], operators), PROMPT, 3)
    assert operators.calls["swiglu", str(own)] == 3 * 3
    assert ("swiglu", "torch") not in operators.calls
    assert not torch.equal(right.logits, wrong.logits)
    assert str(own) in operators.trace()


def test_a_vocabulary_has_an_argmax_of_its_own() -> None:
    operators = Operators()
    logits = torch.randn(2, 20000, generator=torch.Generator().manual_seed(1))
    assert operators.argmax(logits).tolist() == logits.argmax(-1).tolist()
    assert dict(operators.calls) == {("argmax", "solutions/day02_reductions/vocabulary_argmax.cu"): 1}


def test_unknown_operators_and_types_are_named() -> None:
    with pytest.raises(GraderError, match="no operator softmax"):
        Operators(choose={"softmax": "torch"})
    with pytest.raises(GraderError, match=r"not for torch\.float64"):
        generate(load(TINY["qwen2"], Operators(), torch.float64), PROMPT, 1)


@pytest.mark.parametrize("name", TINY)
def test_the_record_belongs_to_the_files(name: str) -> None:
    record = json.loads((TINY[name] / "record.json").read_text(encoding="utf-8"))
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in TINY[name].iterdir()}
    del files["record.json"]
    assert record["sha256"] == files
    assert record["command"] == f"python lessons/day16_whole_models/train.py {name}"
    assert isinstance(record["seed"], int) and record["loss"] < 3
    assert sum(file.stat().st_size for file in TINY[name].iterdir()) < 1_000_000
