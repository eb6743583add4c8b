"""Load a model from a Hugging Face checkpoint folder: config.json, safetensors files, tokenizer.json.

Every tensor in the files must belong to the model and have the right shape, and none may be missing; otherwise an error
lists the names. A layer that silently keeps random values writes fluent nonsense.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from llm.config import Config, read_config
from llm.model import Model
from llm.neox import NeoX
from llm.operators import Operators
from llm.qwen2 import Qwen2
from llm.tokenizer import Tokenizer

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MODELS: dict[str, type[Model]] = {"qwen2": Qwen2, "gpt_neox": NeoX}
NO_WEIGHTS = re.compile(r"\.(rotary_emb\.inv_freq|attention\.masked_bias|attention\.bias)$")
"""Tables that older files store beside the weights; the configuration implies them."""


class CheckpointError(ValueError):
    """A checkpoint that does not match its configuration, or cannot be read."""


def load(folder: str | Path, operators: Operators | None = None, dtype: torch.dtype = torch.float32) -> Model:
    """Load the model in a folder, as ``dtype`` on the operators' device. Raise ConfigError or CheckpointError."""
    folder, operators = Path(folder), operators or Operators()
    config = read_config(folder)
    tensors = read_tensors(folder, dtype, operators.device)
    tokenizer = Tokenizer(folder / "tokenizer.json") if (folder / "tokenizer.json").is_file() else None
    return build(config, tensors, operators, tokenizer)


def build(
    config: Config, tensors: dict[str, Tensor], operators: Operators, tokenizer: Tokenizer | None = None
) -> Model:
    """Build a model from tensors by Hugging Face's names; check names and shapes. Raise CheckpointError."""
    kind = MODELS[config.architecture]
    check(kind.shapes(config), tensors, config)
    return kind(config, tensors, operators, tokenizer)


def read_tensors(folder: Path, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """Read every weight of a folder's safetensors files, by name."""
    tensors: dict[str, Tensor] = {}
    for name in files(folder):
        try:
            with safe_open(folder / name, framework="pt", device=device) as opened:
                for key in opened.keys():  # noqa: SIM118 (not a dict)
                    if key in tensors:
                        raise CheckpointError(f"{key} stands in {name} and in another file")
                    if not NO_WEIGHTS.search(key):
                        tensors[key] = opened.get_tensor(key).to(dtype)
        except FileNotFoundError:
            raise CheckpointError(f"{INDEX} names {name}, which is not there") from None
        except (SafetensorError, OSError) as problem:
            raise CheckpointError(f"{name} cannot be read: {problem}") from None
    # The name of GPT-NeoX's output layer in files.
    if "embed_out.weight" in tensors:
        tensors["lm_head.weight"] = tensors.pop("embed_out.weight")
    return tensors


def files(folder: Path) -> list[str]:
    """Return the safetensors files of a folder: those in the index, or the only one."""
    if (folder / INDEX).is_file():
        try:
            listed = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
            names = sorted(set(listed.values()))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise CheckpointError(f"{INDEX} is no index: {problem}") from None
        outside = [name for name in names if Path(name).name != name]
        if outside:
            raise CheckpointError(f"{INDEX} names {outside[0]!r}, which is no file of the folder")
        return names
    if (folder / ONE_FILE).is_file():
        return [ONE_FILE]
    raise CheckpointError(f"{folder.name} has neither {ONE_FILE} nor {INDEX} (files of other formats are not read)")


def check(wanted: dict[str, tuple[int, ...]], tensors: dict[str, Tensor], config: Config) -> None:
    """Raise CheckpointError with every tensor that is missing, unexpected or of a wrong shape."""
    given = dict(tensors)
    if config.tied:  # some files store the table a second time, as the output layer
        given.pop("lm_head.weight", None)
    problems = [f"missing: {name} {list(wanted[name])}" for name in wanted if name not in given]
    problems += [f"left over: {name} {list(tensor.shape)}" for name, tensor in given.items() if name not in wanted]
    problems += [
        f"wrong shape: {name} {list(given[name].shape)}, the configuration says {list(shape)}"
        for name, shape in wanted.items()
        if name in given and tuple(given[name].shape) != shape
    ]
    if problems:
        raise CheckpointError("the weights do not fit config.json\n  " + "\n  ".join(problems))
