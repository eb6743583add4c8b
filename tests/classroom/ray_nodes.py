"""A Ray cluster in processes of this machine, for tests and recorded measurements."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import psutil

ATTEMPTS = 3
PATIENT = {"health_check_timeout_ms": 60_000, "health_check_failure_threshold": 20}
"""Health check settings that tolerate slow nodes.

Ray still notices a dead node at once, because its connection closes.
"""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "60",
    "RAY_gcs_server_request_timeout_seconds": "300",
    "RAY_worker_register_timeout_seconds": "600",
}


class NotStarted(Exception):
    """Ray's processes could not connect to each other."""


@contextlib.contextmanager
def local_nodes(gpus: Sequence[int], cores: int = 1) -> Iterator[Any]:
    """Start a cluster with one node for each element of ``gpus``: the number of GPUs that Ray assumes on the node.

    The first node is the head. Ray waits only 15 seconds for each of its processes, which may be too short on a busy
    machine, so starting is retried a few times before NotStarted is raised.
    """
    with patch.dict(os.environ, SETTINGS):
        from ray.cluster_utils import Cluster

        memory: dict[str, Any] = {"object_store_memory": 80 << 20}
        head: dict[str, Any] = {"include_dashboard": False, "_system_config": PATIENT}
        for left in reversed(range(ATTEMPTS)):
            nodes = Cluster()
            try:
                for number, count in enumerate(gpus):
                    nodes.add_node(num_cpus=cores, num_gpus=count, **memory, **({} if number else head))
                break
            except Exception as error:  # Ray raises a plain Exception if a start fails
                nodes.shutdown()
                if not left:
                    raise NotStarted(f"Ray did not start in {ATTEMPTS} attempts: {error}") from error
        try:
            yield nodes
        finally:
            nodes.shutdown()


class Silence:
    """A hanging node: all its processes are stopped between two calls, and their connections stay open."""

    def __init__(self, node: Any) -> None:
        self._stopped: list[psutil.Process] = []
        for root in [psutil.Process(one.process.pid) for some in node.all_processes.values() for one in some]:
            self._stop(root)  # stop it before it can start more children
            for process in root.children(recursive=True):
                self._stop(process)

    def _stop(self, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGSTOP)
            self._stopped.append(process)

    def end(self) -> None:
        """Resume the processes."""
        for process in self._stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        self._stopped = []
