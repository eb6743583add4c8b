"""Tests of streams, events and CUDA graphs: the return values of calls. The corpus tests the order of operations."""

from __future__ import annotations

import numpy as np
import pytest

from grader.frontend.messages import RewriteError
from grader.verdict.wording.findings import text
from tests.simulator.corpus_kernels import CorpusFile, Simulation, build_corpus
from tests.simulator.harness import KERNELS, SimulatedKernel

INVALID_FUNCTION, GRAPH_UPDATE, TOPOLOGY_CHANGED = 98, 910, 2
INVALID_VALUE, INVALID_HANDLE, ILLEGAL_STATE, NOT_READY, NOT_PERMITTED, NOT_SUPPORTED = 1, 400, 401, 600, 800, 801
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT = range(900, 908)


def test_queries(load):
    out = np.zeros(32, dtype=np.int32)
    assert load("streams")("queries", out).error == 0
    expected = [0, 0, NOT_READY, NOT_READY, 0, NOT_READY, 0, 0, 1, 0]
    expected += [NOT_READY, 0, 0, INVALID_HANDLE, INVALID_HANDLE]
    assert out[: len(expected)].tolist() == expected
    assert out[20] == 3


def test_functions_of_the_host_call_no_cuda(load):
    out = np.full(5, -1, dtype=np.int32)
    load("streams")("host_function", out)
    assert out.tolist() == [NOT_PERMITTED, NOT_PERMITTED, NOT_PERMITTED, -1, 0]


def test_a_race_between_streams_names_both_and_what_would_order_them():
    file = CorpusFile.read(KERNELS.parent / "corpus/racecheck/stream_default_and_non_blocking.cu")
    kernel = build_corpus([file])
    _, report, _ = Simulation(kernel.libsim).run(kernel, file.n, file.launcher(clean=False), file.path)
    (finding,) = report.findings
    said = text(finding)
    write, read = sorted(line for line, kinds in file.marks.items() if "between_streams" in kinds)
    assert f"4-byte write by twice in the default stream at stream_default_and_non_blocking.cu:{write}" in said
    assert f"4-byte read by add_one in stream 1 at stream_default_and_non_blocking.cu:{read}" in said
    assert "cudaStreamWaitEvent" in said and "cudaStreamNonBlocking" in said
    assert finding.other is not None and (finding.work, finding.stream) == ("twice", 0)
    assert (finding.other.work, finding.other.stream) == ("add_one", 1)


