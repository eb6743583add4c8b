"""A serving loop with continuous batching: each step computes a token for all running requests.

A step first admits waiting requests that fit, computes their prompts in one pass (prefill), then computes one more
token of every other text in one pass (decode). Texts with a common beginning fork it and share its pages; copy-on-write
gives each its own page when it first writes. If pages run out, the youngest text frees its pages and restarts later.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from llm.cache import OutOfPages, PagedCache
from llm.generate import choose, tokens_of
from llm.model import Model
from llm.sampling import GREEDY, Sampling


@dataclass
class Request:
    """A prompt, the number of tokens to generate, and the server step in which it arrives."""

    prompt: str | Sequence[int]
    tokens: int
    arrives: int = 0
    sampling: Sampling = GREEDY


@dataclass
class Served:
    """The results of the requests, in their order."""

    ids: list[list[int]]
    """The new tokens of each request."""
    first_token: list[float]
    """Seconds from arrival to first token, for each request."""
    seconds: float = 0.0
    steps: int = 0
    most_at_once: int = 0
    restarts: int = 0
    shared_tokens: int = 0
    """Number of prompt tokens that were not computed, because a shared beginning already held them."""
    passes: list[tuple[int, int]] = field(default_factory=list)
    """The numbers of sequences and of new tokens in each pass through the model."""

    @property
    def tokens_per_second(self) -> float:
        """Return the throughput over all requests."""
        return sum(map(len, self.ids)) / self.seconds


@dataclass
class _Running:
    request: int
    """Index in the list of requests."""
    number: int
    """Number of the request's sequence in the cache."""
    todo: list[int]
    """Tokens that the cache does not hold yet: the prompt, or the newest token."""
    generator: torch.Generator


@torch.inference_mode()
def serve(
    model: Model,
    requests: Sequence[Request],
    cache: PagedCache,
    beginning: str | Sequence[int] = (),
    at_once: int = 8,
) -> Served:
    """Serve all requests, at most ``at_once`` at a time. ``beginning``: a common prefix, computed once."""
    server = _Server(model, [tokens_of(model, r.prompt) for r in requests], requests, cache, at_once)
    return server.run(tokens_of(model, beginning) if beginning else [])


class _Server:
    def __init__(
        self, model: Model, prompts: list[list[int]], requests: Sequence[Request], cache: PagedCache, at_once: int
    ) -> None:
        self.model, self.prompts, self.requests, self.cache, self.at_once = model, prompts, requests, cache, at_once
        self.waiting = sorted(range(len(requests)), key=lambda i: requests[i].arrives)
        self.running: list[_Running] = []
        self.arrived = [0.0] * len(requests)
        self.done = Served([[] for _ in requests], [0.0] * len(requests))
        self.beginning: list[int] = []
        self.shared = -1

    def run(self, beginning: list[int]) -> Served:
        """Run until every request has its tokens."""
        begin = time.perf_counter()
        if beginning:
            self.beginning, self.shared = beginning, self.cache.create()
            self._forward({self.shared: beginning})
        while self.waiting or self.running:
            for i in self.waiting:
                if self.requests[i].arrives == self.done.steps:
                    self.arrived[i] = time.perf_counter()
            self._step()
            self.done.steps += 1
        if beginning:
            self.cache.free(self.shared)
        self.done.seconds = time.perf_counter() - begin
        return self.done

    def _step(self) -> None:
        old = list(self.running)
        new = self._let_in()
        self._pass(new)
        while True:
            old = [text for text in old if text in self.running]
            try:
                self._pass(old)
                break
            except OutOfPages:
                self._send_back()
        self.done.most_at_once = max(self.done.most_at_once, len(self.running))
        for text in list(self.running):
            if self._is_done(text):
                self.cache.free(text.number)
                self.running.remove(text)

    def _let_in(self) -> list[_Running]:
        """Admit the requests that have arrived and fit, first come, first served."""
        new: list[_Running] = []
        allocator, needed = self.cache.allocator, 0
        while self.waiting and len(self.running) < self.at_once:
            i = self.waiting[0]
            if self.requests[i].arrives > self.done.steps:
                break
            prompt, common = self.prompts[i], len(self.beginning)
            forks = common > 0 and prompt[:common] == self.beginning and len(prompt) > common
            number = self.cache.fork(self.shared) if forks else self.cache.create()
            todo = prompt[common:] if forks else prompt
            needed += allocator.pages_needed(number, len(todo) + 1)
            if needed > allocator.free_pages:
                self.cache.free(number)
                if not self.running:
                    raise OutOfPages(f"the cache is too small for request {i} of {len(prompt)} tokens")
                break
            self.waiting.pop(0)
            self.done.shared_tokens += common if forks else 0
            new.append(_Running(i, number, todo, self.requests[i].sampling.generator()))
            self.running.append(new[-1])
        return new

    def _pass(self, texts: list[_Running]) -> None:
        """Compute the next token of these texts. Raise OutOfPages, with nothing changed."""
        if not texts:
            return
        logits = self._forward({text.number: text.todo for text in texts})
        now = time.perf_counter()
        for row, text in zip(logits, texts):
            sampling = self.requests[text.request].sampling
            ids = self.done.ids[text.request]
            if not ids:
                self.done.first_token[text.request] = now - self.arrived[text.request]
            ids += choose(self.model, row[None], sampling, [text.generator])
            text.todo = ids[-1:]

    def _forward(self, texts: dict[int, list[int]]) -> torch.Tensor:
        logits = self.model.forward(self.cache.append(texts), self.cache)
        self.done.passes.append((len(texts), sum(map(len, texts.values()))))
        return logits

    def _is_done(self, text: _Running) -> bool:
        ids = self.done.ids[text.request]
        return len(ids) >= self.requests[text.request].tokens or ids[-1] in self.model.config.end_tokens

    def _send_back(self) -> None:
        """Free the pages of the youngest text, which restarts when there is room."""
        if len(self.running) == 1:
            raise OutOfPages("the cache is too small for a single text")
        text = self.running.pop()
        self.cache.free(text.number)
        self.done.ids[text.request] = []
        self.done.restarts += 1
        self.waiting.insert(0, text.request)
