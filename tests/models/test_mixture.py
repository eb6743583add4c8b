"""Day 18's tiny mixture of experts generates the same text as Hugging Face's, with the day's kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from llm import CheckpointError, ConfigError, Operators, generate

from tests.models.conftest import ROOT

DAY = ROOT / "lessons" / "day18_mixtures_of_experts"
sys.path.insert(0, str(DAY))
from mixture import load_mixture, parse_mixture  # noqa: E402  (a lesson's folder is no package)

TINY = DAY / "tiny"
TOKENIZER = ROOT / "lessons" / "day16_whole_models" / "tiny" / "qwen2" / "tokenizer.json"
NEW = 24
PROMPTS = ("Flash attention", "The softmax")
"""Prompts whose best logit is always 0.26 above the second. f16 changes logits by at most 0.03, so no token changes."""


@pytest.fixture(scope="module")
def theirs() -> Any:
    """Hugging Face's model, in float32."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        TINY, dtype=torch.float32, local_files_only=True, attn_implementation="eager"
    ).eval()


@pytest.mark.parametrize("prompt", PROMPTS)
def test_tokens_are_those_of_transformers(prompt: str, theirs: Any) -> None:
    model = load_mixture(TINY, Operators(), TOKENIZER)
    ids = model.tokenizer.encode(prompt)
    with torch.inference_mode():
        wanted = theirs.generate(torch.tensor([ids]), max_new_tokens=NEW, do_sample=False)[0, len(ids) :]
    made = generate(model, prompt, NEW)
    assert made.ids == wanted.tolist()
    assert len(set(made.ids)) > 8, "the text repeats itself, so equal texts prove little: choose another prompt"

    # The prompt takes five kernels per layer, each further token two. No operator ran as a torch function.
    calls, layers = {step: count for (step, _), count in model.operators.calls.items()}, model.config.layers
    assert [calls[step] for step in ("permute", "gate_up", "down", "combine")] == [layers] * 4
    assert calls["decode"] == layers * (NEW - 1) and calls["route"] == layers * NEW
    assert not [who for _, who in model.operators.calls if who == "torch"]
    rows = model.rows_of_experts
    assert sum(rows.values()) == model.config.top_k * layers * (len(ids) + NEW - 1)
    assert len({expert for _, expert in rows}) == model.config.experts, "every expert has work"


def test_a_prompt_alone_gives_the_same_as_token_by_token() -> None:
    """Check that the five kernels for many tokens compute the same as the two kernels for one token."""
    model = load_mixture(TINY, Operators())
    x = torch.randn(7, model.config.hidden, generator=torch.Generator().manual_seed(18)).half()
    shared = torch.zeros_like(x)
    together = model.experts(0, x, shared)
    alone = torch.cat([model.experts(0, x[i : i + 1], shared[:1]) for i in range(len(x))])
    assert float((together - alone).abs().max()) < 4e-3 * float(together.abs().max())


def settings(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the settings of the tiny model, changed."""
    values: dict[str, Any] = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
    change(values)
    return values


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda v: v.update(model_type="mixtral"), "model_type is 'mixtral'"),
        (lambda v: v.update(decoder_sparse_step=2), "some layers have no experts"),
        (lambda v: v.update(num_experts=0), "num_experts is 0"),
        (lambda v: v.pop("moe_intermediate_size"), "moe_intermediate_size is None"),
        (lambda v: v.update(num_experts_per_tok=9), "9 experts per token, of 8"),
        (lambda v: v.update(hidden_act="gelu"), "hidden_act is 'gelu'"),
    ],
)
def test_settings_that_cannot_be_computed(change: Callable[[dict[str, Any]], Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_mixture(settings(change))


def test_a_folder_that_is_no_checkpoint(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_mixture(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_mixture(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(settings(lambda v: v.update(num_experts=9))))
    (tmp_path / "model.safetensors").write_bytes((TINY / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match=r"missing: model\.layers\.0\.mlp\.experts\.8\.gate_proj\.weight"):
        load_mixture(tmp_path)


def test_the_record_is_of_these_files() -> None:
    import hashlib

    record = json.loads((TINY / "record.json").read_text(encoding="utf-8"))
    for name, wanted in record["sha256"].items():
        assert hashlib.sha256((TINY / name).read_bytes()).hexdigest() == wanted, name