def test_a_graph_holds_arguments_by_value(load):
    out, total = np.full(20, -1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    outcome = load("streams", checks=True)("replay", out, total)
    assert outcome.error == 0
    assert out[:15].tolist() == [0, 0, 1, 1, 100, 0, 0, 0, 0, 5, 0, 0, INVALID_VALUE, INVALID_VALUE, INVALID_VALUE]
    assert total[0] == 101 + 11
    kinds = {f["kind"] for f in outcome.report["findings"]}
    assert kinds == {"refused", "host_access"}  # the launcher writes results to `out` on the host


CIRCLE = """
#include <cuda_runtime.h>
extern "C" void run(int* out, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t first, second;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&first, graph, nullptr, 0);
    cudaGraphAddEmptyNode(&second, graph, &first, 1);
    cudaGraphAddDependencies(graph, &second, &first, nullptr, 1);
    out[0] = cudaGraphInstantiate(&executable, graph, 0);
}
"""


def test_a_graph_is_built_node_by_node(load):
    out, total = np.full(64, -1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    outcome = load("streams", checks=True)("nodes", out, total)
    made = [0] * 7 + [1, 0, 1, 0, 1, 0, 1, 1]
    ran = [0, 0, 1, 0, 0, 0, 0, 0, 1, 0]
    outer = [0, 0, 0, 1, 0, 0, 5]
    impossible = [GRAPH_UPDATE, TOPOLOGY_CHANGED, *[INVALID_VALUE] * 2, INVALID_FUNCTION, *[INVALID_VALUE] * 3, 0]
    expected = [*made, *ran, *outer, *impossible, INVALID_VALUE]
    assert out[: len(expected) + 1].tolist() == [*expected, -1]
    assert total[0] == 3 + 20 + 100 + (3 + 100)
    assert {f["kind"] for f in outcome.report["findings"]} == {"refused", "host_access"}


def test_a_cycle_of_nodes_is_refused(tmp_path):
    file = tmp_path / "circle.cu"
    file.write_text(CIRCLE)
    kernel = SimulatedKernel(file, checks=True)
    out = np.full(1, -1, dtype=np.int32)
    outcome = kernel("run", out)
    assert out[0] == INVALID_VALUE
    (finding,) = (one for one in outcome.report["findings"] if one["kind"] == "refused")
    assert "the dependencies have a cycle" in finding["payload"]["reason"]


def test_calls_that_a_capture_forbids(load):
    out = np.full(64, -1, dtype=np.int32)
    assert load("streams")("capture_errors", out).error == 0
    spoiled = [
        *(UNSUPPORTED, ILLEGAL_STATE, ILLEGAL_STATE),
        *(UNSUPPORTED, INVALIDATED),  # cudaDeviceSynchronize
        *(UNSUPPORTED, INVALIDATED),  # cudaStreamSynchronize
        *(UNSUPPORTED, INVALIDATED),  # cudaStreamQuery
        *(UNSUPPORTED, INVALIDATED),  # cudaMalloc
        *(UNSUPPORTED, INVALIDATED),  # cudaMalloc, in a thread-local capture
        *(0, 0),  # cudaMalloc, in a relaxed capture
        *(IMPLICIT, INVALIDATED),  # cudaMemsetAsync in the default stream
        *(IMPLICIT, INVALIDATED),  # cudaMemcpy
        *(CAPTURED_EVENT, INVALIDATED),  # cudaEventSynchronize
        *(CAPTURED_EVENT, INVALIDATED),  # cudaEventQuery
        *(ISOLATION, INVALIDATED),  # waits for work that was not captured
        *(UNMATCHED, INVALIDATED),  # ended in another stream
        *(MERGE, INVALIDATED, INVALIDATED),  # waits for another capture
        UNJOINED,
        2,  # cudaStreamCaptureStatusInvalidated
        *(INVALIDATED, INVALIDATED),
        *(IMPLICIT, 0),  # cudaStreamIsCapturing of the default stream
    ]
    assert out[: len(spoiled) + 1].tolist() == [*spoiled, len(spoiled)]


def test_allocations_of_a_capture_are_refused(load):
    out = np.zeros(2, dtype=np.int32)
    assert load("streams")("captured_allocation", out).error == 0
    assert out.tolist() == [NOT_SUPPORTED, INVALIDATED]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("cudaGraphAddNode(0, 0, 0, 0, 0, 0)", "graph nodes of any type"),
        ("cudaGraphConditionalHandleCreate(0, 0)", "conditional nodes"),
        ("cudaGraphAddMemAllocNode(0, 0, 0, 0, 0)", "memory nodes"),
        ("cudaGraphAddEventRecordNode(0, 0, 0, 0, 0)", "event nodes"),
        ("cudaGraphKernelNodeGetParams(0, 0)", "queries of a node's parameters"),
        ("cudaGraphDebugDotPrint(0, 0, 0)", "DOT files of a graph"),
    ],
)
def test_unsupported_graph_functions_are_refused_by_name(tmp_path, call, what):
    file = tmp_path / "by_hand.cu"
    file.write_text(
        f'#include <cuda_runtime.h>\nextern "C" void run(float* out, cudaStream_t stream) {{\n    {call};\n}}\n'
    )
    with pytest.raises(RewriteError) as refused:
        SimulatedKernel(file)
    assert call.split("(")[0] in str(refused.value) and what in str(refused.value)


def test_a_race_within_a_graph_names_its_nodes_and_what_would_order_them():
    file = CorpusFile.read(KERNELS.parent / "corpus/racecheck/graph_copy_not_awaited.cu")
    kernel = build_corpus([file])
    _, report, _ = Simulation(kernel.libsim).run(kernel, file.n, file.launcher(clean=False), file.path)
    (finding,) = report.findings
    said = text(finding)
    assert "by cudaGraphAddMemcpyNode1D" in said and "4-byte read by add at" in said
    assert "cudaGraphAddDependencies" in said and "in stream" not in said
