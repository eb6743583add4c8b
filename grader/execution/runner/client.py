"""The parent's interface to a child process: starts it, sends requests, and finds out how it ended."""

from __future__ import annotations

import array
import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from grader.execution.jail.running import NO_JAIL, Jail, Start
from grader.execution.runner.answers import MOST_BYTES, Answer, Ended, Malformed, Ok, Refused, clean, parse
from grader.execution.runner.process import Printed, TimeLimit, Usage, how_ended
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from grader.execution.runner.warm import WarmRunners

SIMULATOR_MEGABYTES = 8192
"""The limit for the address space of a child on the simulator. Most of it is reserved, but never used."""

MOST_MEMORY = 3 << 30
"""The limit for the resident memory of a child on the simulator, in bytes. It applies in a sandbox only."""

MOST_HOST_MEMORY_WITH_GPU = 16 << 30
"""The same limit for a child on a GPU. It includes up to 1 GB of CUDA's driver, and the tensors of timed calls."""

LOADING_SECONDS = 5.0
"""The limit of processor time for loading a kernel, including its static constructors."""

_NOTHING = Ended("exit", "it gave no answer")


@dataclass
class Reply:
    """The reply to a request."""

    answer: Answer
    seconds: float = 0.0
    """The time between request and answer, measured by the parent."""
    cpu_seconds: float = 0.0
    """The processor time that the child used for the request, as the system measures it."""
    printed: str = ""


