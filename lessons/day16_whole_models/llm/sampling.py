"""Choose the next token from the logits: the largest, or a random one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """Sampling settings. ``temperature`` 0 selects the largest logit, and the other settings have no effect."""

    temperature: float = 1.0
    """The logits are divided by it: below 1, likely tokens become likelier."""
    top_k: int = 0
    """Keep only this many of the likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep only the likeliest tokens that together reach this probability."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature}; it must be 0 or more")
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k}; it must be 0 (all tokens) or more")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be above 0 and at most 1")

    @property
    def greedy(self) -> bool:
        """Return True if sampling is deterministic."""
        return self.temperature == 0

    def generator(self) -> torch.Generator:
        """Return the random generator of one text."""
        return torch.Generator().manual_seed(self.seed)


GREEDY = Sampling(temperature=0.0)


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return probabilities in float64 for logits [vocabulary]: temperature, then top_k, then top_p."""
    scores = logits.detach().cpu().double() / sampling.temperature
    if 0 < sampling.top_k < len(scores):
        kept = scores.topk(sampling.top_k).indices
        scores = torch.full_like(scores, -torch.inf).scatter(0, kept, scores[kept])
    found = scores.softmax(0)
    if sampling.top_p < 1:
        ordered, order = found.sort(descending=True, stable=True)
        before = ordered.cumsum(0) - ordered  # keep a token while those before it do not reach top_p
        found = found.scatter(0, order[before >= sampling.top_p], 0.0)
        found /= found.sum()
    return found


def draw(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Choose one token from logits [vocabulary]."""
    return int(torch.multinomial(probabilities(logits, sampling), 1, generator=generator))
