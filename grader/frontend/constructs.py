"""Refuses CUDA features that the simulator does not support, by their names, and suggests alternatives."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from grader.frontend import course_headers
from grader.frontend.tokens import Include, Source, word_set

# Prefixes of other libraries' headers. A kernel file must be plain CUDA: it is not linked with any library.
_FOREIGN = {
    "torch/": "PyTorch",
    "ATen/": "PyTorch",
    "c10/": "PyTorch",
    "pybind11/": "pybind11",
    "thrust/": "Thrust",
    "cub/device/": "CUB's device-wide functions",
    "cutlass/": "CUTLASS",
    "cute/": "CuTe",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cusparse": "cuSPARSE",
    "cusolver": "cuSOLVER",
    "cufft": "cuFFT",
    "curand": "cuRAND",
    "nccl": "NCCL",
    "nvToolsExt": "NVTX",
    "nvtx3/": "NVTX",
}

_FOR_PROGRAMS = ("cuBLAS", "cuRAND", "Thrust")
"""Libraries of which the simulator provides some headers, for whole programs only."""

# Prefixes of CUDA's own headers. The simulator provides those that are in its include folder; others are refused.
_CUDA_FAMILIES = ("cuda", "cooperative_groups", "cub/", "mma.h", "nv/", "device_", "crt/", "sm_", "texture", "surface")

_WORDS = {
    "texture": (
        "texture references",
        "CUDA 12 removed texture references: pass a cudaTextureObject_t of cudaCreateTextureObject to the kernel.",
    ),
    "surface": ("surface references", "CUDA 12 removed surface references: use cudaCreateSurfaceObject."),
    "cudaBindTexture": ("texture references", "CUDA 12 removed texture references: use cudaCreateTextureObject."),
    "tex2Dgather": ("tex2Dgather fetches", "Instead of tex2Dgather, read the four texels with tex2D."),
    "cudaMallocMipmappedArray": (
        "mipmapped arrays",
        "Instead of a mipmapped array, use one array for each mipmap level.",
    ),
    "cudaStreamBeginCaptureToGraph": ("captures into an existing graph", "Use cudaStreamBeginCapture."),
    "cudaStreamGetCaptureInfo": ("queries of a capture's nodes", "Use cudaStreamIsCapturing."),
    "cudaStreamUpdateCaptureDependencies": ("changes of a capture's dependencies", "Use events between streams."),
    "cudaThreadExchangeStreamCaptureMode": ("changes of the capture mode", "Pass the mode to cudaStreamBeginCapture."),
    "__nanosleep_until": ("__nanosleep_until", ""),
    "__block_size__": ("__block_size__", "Pass the block size at the launch, and write __cluster_dims__ for clusters."),
}
_OF_OLDER_PROGRAMS = ("texture", "cudaBindTexture")
"""Features that whole programs may use, because ``sim/texture_references.h`` supports them."""


_BY_ITS_TYPE = "Use the call for the node's type: cudaGraphAddKernelNode, cudaGraphExecKernelNodeSetParams..."
_ALLOCATE_BEFORE = "Allocate before the graph is created, and free after its last launch."
_AROUND = "Record and wait for the event outside the graph, before and after cudaGraphLaunch."
_KEEP = "Instead of querying a node's parameters, keep those that you passed when you added the node."
_CAPTURE = "Set the attributes in a launch by cudaLaunchKernelEx, and capture this launch."
_GRAPHS = [
    ("Conditional SetConditional", "conditional nodes of a graph", "Let the host decide which graph to launch."),
    ("AddNode NodeSetParams ExecNodeSetParams", "graph nodes of any type", _BY_ITS_TYPE),
    ("AddMemAlloc AddMemFree MemAlloc MemFree", "memory nodes of a graph", _ALLOCATE_BEFORE),
    ("AddEvent Event ExecEvent", "event nodes of a graph", _AROUND),
    ("AddExternal External ExecExternal", "external semaphores", ""),
    ("KernelNodeGetP MemcpyNodeGetP MemsetNodeGetP HostNodeGetP", "queries of a node's parameters", _KEEP),
    ("KernelNodeSetA KernelNodeGetA KernelNodeCopyA", "attributes of kernel nodes", _CAPTURE),
    ("NodeSetEnabled NodeGetEnabled", "disabled nodes", "Create a second graph without the node, and launch that one."),
    ("ExecChildGraph", "changes of a child graph in an executable graph", "Use cudaGraphExecUpdate."),
    ("DebugDot", "DOT files of a graph", "Call cudaGraphGetNodes and cudaGraphGetEdges."),
]
"""Features of CUDA graphs that are not simulated: starts of functions' names, the feature, an alternative.

