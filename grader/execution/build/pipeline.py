"""A pipeline of the compiler, the pass that adds checks to its assembly (``late_accesses``), and the linker.

g++ writes a function as soon as it has compiled it, and takes a tenth of a second for a large one.
"""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import IO

from grader.execution.submission_sandbox.late_accesses import FUNCTION_ENDS, checked_parts
from grader.frontend.toolchain.process import Command, Finished, RunCommand

_MOST = 64 << 20
"""The limit for a compiler's assembly in bytes."""


def compile_and_link(
    compiling: Command, linking: Callable[[], Command], run: RunCommand
) -> tuple[Finished, Finished | None, str]:
    """Return the results of a compiler and a linker that run at the same time, and the linker's input.

    The compiler writes assembly to its standard output; checks are added, and the linker reads the result. The linker's
    result is None if there was no function to link.
    """
    parts: list[str] = []
    into: IO[bytes] | None = None
    linked: Future[Finished] | None = None
    with ThreadPoolExecutor(max_workers=2) as pool, contextlib.ExitStack() as pipes:
        assembly, tells = _pipe()
        pipes.enter_context(assembly)
        compiled = pool.submit(_run, run, replace(compiling, pipes={"stdout": tells}))
        for part in checked_parts(_pieces(assembly)):
            parts.append(part)
            if into is not None:
                _write(into, part)
            elif FUNCTION_ENDS in part:
                told, into = _pipe()
                pipes.enter_context(into)
                linked = pool.submit(_run, run, replace(linking(), pipes={"stdin": told}))
                _write(into, "".join(parts))
    return compiled.result(), linked.result() if linked else None, "".join(parts)


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return open(reading, "rb", 0), open(writing, "wb", 0)


def _write(pipe: IO[bytes], text: str) -> None:
    content = text.encode(errors="surrogateescape")
    with contextlib.suppress(BrokenPipeError):  # the linker has ended: its status gives the reason
        while content:
            content = content[pipe.write(content) :]


def _run(run: RunCommand, command: Command) -> Finished:
    """Run a command, and close its pipes even if it does not start: an open pipe would block the other process."""
    with contextlib.ExitStack() as pipes:
        for pipe in command.pipes.values():
            pipes.enter_context(pipe)
        return run(command)


def _pieces(pipe: IO[bytes]) -> Iterator[str]:
    """Yield a pipe's contents as they arrive, up to ``_MOST`` bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    left = _MOST
    while left > 0 and (read := pipe.read(min(left, 1 << 16))):
        left -= len(read)
        yield decoder.decode(read)
    yield decoder.decode(b"", final=True)
