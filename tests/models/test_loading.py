"""Loading of valid checkpoint folders, and the errors for invalid ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from llm import CheckpointError, ConfigError, Operators, generate, load
from llm.config import parse_config
from safetensors.torch import load_file, save_file

from tests.models.conftest import PROMPT, TINY

BY_TORCH = Operators(use="torch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the tiny Qwen2's folder, which a test may damage."""
    return Path(shutil.copytree(TINY["qwen2"], tmp_path / "checkpoint"))


def rewrite(folder: Path, **settings: Any) -> None:
    """Change settings in config.json. The value ``...`` removes a setting."""
    file = folder / "config.json"
    values = json.loads(file.read_text()) | settings
    file.write_text(json.dumps({name: value for name, value in values.items() if value is not ...}))


def test_several_files_and_an_index(folder: Path) -> None:
    whole = generate(load(folder, BY_TORCH), PROMPT, 4).ids
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: tensors[name] for name in some}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert generate(load(folder, BY_TORCH), PROMPT, 4).ids == whole
    (folder / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"names b\.safetensors, which is not there"):
        load(folder, BY_TORCH)


def test_missing_left_over_and_misshapen_tensors_are_listed(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.q_proj.bias"]
    tensors["model.layers.0.self_attn.o_proj.bias"] = torch.zeros(64)
    tensors["model.norm.weight"] = torch.zeros(63)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError) as problem:
        load(folder, BY_TORCH)
    said = str(problem.value)
    assert "missing: model.layers.1.self_attn.q_proj.bias [64]" in said
    assert "left over: model.layers.0.self_attn.o_proj.bias [64]" in said
    assert "wrong shape: model.norm.weight [63], the configuration says [64]" in said


def test_an_untied_output_layer(folder: Path) -> None:
    """Check untied weights: the output layer must exist and is used."""
    rewrite(folder, tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match=r"missing: lm_head\.weight \[384, 64\]"):
        load(folder, BY_TORCH)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].flip(0).contiguous()
    save_file(tensors, folder / "model.safetensors")
    first = generate(load(TINY["qwen2"], BY_TORCH), PROMPT, 1).ids
    assert generate(load(folder, BY_TORCH), PROMPT, 1).ids == [383 - first[0]]


def test_files_of_other_versions(tmp_path: Path) -> None:
    """Check older names of RoPE's settings, stored RoPE tables, and both names of the output layer."""
    folder = Path(shutil.copytree(TINY["neox"], tmp_path / "old"))
    tensors = load_file(folder / "model.safetensors")
    assert "embed_out.weight" in tensors, "as transformers still writes it"
    tensors["lm_head.weight"] = tensors.pop("embed_out.weight")
    tensors["gpt_neox.layers.0.attention.rotary_emb.inv_freq"] = torch.ones(4)
    tensors["gpt_neox.layers.0.attention.masked_bias"] = torch.tensor(-1e9)
    save_file(tensors, folder / "model.safetensors")
    rewrite(folder, rope_parameters=..., rotary_pct=0.25, rotary_emb_base=10000)
    expected = generate(load(TINY["neox"], BY_TORCH), PROMPT, 6).ids
    assert generate(load(folder, BY_TORCH), PROMPT, 6).ids == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'; this library has qwen2 and gpt_neox"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "RoPE is scaled ('yarn')"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear"}}, "RoPE is scaled ('linear')"),
        ({"use_sliding_window": True}, "use_sliding_window is True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "no sliding window"),
        ({"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new'"),
        ({"num_key_value_heads": 3}, "2 heads cannot share 3"),
        ({"hidden_size": "64"}, "hidden_size is '64'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'"),
        ({"eos_token_id": "end"}, "eos_token_id is 'end'"),
    ],
)
def test_settings_that_the_library_does_not_have(folder: Path, settings: dict[str, Any], said: str) -> None:
    rewrite(folder, **settings)
    with pytest.raises(ConfigError) as problem:
        load(folder, BY_TORCH)
    assert said in str(problem.value)


def test_folders_without_a_model(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no config\.json in nowhere"):
        load(tmp_path / "nowhere", BY_TORCH)
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read"):
        load(folder, BY_TORCH)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"has neither model\.safetensors nor"):
        load(folder, BY_TORCH)
    (folder / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json cannot be read"):
        load(folder, BY_TORCH)


def test_pythia_and_qwen2_as_they_are_published() -> None:
    """Check that the settings of published models are read: those of Pythia 2.8B and Qwen2 1.5B."""
    pythia = parse_config(
        {
            "model_type": "gpt_neox",
            "hidden_act": "gelu",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "rotary_emb_base": 10000,
            "rotary_pct": 0.25,
            "layer_norm_eps": 1e-05,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            "use_parallel_residual": True,
            "vocab_size": 50304,
            "eos_token_id": 0,
        }
    )
    assert (pythia.head_dim, pythia.rotary_dim, pythia.kv_heads) == (80, 20, 32)
    assert pythia.parallel_residual and pythia.end_tokens == (0,)
    qwen2 = parse_config(
        {
            "model_type": "qwen2",
            "hidden_act": "silu",
            "hidden_size": 1536,
            "intermediate_size": 8960,
            "num_attention_heads": 12,
            "num_key_value_heads": 2,
            "num_hidden_layers": 28,
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0,
            "sliding_window": 131072,
            "use_sliding_window": False,
            "tie_word_embeddings": True,
            "vocab_size": 151936,
            "max_position_embeddings": 131072,
            "eos_token_id": [151645, 151643],
        }
    )
    assert (qwen2.head_dim, qwen2.rotary_dim, qwen2.theta) == (128, 128, 1e6)
    assert qwen2.tied and qwen2.end_tokens == (151645, 151643)