"AddEvent" stands for cudaGraphAddEventRecordNode, as the names follow ``cudaGraph``.
"""


def _unsupported(word: str) -> tuple[str, str] | None:
    """Return the feature that a name belongs to, and an alternative; None if the simulator supports it."""
    if word.startswith("cudaGraphics"):
        return "OpenGL and other graphics", ""
    if word.startswith("cudaGraph"):
        rest = word.removeprefix("cudaGraph")
        return next((row[1:] for row in _GRAPHS if rest.startswith(tuple(row[0].split()))), None)
    return _WORDS.get(word)


# Compiler builtins that bypass the simulator's checks. nvcc does not accept them in device code either.
COMPILERS_OWN = re.compile(r"(__atomic_|__sync_)[a-z]\w*|__c11_atomic_\w+|(__)?always_inline(__)?")


def check_includes(source: Source, include_dirs: Sequence[Path], alone: bool = True) -> None:
    """Raise RewriteError if the file includes a header that is not available.

    ``alone`` is true for a kernel file, which may include less than a file of a whole program.
    """
    for include in source.includes:
        if refused := _refused(include, include_dirs, alone):
            raise source.error(include, f"#include {include.header}: {refused[0]}", refused[1])


def _refused(include: Include, include_dirs: Sequence[Path], alone: bool) -> tuple[str, str] | None:
    """Return why a header is not available, and what to do instead; None if the file may include it."""
    name, own = include.name, course_headers.names()
    if name in own:
        return None
    present = any(os.path.isfile(folder / name) for folder in include_dirs)  # pathlib refuses a name that is too long
    library = next((library for prefix, library in _FOREIGN.items() if name.startswith(prefix)), "")
    if library and alone and (not present or library in _FOR_PROGRAMS):
        hint = "A kernel file is plain CUDA C++ without libraries: write what you need in the kernel."
        return f"{library} is not available in a kernel file", hint
    if library and not present:
        missing = f"this header of {library}" if library in _FOR_PROGRAMS else library
        hint = "Put the code that needs it inside #if, or run the program with --device cuda."
        return f"the simulator does not have {missing}", hint
    if alone and (name.startswith("/") or ".." in name.split("/")):
        hint = "Include headers of CUDA and of the C++ standard library by name, for example <cuda_fp16.h>."
        return "a kernel file must not include a file by an absolute path or by ..", hint
    known = f"The course's headers are {', '.join(own)}."
    if name.startswith(f"{course_headers.FOLDER.name}/"):
        return "the course has no such header", known
    if alone and include.header.startswith('"') and not present and name not in _C_HEADERS:
        return "a kernel file cannot include your own files", f"Copy what you need into the kernel file. {known}"
    if name.startswith(_CUDA_FAMILIES) and include_dirs and not present:
        files = sorted(p.relative_to(d).as_posix() for d in include_dirs for p in d.rglob("*") if p.is_file())
        has = ", ".join(file for file in files if not file.startswith(("sim/", "crt/")))
        return "the simulator does not have this header", f"The simulator has {has}." if has else ""
    return None


_C_HEADERS = word_set("""
assert.h ctype.h errno.h float.h limits.h math.h stddef.h stdint.h stdio.h stdlib.h string.h time.h
""")
"""Headers of the C library, which a file may also include with quotes."""


def check_words(source: Source, alone: bool = True) -> None:
    """Raise RewriteError if the file uses a CUDA feature that is not simulated."""
    tokens = list(itertools.chain(*source.sequences))
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if alone and COMPILERS_OWN.fullmatch(token.text):
            inline = "inline" in token.text
            raise source.error(
                token,
                f"{token.text} is a compiler builtin: a kernel file is written in CUDA",
                "Write __forceinline__." if inline else "Use CUDA's atomicAdd, atomicCAS, ... or cuda::atomic_ref.",
            )
        unsupported = _unsupported(token.text)
        if unsupported is None or (token.text in _OF_OLDER_PROGRAMS and not alone):
            continue
        following = tokens[i + 1].text if i + 1 < len(tokens) else ""
        before = tokens[i - 1].text if i else ""
        if following not in ("(", "<") or before in (".", "->"):
            continue
        if token.text in ("texture", "surface") and following != "<":
            continue  # a name that the program itself declares
        what, hint = unsupported
        raise source.error(
            token,
            f"{token.text}: {what} are not simulated" if what != token.text else f"{what} is not simulated",
            hint or "The simulator has no alternative: write the kernel without it.",
        )
