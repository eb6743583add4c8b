"""The tensors of a call in device memory that a child process maps, so that they are never copied to the host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

from grader.course.task import Call
from grader.execution.runner.buffers import Buffers, places, poisoned_on
from grader.execution.runner.gpu import SharingFailed
from grader.frontend.dtypes import torch_dtype
from grader.setup.errors import GraderError


@dataclass
class Layout:
    """The positions of a call's tensors in device memory, and the first contents of its outputs."""

    call: InitVar[Call]
    device: Any

    def __post_init__(self, call: Call) -> None:
        if any(call.case.offsets.values()):
            raise GraderError(f"{call.case.name} cannot be timed: its tensors are misaligned on purpose")
        inputs, self.out_start, outputs, output_bytes = places(call)
        in_out = frozenset(name for name in call.output_shapes if name in call.tensors)
        self.buffers = Buffers(inputs, outputs, -1, -1, -1, in_out=in_out)
        self.starts = poisoned_on(self.device, outputs, output_bytes)
        """A uint8 tensor: poison and guards, and the initial values of in-out tensors."""
        self.end = self.out_start + len(self.starts)

    def write(self, call: Call, memory: Any) -> None:
        """Write the inputs of a call of this layout, and its outputs' first contents, into device memory."""
        import torch

        for name, place in self.buffers.inputs.items():
            memory.tensor[place.start : place.start + place.bytes] = call.tensors[name].reshape(-1).view(torch.uint8)
        for name in self.buffers.in_out:
            place = self.buffers.outputs[name]
            self.starts[place.start : place.start + place.bytes] = call.tensors[name].reshape(-1).view(torch.uint8)
        memory.tensor[self.out_start : self.end].copy_(self.starts)


@dataclass
class DeviceBuffers(Buffers):
    """The memory of a call that a child times: device memory for the tensors, and a file for the report."""

    memory: Any = None
    out_start: int = 0
    _open: bool = field(default=True, repr=False)

    @property
    def files(self) -> list[int]:
        return [self.memory.file, self.report_file]

    @property
    def where(self) -> str:
        return f" {self.out_start} {self.memory.bytes}"

    def results(self) -> dict[str, Any]:
        import torch

        found = {}
        for name, place in self.outputs.items():
            dtype = torch.uint8 if place.dtype == "bool" else torch_dtype(place.dtype)
            start = self.out_start + place.start
            found[name] = self.memory.tensor[start : start + place.bytes].view(dtype).reshape(place.shape).clone()
        return found

    def close(self) -> None:
        if self._open:
            self._open = False
            super().close()
            self.memory.close()


def prepare_on_device(call: Call, memory: Callable[[int], Any]) -> DeviceBuffers:
    """Place a call, whose tensors are on the device, in memory that ``memory(bytes)`` allocates.

    Raise SharingFailed if that is impossible.
    """
    import torch

    with contextlib.ExitStack() as held:
        try:
            layout = Layout(call, memory.device)  # type: ignore[attr-defined]
            allocated = memory(layout.end)
            held.callback(allocated.close)
            layout.write(call, allocated)
            allocated.finish()
        except torch.OutOfMemoryError as error:
            raise SharingFailed("this GPU has too little memory to share it") from error
        known = layout.buffers
        report = os.memfd_create("grader-report", os.MFD_CLOEXEC)
        held.pop_all()
    return DeviceBuffers(
        known.inputs, known.outputs, -1, -1, report, in_out=known.in_out, memory=allocated, out_start=layout.out_start
    )
