"""Argument checks against the launcher's prototype: each mistake has a message that names the parameter."""

import ctypes
import math

import numpy
import pytest
import torch

from grader.execution.in_process.arguments import ArgumentError, bind
from grader.frontend.prototype import parse_prototype

F = parse_prototype("void f(const float* x, float* out, long long n, float scale, bool causal, cudaStream_t stream)")
X, OUT = torch.zeros(2, 3), torch.zeros(6)


def refused(*given, prototype=F, **named) -> str:
    with pytest.raises(ArgumentError) as caught:
        bind(prototype, given, named, "cpu")
    return str(caught.value)


def test_values_in_order_and_by_name():
    arguments = bind(F, (X, OUT, 6), {"causal": True, "scale": 0.5}, "cpu")
    assert arguments[0].tensor is X and arguments[2].value.value == 6
    assert arguments[3].value.value == 0.5 and arguments[4].value.value is True


def test_the_number_of_arguments():
    assert "takes 5 arguments (do not pass the stream), got 3: missing scale, causal" in refused(X, OUT, 6)
    assert "got 6" in refused(X, OUT, 6, 1.0, True, 0)
    assert "void f(const float* x" in refused()


def test_names_that_are_wrong():
    assert "has no parameter 'y'" in refused(X, OUT, 6, 1.0, y=3)
    assert "'x' is given twice" in refused(X, OUT, 6, 1.0, x=X)


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (torch.zeros(3, dtype=torch.float64), "takes a tensor of float32, got float64"),
        (torch.zeros(3, 4).t(), "x is not contiguous: shape (4, 3), strides (1, 4)"),
        (numpy.zeros(3, dtype="float32"), "torch.from_numpy"),
        (3.5, "must be a torch tensor, got 3.5"),
        ([1.0], "must be a torch tensor, got a list"),
        (torch.zeros(3, device="meta"), "x is on meta"),
        (torch.eye(3).to_sparse(), "dense"),
    ],
)
def test_tensors(tensor, says):
    text = refused(tensor, OUT, 6, 1.0, True)
    assert says in text and text.startswith("f: x")


def test_a_null_pointer_is_none():
    assert bind(F, (None, OUT, 0, 1.0, False), {}, "cpu")[0].tensor is None


def test_void_pointers_take_any_tensor():
    prototype = parse_prototype("void g(const void* x)")
    assert bind(prototype, (torch.zeros(3, dtype=torch.int16),), {}, "cpu")


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("__half", torch.float16), ("__nv_bfloat16", torch.bfloat16), ("unsigned int", torch.int32), ("bool", torch.bool)],
)
def test_element_types(kind, dtype):
    assert bind(parse_prototype(f"void g({kind}* x)"), (torch.zeros(2, dtype=dtype),), {}, "cpu")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("int", 2**31, "from -2147483648 to 2147483647, got 2147483648"),
        ("unsigned", -1, "from 0 to 4294967295, got -1"),
        ("int", 2.5, "takes a whole number, got 2.5"),
        ("int", None, "got None"),
        ("int", "3", "got '3'"),
        ("int", torch.zeros(3), "takes a number, got a tensor of shape (3,)"),
        ("bool", 2, "takes True or False, got 2"),
        ("float", "x", "takes a number"),
        ("float", 1e39, "at most 3.40282e+38"),
        ("__half", 1e6, "at most 65504"),
    ],
)
def test_numbers_that_do_not_fit(kind, value, says):
    text = refused(value, prototype=parse_prototype(f"void g({kind} n)"))
    assert says in text and "n" in text.split(":")[1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", True, 1),
        ("int", numpy.int64(7), 7),
        ("int", torch.tensor(7), 7),
        ("long long", -(2**63), -(2**63)),
        ("size_t", 2**64 - 1, 2**64 - 1),
        ("float", 3, 3.0),
        ("double", 0.1, 0.1),
        ("float", math.inf, math.inf),
        ("bool", 0, False),
    ],
)
def test_numbers_that_fit(kind, value, expected):
    (argument,) = bind(parse_prototype(f"void g({kind} n)"), (value,), {}, "cpu")
    assert argument.value.value == expected


@pytest.mark.parametrize(("kind", "dtype"), [("__half", torch.float16), ("__nv_bfloat16", torch.bfloat16)])
@pytest.mark.parametrize("value", [0.1, -1.5, 3.14159, math.nan, 1e-7])
def test_half_numbers_are_rounded_as_torch_does(kind, dtype, value):
    (argument,) = bind(parse_prototype(f"void g({kind} n)"), (value,), {}, "cpu")
    got = torch.tensor(ctypes.c_int16(argument.value.value).value, dtype=torch.int16).view(dtype)
    torch.testing.assert_close(got, torch.tensor(value, dtype=dtype), equal_nan=True, rtol=0, atol=0)
