"""Generate one text: the prompt in one pass (prefill), then one token after the other (decode)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from llm.cache import PagedCache
from llm.model import Model
from llm.sampling import GREEDY, Sampling, draw


@dataclass
class Generated:
    """A generated text."""

    ids: list[int]
    """The new tokens; the last one may be an end token."""
    text: str
    """The decoded tokens without the prompt; empty if the model has no tokenizer."""
    logits: Tensor
    """[vocabulary], the last logits; the caller may sample from them again."""
    seconds: list[float] = field(default_factory=list)
    """Seconds per token. The first is the time to the first token, including the prompt."""


def tokens_of(model: Model, prompt: str | Sequence[int]) -> list[int]:
    """Return a prompt as checked token ids."""
    if isinstance(prompt, str):
        if model.tokenizer is None:
            raise ValueError("this checkpoint has no tokenizer.json: give the prompt as a list of tokens")
        prompt = model.tokenizer.encode(prompt)
    ids = [int(token) for token in prompt]
    if not ids:
        raise ValueError("the prompt has no tokens")
    wrong = [token for token in ids if not 0 <= token < model.config.vocabulary]
    if wrong:
        raise ValueError(f"token {wrong[0]} is outside the vocabulary of {model.config.vocabulary}")
    return ids


def choose(model: Model, logits: Tensor, sampling: Sampling, generators: Sequence[torch.Generator]) -> list[int]:
    """Return the next token of each sequence from logits [sequences, vocabulary]."""
    if sampling.greedy:
        return list(model.operators.argmax(logits).tolist())
    return [draw(row, sampling, generator) for row, generator in zip(logits, generators)]


@torch.inference_mode()
def generate(
    model: Model,
    prompt: str | Sequence[int],
    tokens: int,
    sampling: Sampling = GREEDY,
    cache: PagedCache | None = None,
) -> Generated:
    """Generate at most ``tokens`` tokens, fewer at an end token. Without a cache, create one of the right size."""
    ids = tokens_of(model, prompt)
    if tokens < 1:
        raise ValueError(f"{tokens} new tokens: it must be at least 1")
    if len(ids) + tokens > model.config.positions:
        raise ValueError(f"{len(ids)} + {tokens} tokens are more than the model's {model.config.positions} positions")
    cache = cache or model.new_cache(len(ids) + tokens)
    number, generator = cache.create(), sampling.generator()
    new: list[int] = []
    seconds = []
    try:
        while True:
            begin = time.perf_counter()
            logits = model.forward(cache.append({number: new[-1:] or ids}), cache)
            new += choose(model, logits, sampling, [generator])
            seconds.append(time.perf_counter() - begin)
            if len(new) == tokens or new[-1] in model.config.end_tokens:
                break
    finally:
        cache.free(number)
    text = model.tokenizer.decode(new) if model.tokenizer else ""
    return Generated(new, text, logits[0], seconds)
