"""CUDA's error codes and their descriptions."""

from __future__ import annotations

# A program returns either a CUDA error or this number plus its exit status. CUDA errors are smaller than this number.
PROGRAM_STATUS = 100_000

_ERRORS = {
    1: (
        "cudaErrorInvalidValue",
        "an argument of a CUDA call, or the grid, block or shared memory of a launch, is out of range",
    ),
    2: ("cudaErrorMemoryAllocation", "out of device memory"),
    9: ("cudaErrorInvalidConfiguration", "the grid, the block or the shared memory of a launch is out of range"),
    35: ("cudaErrorInsufficientDriver", "the driver is older than the CUDA runtime"),
    98: ("cudaErrorInvalidDeviceFunction", "the kernel was not compiled for this GPU"),
    100: ("cudaErrorNoDevice", "there is no GPU"),
    101: ("cudaErrorInvalidDevice", "there is no GPU with this number"),
    209: ("cudaErrorNoKernelImageForDevice", "the kernel was not compiled for this GPU"),
    222: ("cudaErrorUnsupportedPtxVersion", "the driver is older than the compiler"),
    400: ("cudaErrorInvalidResourceHandle", "a stream or an event is not valid"),
    700: ("cudaErrorIllegalAddress", "a kernel read or wrote outside its memory"),
    701: ("cudaErrorLaunchOutOfResources", "the block needs more registers or shared memory than there are"),
    702: ("cudaErrorLaunchTimeout", "a kernel ran too long"),
    710: ("cudaErrorAssert", "an assert in a kernel failed"),
    714: ("cudaErrorHardwareStackError", "the stack of a thread overflowed"),
    715: ("cudaErrorIllegalInstruction", "a kernel executed an illegal instruction"),
    716: ("cudaErrorMisalignedAddress", "an address is not a multiple of the size of the access"),
    717: ("cudaErrorInvalidAddressSpace", "an address is in the wrong memory space"),
    718: ("cudaErrorInvalidPc", "a kernel jumped to an invalid address"),
    719: ("cudaErrorLaunchFailure", "a kernel failed"),
    720: ("cudaErrorCooperativeLaunchTooLarge", "a cooperative launch has more blocks than fit on the GPU at once"),
    801: ("cudaErrorNotSupported", "this GPU does not support the call"),
    999: ("cudaErrorUnknown", "an unknown error"),
}


LAUNCHER_THREW = -1
"""The number that is returned instead of a CUDA error if the launcher threw a C++ exception."""


def describe_error(code: int) -> str:
    """Return a CUDA error code's name and description."""
    if code == LAUNCHER_THREW:
        return "a C++ exception was thrown"
    if code >= PROGRAM_STATUS:
        return f"the program ended with status {code - PROGRAM_STATUS}"
    name, meaning = _ERRORS.get(code, (f"CUDA error {code}", ""))
    return f"{name}: {meaning}" if meaning else name
