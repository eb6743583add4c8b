"""A Ray cluster in processes of this machine, for tests and for what is recorded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

ATTEMPTS = 4
_PATIENT = {"health_check_timeout_ms": 60_000, "health_check_failure_threshold": 20}
"""A busy machine's nodes are slow, not gone. One that is gone closes its connection, which is seen at once."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_request_timeout_seconds": "300",
    "RAY_worker_register_timeout_seconds": "600",
}


@contextlib.contextmanager
def nodes_here(gpus: Sequence[int]) -> Iterator[Any]:
    """Nodes of one core, the first of them the head; ``gpus``: how many each pretends to have.

    Where a machine is too busy for Ray's processes to find each other in time, they get several attempts.
    """
    before = dict(os.environ)
    os.environ.update(_SETTINGS)
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
        for name in _SETTINGS:
            os.environ.pop(name)
        os.environ.update(before)
