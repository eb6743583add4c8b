"""Measure the peak memory of a computation beyond what was allocated before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_bytes(work: Callable[[], object], device: str) -> int:
    """Run the function and return the peak bytes of live tensors, less those from before."""
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return torch.cuda.max_memory_allocated() - before
    with _Watch() as watch:
        work()
    return watch.most


class _Watch(TorchDispatchMode):
    """A dispatch mode that sees every torch operation and tracks the memory of its results."""

    def __init__(self) -> None:
        super().__init__()
        self.living: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in given:  # not a view
                storage = tensor.untyped_storage()
                self.living[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.living = {key: entry for key, entry in self.living.items() if not entry[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.living.values()))
        return result
