"""Decode as a CUDA graph: the launches of one token are captured once, and replayed from then on.

A launch from Python takes some microseconds, and a token has hundreds of them. The rule of day 15: values that change
from token to token must lie in device memory, because a graph repeats the captured arguments. So the id, position, slot
and length are tensors, which the captured kernels advance, and all pages of the text are allocated beforehand.
"""

from __future__ import annotations

import torch

from llm.cache import Batch, PagedCache
from llm.model import Model


class DecodeGraph:
    """One text on a GPU: ``prefill`` returns the first token, and each ``step`` the next one, greedily."""

    def __init__(self, model: Model, cache: PagedCache, longest: int) -> None:
        """Set up buffers for ``longest`` tokens, prompt and answer together. Nothing else may use the cache."""
        self.model, self.cache, self.longest = model, cache, longest
        number = cache.create()
        self.whole = cache.append({number: [0] * longest})  # all pages, slots and positions of the text
        self.whole.ids.zero_()
        device = self.whole.ids.device
        self.now = Batch(
            ids=torch.zeros(1, dtype=torch.int64, device=device),
            positions=torch.zeros(1, dtype=torch.int32, device=device),
            slots=self.whole.slots[:1].clone(),
            block_tables=self.whole.block_tables,
            lengths=torch.ones(1, dtype=torch.int32, device=device),
            query_starts=torch.tensor([0, 1], dtype=torch.int32, device=device),
            last=torch.zeros(1, dtype=torch.int64, device=device),
            max_queries=1,
            one_query_each=True,
        )
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            beside = torch.cuda.Stream()
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):  # load kernels and allocate memory before the capture
                for _ in range(2):
                    self._token()
            torch.cuda.current_stream().wait_stream(beside)
            with torch.cuda.graph(self.graph):
                self._token()

    def _token(self) -> None:
        now = self.now
        now.ids.copy_(self.model.operators.argmax(self.model.forward(now, self.cache)))
        now.positions += 1
        now.lengths += 1
        now.slots.copy_(self.whole.slots[now.positions.long().clamp(max=self.longest - 1)])

    @torch.inference_mode()
    def prefill(self, ids: list[int]) -> int:
        """Read a prompt into an empty cache and return the first new token."""
        n, whole, device = len(ids), self.whole, self.whole.ids.device
        prompt = Batch(
            ids=torch.tensor(ids, device=device),
            positions=whole.positions[:n],
            slots=whole.slots[:n],
            block_tables=whole.block_tables,
            lengths=torch.tensor([n], dtype=torch.int32, device=device),
            query_starts=torch.tensor([0, n], dtype=torch.int32, device=device),
            last=torch.tensor([n - 1], device=device),
            max_queries=n,
            one_query_each=n == 1,
        )
        self.now.ids.copy_(self.model.operators.argmax(self.model.forward(prompt, self.cache)))
        self.now.positions.fill_(n)
        self.now.lengths.fill_(n + 1)
        self.now.slots.copy_(whole.slots[n : n + 1])
        return int(self.now.ids)

    @torch.inference_mode()
    def step(self) -> int:
        """Return the next token."""
        self.graph.replay()
        return int(self.now.ids)