@dataclass
class Child:
    """A child process. The first request starts it. If it has ended, the next request starts it again."""

    program: Path
    kernel: Path
    libsim: Path | None = None
    """The path of the libsim that the child loads; None for a child that uses a GPU."""
    settings: Mapping[str, str] = field(default_factory=dict)
    cpu_seconds: int = 300
    jail: Jail = NO_JAIL
    standard_input: int = subprocess.DEVNULL
    warm: WarmRunners | None = None
    """Runners that have already started. The child takes one of them if it can, instead of starting its own."""

    _process: subprocess.Popen[bytes] | None = None
    _socket: socket.socket | None = None
    _printed: Printed | None = None
    _paths: Mapping[Path, Path] = field(default_factory=dict)
    """The path inside the sandbox of each file that the process can read."""
    _folder: Path | None = None
    """The folder of a runner that started before its kernel was built."""
    _last_request: str = ""
    """The first word of the last request."""
    _killed: bool = False
    _usage: Usage = field(default_factory=Usage)
    """The resources that the runner uses. In a sandbox, the runner is a child of the started process, bwrap."""

    returning: ClassVar[str] = "returning from the launcher"
    """What the process should do instead of ending."""
    started: ClassVar[set[int]] = set()
    """The process ids of all runners that were started so far."""

    @property
    def alive(self) -> bool:
        """True if the child process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def killed(self) -> bool:
        """True if ``kill`` was called."""
        return self._killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def request(self, text: str, files: Sequence[int] = (), timeout: float = 20.0, awake: bool = False) -> Reply:
        """Send a request and wait for its answer.

        With ``awake``, poll for the answer in the first two seconds, so that the time is accurate.
        """
        self.send(text, files)
        return self.receive(timeout, awake)

    def send(self, text: str, files: Sequence[int] = ()) -> None:
        """Send a request and start measuring its time. The caller can do other work until it calls ``receive``."""
        if not self.alive:
            self.start()
        assert self._socket and self._process
        self._last_request = text.split(None, 1)[0]
        self._sent = time.monotonic()
        self._usage.restart()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        with contextlib.suppress(OSError):  # the child has ended: receive() finds out why
            self._socket.sendmsg([text.encode()], ancillary)

    def receive(self, timeout: float = 20.0, awake: bool = False) -> Reply:
        """Wait for the answer to the last request.

        The child is stopped after ``timeout`` seconds of processor time, or twice as many seconds in which it sleeps.
        Seconds in which it waits for a processor do not count, so a busy machine does not stop it.
        """
        assert self._socket and self._process
        process = self._process
        if awake and (answer := self._answer_soon(self._socket)):
            return self._answered(answer, Reply(_NOTHING, seconds=time.monotonic() - self._sent))
        received = self._wait(process, self._socket, timeout)
        reply = Reply(_NOTHING, time.monotonic() - self._sent, self._usage.cpu_seconds())
        if isinstance(received, bytes):
            reply.printed = self._new_output()
            return self._answered(received, reply)
        reply.answer = received or self._how_it_ended(process)
        if reply.answer.problem != "oom":
            reply.printed = self._new_output()
        self.stop()
        return reply

    def _wait(self, process: subprocess.Popen[bytes], sock: socket.socket, timeout: float) -> bytes | Ended | None:
        """Return the child's answer, the limit that it exceeded, or None if it closed its socket or ended."""
        most_memory = MOST_HOST_MEMORY_WITH_GPU if self.jail.gpu else MOST_MEMORY
        limit = TimeLimit(self._usage, timeout)
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        ended = -1
        with contextlib.suppress(OSError, AttributeError):  # without pidfd_open, the closed socket shows the end
            ended = os.pidfd_open(process.pid)
            poll.register(ended, select.POLLIN)
        try:
            while True:
                ready = {file for file, _ in poll.poll(100)}
                if sock.fileno() in ready:
                    with contextlib.suppress(OSError):
                        return sock.recv(MOST_BYTES + 1, socket.MSG_DONTWAIT) or None
                    return None
                if ended in ready:
                    return None
                if self.jail.tier != "none" and self._usage.memory() > most_memory:
                    return Ended("oom", f"it used more than {most_memory >> 30} GB of memory and was stopped")
                if limit.exceeded(time.monotonic() - self._sent):
                    why = "an infinite loop, a deadlock, or far too slow"
                    return Ended("timeout", f"it did not finish within {timeout:.3g} s and was stopped: {why}")
        finally:
            if ended >= 0:
                os.close(ended)

    def _answered(self, packet: bytes, reply: Reply) -> Reply:
        """Return the reply with the child's answer. Stop the child if its answer is invalid."""
        try:
            reply.answer = parse(packet, self._last_request)
        except Malformed as error:
            reply.answer = Ended("reply", f"its process sent an answer that the runner never sends: {error}")
            self.stop()
        return reply

    @staticmethod
    def _status(process: subprocess.Popen[bytes]) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=0.1)
        return None

    def _how_it_ended(self, process: subprocess.Popen[bytes]) -> Ended:
        asleep, cpu_before = 0, self._usage.cpu_seconds()
        while (status := self._status(process)) is None:
            asleep += self._usage.asleep() and os.path.exists(f"/proc/{self._usage.pid}")
            # Its state decides, not the time that passed: on a busy machine, a process may take seconds to end.
            if asleep > 20 or self._usage.cpu_seconds() > cpu_before + 2.0:
                return Ended("exit", f"it closed its connection instead of {self.returning}")
        if self.jail.tier == "bwrap" and 128 < status < 128 + signal.NSIG:
            status = 128 - status  # bubblewrap returns 128 plus the signal's number
        return how_ended(status, self.returning)

    def _answer_soon(self, sock: socket.socket) -> bytes:
        """Poll for an answer for two seconds; empty if none arrives or the child ends."""
        while time.monotonic() - self._sent < 2.0:
            with contextlib.suppress(BlockingIOError):
                try:
                    return sock.recv(MOST_BYTES + 1, socket.MSG_DONTWAIT)
                except ConnectionError:
                    return b""
        return b""

    def start(self) -> str:
        """Start the process and load the kernel into it. Return the text that it printed in that time."""
        self.stop()
        if self.warm is not None and (runner := self.warm.take(self)) is not None:
            kernel = self._adopt(runner)
        else:
            self._launch()
            kernel = self._paths[self.kernel]
        lines = ["load"]
        if self.libsim:
            lines.append(f"libsim {self._paths[self.libsim]}")
        lines += [f"set {key} {value}" for key, value in self.settings.items()]
        lines.append(f"kernel {kernel}")
        reply = self._first_request("\n".join(lines))
        if isinstance(reply.answer, Ended):
            raise LoadFailed(f"loading the kernel failed: {reply.answer.text}", reply.printed)
        if isinstance(reply.answer, Refused):
            raise LoadFailed(f"the kernel cannot be loaded: {reply.answer.reason}", reply.printed)
        return reply.printed

    def prepare(self, folder: Path) -> bool:
        """Start the process and initialize its device, before there is a kernel. Return whether that succeeded.

        Another child, which takes this process over, puts its kernel into the empty ``folder``.
        """
        self.kernel = self._folder = folder
        self._launch()
        return isinstance(self._first_request("prepare").answer, Ok)

    def like(self, other: Child) -> bool:
        """Return whether the process of another child would be started in the same way, except for its kernel."""
        mine, others = (
            (child.program, child.jail, child.libsim, child.cpu_seconds, child.standard_input)
            for child in (self, other)
        )
        return mine == others

    def _adopt(self, runner: Child) -> Path:
        """Take over the process of a child that is prepared. Return the kernel's path inside its sandbox."""
        assert runner._folder is not None
        self._process, self._socket, self._printed = runner._process, runner._socket, runner._printed
        self._usage, self._paths, self._folder = runner._usage, runner._paths, runner._folder
        runner._process = runner._socket = runner._printed = runner._folder = None
        if self._killed:  # meanwhile
            self.stop()
            raise GraderError("the check was stopped")
        placed = self._folder / self.kernel.name
        shutil.copyfile(self.kernel, placed)
        os.chmod(placed, 0o644)
        return self._paths[self._folder] / placed.name

    def _first_request(self, text: str) -> Reply:
        """Send a request to a process that has just started, and wait for its answer."""
        assert self._socket
        self._last_request = text.split(None, 1)[0]
        self._sent = time.monotonic()
        with contextlib.suppress(OSError):  # the child has ended: receive() finds out why
            self._socket.send(text.encode())
        return self.receive(LOADING_SECONDS)

    def _launch(self) -> None:
        """Start the process, and wait until it is confined."""
        if self._killed:
            raise GraderError("the check was stopped")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._printed = Printed()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        start = self._start(theirs.fileno())
        try:
            self._process = subprocess.Popen(
                start.argv,
                stdin=self.standard_input,
                stdout=self._printed.file,
                stderr=self._printed.file,
                pass_fds=[theirs.fileno()],
                cwd="/",
                start_new_session=True,
                **start.options,
            )
        except BaseException as error:
            ours.close()  # a runner that has already started ends when its socket is closed
            if isinstance(error, OSError):
                raise GraderError(f"the runner cannot be started: {self.program}: {error.strerror}") from error
            raise
        finally:
            theirs.close()
        self._socket = ours
        if self._killed:  # during the start
            self.stop()
            raise GraderError("the check was stopped")
        self._usage = Usage(self._process.pid)
        self._paths = start.paths
        self._sent = time.monotonic()
        self._wait_until_ready()

    def _start(self, number: int) -> Start:
        """Return the command that starts the process with the socket ``number``."""
        on_gpu = self.jail.gpu or (self.libsim is None and self.jail.tier == "none")
        megabytes = 0 if on_gpu else SIMULATOR_MEGABYTES  # 0 is no limit: CUDA reserves a huge address range
        arguments = [str(number), str(megabytes), str(self.cpu_seconds)]
        files = [self.kernel, *([self.libsim] if self.libsim else [])]
        return self.jail.start(self.program, arguments, files, self._environment())

    def _wait_until_ready(self) -> None:
        """Wait until the child is confined, and read its process id. The child has not yet loaded the kernel."""
        assert self._socket
        self._socket.settimeout(30.0)
        words = b""
        attached: list[tuple[int, int, bytes]] = []
        with contextlib.suppress(OSError):
            words, attached, _, _ = self._socket.recvmsg(1024, socket.CMSG_SPACE(12))
        self._socket.settimeout(None)
        for level, kind, content in attached:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self._usage = Usage(struct.unpack("3i", content)[0])
                self.started.add(self._usage.pid)
        if words != b"ready":
            printed = self._new_output()
            said = clean(words.decode(errors="replace")) or " ".join(printed.split()) or "it ended immediately"
            self.stop()
            raise LoadFailed(f"the runner does not start: {said}", "")

    def kill(self) -> None:
        """End the process; it cannot be started again. A thread that waits for its answer gets an ``Ended``."""
        self._killed = True
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End the process and its children."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None
        self._usage = Usage()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._printed is not None:
            self._printed.close()
            self._printed = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _environment(self) -> dict[str, str]:
        """Return an environment with only the variables that CUDA needs to find the device."""
        if self.libsim:
            return {}
        wanted = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")
        return {name: os.environ[name] for name in wanted if name in os.environ}

    def _new_output(self) -> str:
        return self._printed.new() if self._printed else ""


class LoadFailed(GraderError):
    """A kernel library that does not load: a missing symbol, or a constructor that crashes."""

    def __init__(self, message: str, printed: str) -> None:
        super().__init__(message, printed)
