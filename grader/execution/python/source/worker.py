"""The program of the sandbox that runs a learner's Python file.

usage: worker.py SOCKET MEGABYTES CPU_SECONDS none|bwrap|landlock simulator [PATH...]

It confines itself before it reads the learner's file, then answers the requests of ``grader/execution/runner``:

load    The next lines have "kernel" and the path of the learner's file.
call    The second line has JSON: the class to create and its arguments, the operations, and what to read after each.
        The answer is in the memory file that comes with the request, one line of JSON for each operation, so that the
        grader also sees the operations before a crash.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
import signal
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

MODULES = (
    "__future__ abc array bisect collections collections.abc contextlib copy dataclasses enum functools heapq "
    "itertools math numbers operator random re statistics string types typing warnings weakref"
)
"""The modules that a learner's file can import, as well as those that they import."""

TEXT = 300
"""The maximum length of an error message."""
ITEMS = 10_000
"""The maximum number of elements of a list in an answer."""


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it. Objects become their type and their fields."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 62 else {"type": "int"}
    if isinstance(value, str):
        return str(value)[:TEXT]
    if isinstance(value, (list, tuple)):
        if len(value) > ITEMS:
            return {"type": f"{type(value).__name__} of {len(value)} elements"}
        return [plain(item) for item in value]
    name = type(value).__name__[:TEXT]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)[:10]
        return {"type": name, "fields": {field.name: plain(getattr(value, field.name)) for field in fields}}
    return {"type": name}


def raised(error: BaseException, file: str) -> dict[str, Any]:
    """Return what is known about an exception: its classes, its message, and the line of the learner's file."""
    line, trace = error.lineno if isinstance(error, SyntaxError) else 0, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == file else line
        trace = trace.tb_next
    try:
        says = str(error.msg if isinstance(error, SyntaxError) else error)[:TEXT]
    except BaseException:
        says = ""
    return {"names": [kind.__name__[:TEXT] for kind in type(error).__mro__[:10]], "says": says, "line": line or 0}


def called(file: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, Any]]:
    """Call a function. Return its result, and the outcome: the result for JSON, or the exception."""
    try:
        result = function(*arguments)
        return result, {"value": plain(result)}
    except BaseException as error:
        return None, {"raised": raised(error, file)}


class Worker:
    """The learner's module, and the operations on an object of its class."""

    def __init__(self, path: str, write: Callable[[int, bytes], int]) -> None:
        self.path, self.file = path, os.path.basename(path)
        self.write = write
        self.module: types.ModuleType | None = None
        self.error: dict[str, Any] | None = None

    def answer(self, file: int, record: dict[str, Any]) -> None:
        """Write one line of JSON. End the process at the limit of a file's size."""
        line = json.dumps(record).encode() + b"\n"
        if self.write(file, line) != len(line):
            signal.raise_signal(signal.SIGXFSZ)

    def imported(self) -> types.ModuleType:
        """Run the learner's file, once. Keep its exception in ``error``."""
        if self.module is None:
            self.module = types.ModuleType(self.file.removesuffix(".py"))
            self.module.__file__ = self.file
            sys.modules[self.module.__name__] = self.module  # dataclasses look up their module here
            try:
                with open(self.path, "rb") as source:
                    code = compile(source.read(), self.file, "exec", dont_inherit=True)
                exec(code, self.module.__dict__)
            except BaseException as error:
                self.error = raised(error, self.file)
        return self.module

    def run(self, task: dict[str, Any], file: int) -> None:
        """Apply the operations of a request; write an outcome for each."""
        kind = getattr(self.imported(), task["creates"], None)
        lacks = [] if isinstance(kind, type) else [task["creates"]]
        lacks += [f"{task['creates']}.{method}" for method in task["methods"] if kind and not hasattr(kind, method)]
        self.answer(file, {"raised": self.error, "lacks": [] if self.error else lacks})
        if self.error or lacks or not task["operations"]:
            return
        assert isinstance(kind, type)
        made, outcome = called(self.file, functools.partial(kind, **task["sizes"]))
        self.answer(file, {"outcome": outcome})
        if "raised" in outcome:
            return
        values: dict[str, Any] = {}
        for target, method, arguments in task["operations"]:
            given = [values.get(argument) if isinstance(argument, str) else argument for argument in arguments]
            result, outcome = called(self.file, lambda name, *rest: getattr(made, name)(*rest), method, *given)
            if target:
                values[target] = result
            views = {view: self.view(made, view, values) for view in task["views"]}
            self.answer(file, {"outcome": outcome, "views": views})

    def view(self, made: object, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of reading a property, or of calling a method for the result of each creating call."""
        if not callable(getattr(type(made), name, None)):
            return {"": called(self.file, getattr, made, name)[1]}
        method = getattr(made, name)
        return {key: called(self.file, method, value)[1] for key, value in values.items()}


def confined(number: int, megabytes: int, cpu_seconds: int, tier: str, paths: list[str]) -> Callable[[int, bytes], int]:
    """Confine this process, and tell the grader. Return a function that writes to open files."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "confine.so"))
    library.confine_python.restype = ctypes.c_char_p
    library.confine_write.restype = ctypes.c_long

    def write(file: int, content: bytes) -> int:
        return int(library.confine_write(file, content, ctypes.c_size_t(len(content))))

    readable = (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it: end at the limit of the output
    missing = library.confine_python(
        ctypes.c_size_t(megabytes), ctypes.c_size_t(cpu_seconds), tier.encode(), readable, len(paths)
    )
    write(number, missing or b"ready")
    if missing:
        sys.exit(2)
    return write


def main() -> None:
    """Confine this process, then answer requests until the grader closes the connection."""
    number, megabytes, cpu_seconds, tier, _, *paths = sys.argv[1:]
    for module in MODULES.split():
        __import__(module)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, int(number))
    write = confined(int(number), int(megabytes), int(cpu_seconds), tier, paths)
    worker: Worker | None = None
    while True:
        packet, files, *_ = socket.recv_fds(connection, 1 << 20, 1)
        if not packet:
            return
        head, _, rest = packet.decode().partition("\n")
        if head == "load":
            worker = Worker(rest.partition(" ")[2], write)
            write(int(number), b"ok")
        else:
            assert worker is not None
            worker.run(json.loads(rest), files[0])
            write(int(number), b"done 0\n")
        for file in files:
            os.close(file)


if __name__ == "__main__":
    main()
