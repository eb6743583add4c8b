"""Simulated machines for tests, made of Linux namespaces.

Each machine has its own network, processes and Ray files, and a network cable that a test can unplug.

The machines are connected by a switch, which is a namespace as well. A cable is unplugged at the switch, so the machine
keeps its address and gets no notification. The host's network is not involved. Closing the pipes that hold the
namespaces removes everything.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psutil

_OWN = ["unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
_SWITCH = "ip link add switch up type bridge"
_MACHINE = """mkdir -p /tmp/ray
mount -t tmpfs none /tmp/ray
ip link set lo up
echo there
read -r address
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default dev eth0"""
"""The shell commands that start a machine.

It waits for a line with its address, which arrives when its cable exists.
"""


class NamespacesUnavailable(Exception):
    """This system cannot create simulated machines."""


class Machines:
    """Simulated machines with the numbers 1, 2, ... They share all files with the host, except those of Ray."""

    def __init__(self, count: int) -> None:
        self._holders: list[subprocess.Popen[str]] = []
        self._machines: list[int] = []
        try:
            self._switch = self._hold(["unshare", "--net"], _SWITCH).pid
            for number in range(1, count + 1):
                holder = self._hold(_OWN, _MACHINE)
                self._machines.append(psutil.Process(holder.pid).children()[0].pid)
                self._ip(f"link add cable{number} type veth peer name eth0 netns {self._machines[-1]}")
                self._ip(f"link set cable{number} up master switch")
                assert holder.stdin
                print(self.address(number), file=holder.stdin, flush=True)
                _answer(holder)
        except (OSError, subprocess.SubprocessError, NamespacesUnavailable) as error:
            self.close()
            raise NamespacesUnavailable(
                f"this system cannot create network namespaces: {getattr(error, 'stderr', None) or error}"
            ) from error

    @staticmethod
    def address(machine: int) -> str:
        """Return a machine's IP address."""
        return f"10.77.0.{machine}"

    def start(self, machine: int, command: list[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program on a machine, in the current folder."""
        there = self._enter(self._machines[machine - 1], "net", "mount", "pid")
        return subprocess.Popen([*there, "env", f"--chdir={Path.cwd()}", *command], text=True, **options)

    def cable(self, machine: int, plugged: bool) -> None:
        """Plug in or unplug a machine's cable at the switch."""
        self._ip(f"link set cable{machine} {'up' if plugged else 'down'}")

    def close(self) -> None:
        """Stop all machines and their processes."""
        for holder in reversed(self._holders):
            holder.communicate()

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hold(self, namespaces: list[str], begin: str) -> subprocess.Popen[str]:
        """Start a shell in new namespaces. They exist until its standard input is closed."""
        shell = [*namespaces, "sh", "-ec", f"{begin}\necho there\nexec cat >&2"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._holders.append(subprocess.Popen(shell, text=True, **pipes))
        return _answer(self._holders[-1])

    @staticmethod
    def _enter(process: int, *namespaces: str) -> list[str]:
        return ["nsenter", f"--target={process}", *(f"--{name}" for name in namespaces), "--"]

    def _ip(self, arguments: str) -> None:
        switch = [*self._enter(self._switch, "net"), "ip"]
        subprocess.run([*switch, *arguments.split()], check=True, capture_output=True, text=True)


def _answer(holder: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Wait until the namespaces exist; raise NamespacesUnavailable with the shell's message otherwise."""
    assert holder.stdout
    said = holder.stdout.readline().strip()
    if said != "there":
        raise NamespacesUnavailable(said or "the shell in the new namespaces ended without a message")
    return holder
