"""A Ray cluster in processes of this machine, for tests and for what is recorded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

ATTEMPTS = 4
_PATIENT = {"health_check_timeout_ms": 60_000, "health_check_failure_threshold": 20}
"""A busy machine's nodes are slow, not gone. One that is gone closes its connection, which is seen at once."""


@contextlib.contextmanager
def nodes_here(gpus: Sequence[int]) -> Iterator[Any]:
    """Nodes of one core, the first of them the head; ``gpus``: how many each pretends to have.

    Ray gives its processes half a minute to start; on a machine that is that busy it gets several attempts.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    memory: dict[str, Any] = {"object_store_memory": 80 << 20}
    head: dict[str, Any] = {"include_dashboard": False, "_system_config": _PATIENT}
    for left in reversed(range(ATTEMPTS)):
        nodes = Cluster()
        try:
            for number, count in enumerate(gpus):
                nodes.add_node(num_cpus=1, num_gpus=count, **memory, **({} if number else head))
            break
        except Exception:
            nodes.shutdown()
            if not left:
                raise
    try:
        yield nodes
    finally:
        nodes.shutdown()
