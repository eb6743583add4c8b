"""Fast calls of launchers: values reach the entry point. For unusual arguments, the fast call is declined."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest
import torch

from grader.execution.in_process.fast_call import DECLINED, FastCall
from grader.frontend.prototype import parse_prototype

F = parse_prototype("void f(const float* x, void* out, long long n, float scale, int rows, cudaStream_t stream)")
X, OUT = torch.zeros(2, 3), torch.zeros(6, dtype=torch.int8)
CPU, STREAM = -1, 77
TYPES = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32, ctypes.c_void_p)


class Entry:
    """A stand-in for a launcher's entry point that stores the arguments of each call."""

    def __init__(self, error: int = 0) -> None:
        self.error = error
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, addresses: Any) -> int:
        self.calls.append(tuple(kind.from_address(a).value for kind, a in zip(TYPES, addresses, strict=True)))
        return self.error


def fast(entry: Entry, device: int = CPU) -> FastCall:
    """Return fast calls for CPU tensors, whose device index in torch is -1."""
    return FastCall(F, entry, lambda: device, lambda _: STREAM)


def test_the_entry_point_gets_the_values() -> None:
    entry = Entry()
    call = fast(entry)
    assert call((X, OUT, 2**40, 0.5, -3)) == 0
    assert call((None, OUT[1:], 0, 1.0, 7)) == 0
    assert entry.calls == [
        (X.data_ptr(), OUT.data_ptr(), 2**40, 0.5, -3, STREAM),
        (None, OUT.data_ptr() + 1, 0, 1.0, 7, STREAM),
    ]


def test_an_error_of_cuda_is_returned() -> None:
    assert fast(Entry(error=9))((X, OUT, 1, 1.0, 1)) == 9


@pytest.mark.parametrize(
    "given",
    [
        (X, OUT, 1, 1.0),
        (X, OUT, 1, 1.0, 1, 1),
        (X.double(), OUT, 1, 1.0, 1),
        (torch.zeros(3, 4).t(), OUT, 1, 1.0, 1),
        (torch.eye(3).to_sparse(), OUT, 1, 1.0, 1),
        ([1.0], OUT, 1, 1.0, 1),
        (X, 5, 1, 1.0, 1),
        (X, OUT, 2**63, 1.0, 1),
        (X, OUT, 1, 1.0, 2**31),
        (X, OUT, 1.5, 1.0, 1),
        (X, OUT, True, 1.0, 1),
        (X, OUT, 1, 1, 1),
        (X, OUT, 1, float("nan"), 1),
        (X, OUT, 1, 1e39, 1),
        (X, OUT, torch.tensor(1), 1.0, 1),
    ],
    ids=str,
)
def test_unusual_arguments_are_declined(given: tuple[Any, ...]) -> None:
    entry = Entry()
    assert fast(entry)(given) == DECLINED and entry.calls == []


def test_a_tensor_of_another_device_is_declined() -> None:
    assert fast(Entry(), device=1)((X, OUT, 1, 1.0, 1)) == DECLINED


def test_half_and_bool_are_left_to_the_slow_way() -> None:
    prototype = parse_prototype("void f(float* x, bool causal, __half scale)")
    call = FastCall(prototype, Entry(), lambda: CPU, lambda _: 0)
    assert call((X, True, 1.0)) == DECLINED


def test_threads_do_not_share_their_values() -> None:
    entry, begin = Entry(), threading.Barrier(4)
    call = fast(entry)

    def many(rows: int) -> None:
        begin.wait()
        for _ in range(300):
            call((X, OUT, rows, float(rows), rows))

    threads = [threading.Thread(target=many, args=(rows,)) for rows in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entry.calls) == 1200
    assert all(n == scale == rows for _, _, n, scale, rows, _ in entry.calls)
