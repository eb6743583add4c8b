"""Parse config.json into one Config for both architectures.

Hugging Face's files use different names for the same setting, by architecture and version. A setting that this library
cannot compute is an error: an ignored setting gives a model that writes nonsense.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ConfigError(ValueError):
    """A config.json that cannot be read, or asks for an unsupported feature."""


@dataclass(frozen=True)
class Config:
    """The sizes and settings of a model."""

    architecture: str
    """qwen2 or gpt_neox"""
    vocabulary: int
    hidden: int
    """C, the width of the residual stream."""
    feed_forward: int
    """F, the width inside the MLP."""
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    """The number of channels of a head that RoPE rotates; the others are unchanged."""
    theta: float
    eps: float
    positions: int
    """The longest text that the model supports."""
    tied: bool
    """True if the output layer is the embedding table."""
    parallel_residual: bool = False
    """GPT-NeoX: attention and MLP read the same x, and both are added to it."""
    attention_bias: bool = True
    """True if the layers before and (GPT-NeoX) after attention have biases."""
    end_tokens: tuple[int, ...] = ()
    """The ids of end-of-text tokens."""


def read_config(folder: str | Path) -> Config:
    """Read the configuration of a checkpoint folder. Raise ConfigError."""
    file = Path(folder) / "config.json"
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no {file.name} in {Path(folder).name}: is it a checkpoint's folder?") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise ConfigError(f"{file.name} cannot be read: {problem}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file.name} holds no settings")
    return parse_config(values)


def parse_config(values: dict[str, Any]) -> Config:
    """Parse the settings of config.json. Raise ConfigError."""
    known = {"qwen2": _qwen2, "gpt_neox": _neox}
    architecture = values.get("model_type")
    if architecture not in known:
        raise ConfigError(f"model_type is {architecture!r}; this library has {' and '.join(known)}")
    config = known[architecture](_Settings(values))
    if config.heads % config.kv_heads:
        raise ConfigError(f"{config.heads} heads cannot share {config.kv_heads} key/value heads")
    if config.rotary_dim % 2 or not 0 < config.rotary_dim <= config.head_dim:
        raise ConfigError(f"RoPE cannot turn {config.rotary_dim} of {config.head_dim} channels")
    return config


class _Settings:
    """The settings of config.json, with errors that name the setting."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def get(self, name: str, default: Any) -> Any:
        """Return an optional setting."""
        value = self.values.get(name)
        return default if value is None else value

    def size(self, name: str, default: int | None = None) -> int:
        """Return an integer setting of at least 1."""
        value = self.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{name} is {value!r}; it must be a whole number of at least 1")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a setting that must be a positive number."""
        return self.positive(name, self.get(name, default))

    def positive(self, name: str, value: Any) -> float:
        """Return the value as a float. Raise ConfigError unless it is a positive number."""
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            raise ConfigError(f"{name} is {value!r}; it must be a number above 0")
        return float(value)

    def switch(self, name: str, default: bool) -> bool:
        """Return a boolean setting."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is {value!r}; it must be true or false")
        return value

    def must_be(self, name: str, allowed: tuple[Any, ...], default: Any) -> None:
        """Check a setting for which only some values are supported."""
        value = self.get(name, default)
        if value not in allowed:
            raise ConfigError(f"{name} is {value!r}; this library has only {' or '.join(map(repr, allowed))}")

    def rope(self) -> dict[str, Any]:
        """Return the RoPE settings: from ``rope_parameters``, or from ``rope_scaling`` and separate names."""
        found = self.get("rope_parameters", {}) or self.get("rope_scaling", {})
        if not isinstance(found, dict):
            raise ConfigError(f"rope_parameters is {found!r}; it must be a JSON object")
        kind = found.get("rope_type", found.get("type", "default"))
        if kind != "default":
            raise ConfigError(f"RoPE is scaled ({kind!r}); this library has only plain RoPE")
        return found

    def ends(self) -> tuple[int, ...]:
        """Return the ids of eos_token_id, which may be missing, a number or a list."""
        value = self.get("eos_token_id", [])
        ends = value if isinstance(value, list) else [value]
        if not all(isinstance(token, int) and not isinstance(token, bool) for token in ends):
            raise ConfigError(f"eos_token_id is {value!r}; it must be a token's number or several")
        return tuple(ends)


def _qwen2(settings: _Settings) -> Config:
    settings.must_be("hidden_act", ("silu",), "silu")
    settings.must_be("use_sliding_window", (False,), False)
    kinds = settings.get("layer_types", [])
    if any(kind != "full_attention" for kind in kinds):
        raise ConfigError("layer_types has layers other than 'full_attention'; this library has no sliding window")
    rope = settings.rope()
    hidden, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    head_dim = settings.size("head_dim", hidden // heads)
    return Config(
        architecture="qwen2",
        vocabulary=settings.size("vocab_size"),
        hidden=hidden,
        feed_forward=settings.size("intermediate_size"),
        layers=settings.size("num_hidden_layers"),
        heads=heads,
        kv_heads=settings.size("num_key_value_heads", heads),
        head_dim=head_dim,
        rotary_dim=head_dim,
        theta=settings.positive("rope_theta", rope.get("rope_theta", settings.get("rope_theta", 10000.0))),
        eps=settings.number("rms_norm_eps", 1e-6),
        positions=settings.size("max_position_embeddings", 32768),
        tied=settings.switch("tie_word_embeddings", False),
        end_tokens=settings.ends(),
    )


def _neox(settings: _Settings) -> Config:
    settings.must_be("hidden_act", ("gelu",), "gelu")
    rope = settings.rope()
    hidden, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    if hidden % heads:
        raise ConfigError(f"hidden_size {hidden} is no multiple of num_attention_heads {heads}")
    head_dim = hidden // heads
    share = rope.get("partial_rotary_factor", settings.get("rotary_pct", 0.25))
    theta = rope.get("rope_theta", settings.get("rotary_emb_base", 10000.0))
    return Config(
        architecture="gpt_neox",
        vocabulary=settings.size("vocab_size"),
        hidden=hidden,
        feed_forward=settings.size("intermediate_size"),
        layers=settings.size("num_hidden_layers"),
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        rotary_dim=int(head_dim * settings.positive("rotary_pct", share)),
        theta=settings.positive("rotary_emb_base", theta),
        eps=settings.number("layer_norm_eps", 1e-5),
        positions=settings.size("max_position_embeddings", 2048),
        tied=settings.switch("tie_word_embeddings", False),
        parallel_residual=settings.switch("use_parallel_residual", True),
        attention_bias=settings.switch("attention_bias", True),
        end_tokens=settings.ends(),
    )
