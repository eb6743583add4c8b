"""Prefill and decode as CUDA graphs: the launches of a prompt or a token are captured once, and replayed from then on.

A launch from Python takes some microseconds, and a token has hundreds of them. The rule of day 15: values that change
from token to token must lie in device memory, because a graph repeats the captured arguments. So the id, position, slot
and length are tensors, which the captured kernels advance, and all pages of the text are allocated beforehand. Prompts
of different lengths cannot have one graph, so each is padded to one of a few lengths.
"""

from __future__ import annotations

import torch

from llm.cache import Batch, PagedCache
from llm.model import Model

SHORTEST = 16
"""The shortest length to which prompts are padded: as many rows as the kernels for few rows take."""


class DecodeGraph:
    """One text on a GPU: ``prefill`` returns the first token, and each ``step`` the next one, greedily."""

    def __init__(self, model: Model, cache: PagedCache, longest: int) -> None:
        """Set up buffers for ``longest`` tokens, prompt and answer together. Nothing else may use the cache."""
        self.model, self.cache, self.longest = model, cache, longest
        self.whole = cache.append({cache.create(): [0] * longest})  # all pages, slots and positions of the text
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
            all_new=False,
        )
        self.prompts: dict[int, tuple[Batch, torch.cuda.CUDAGraph]] = {}
        """The padded prompt and the graph of each padded length that occurred."""
        with torch.inference_mode():
            self.graph = self._capture(self.now)

    def _capture(self, batch: Batch) -> torch.cuda.CUDAGraph:
        beside, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):  # load kernels and allocate memory before the capture
            for _ in range(2):
                self._token(batch)
        torch.cuda.current_stream().wait_stream(beside)
        with torch.cuda.graph(graph):
            self._token(batch)
        return graph

    def _token(self, batch: Batch) -> None:
        """Read the batch's tokens, and make the token after them the current one."""
        now = self.now
        now.ids.copy_(self.model.operators.argmax(self.model.forward(batch, self.cache)))
        torch.add(batch.positions[batch.last], 1, out=now.positions)
        torch.add(now.positions, 1, out=now.lengths)
        now.slots.copy_(self.whole.slots[now.positions.long().clamp(max=self.longest - 1)])

    def _prompt(self, length: int) -> Batch:
        """Return a batch of ``length`` tokens at the beginning of the text."""
        whole, device = self.whole, self.whole.ids.device
        return Batch(
            ids=torch.zeros(length, dtype=torch.int64, device=device),
            positions=whole.positions[:length],
            slots=whole.slots[:length],
            block_tables=whole.block_tables,
            lengths=torch.tensor([length], dtype=torch.int32, device=device),
            query_starts=torch.tensor([0, length], dtype=torch.int32, device=device),
            last=torch.tensor([length - 1], device=device),
            max_queries=length,
            one_query_each=length == 1,
            all_new=True,
        )

    @torch.inference_mode()
    def prefill(self, ids: list[int]) -> int:
        """Read a prompt into an empty cache and return the first new token.

        The prompt is padded at its end to a power of two. No token sees the padding, which comes after it, and later
        tokens overwrite its keys and values. Raise ValueError for a prompt that leaves no room for a token after it.
        """
        if not 0 < len(ids) < self.longest:
            raise ValueError(f"a prompt of {len(ids)} tokens: there is room for 1 to {self.longest - 1}")
        length = min(max(SHORTEST, 1 << (len(ids) - 1).bit_length()), self.longest)
        if length not in self.prompts:
            batch = self._prompt(length)
            self.prompts[length] = batch, self._capture(batch)
        batch, graph = self.prompts[length]
        batch.ids.copy_(torch.tensor(ids + [0] * (length - len(ids))))
        batch.last.fill_(len(ids) - 1)
        graph.replay()
        return int(self.now.ids)

    @torch.inference_mode()
    def step(self) -> int:
        """Return the next token."""
        self.graph.replay()
        return int(self.now.ids)
