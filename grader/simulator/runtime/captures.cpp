#include "captures.h"

#include "refuse.h"

namespace sim {

namespace captures {

namespace {

Capture* active = nullptr;
uint64_t numbers = 0;

constexpr const char* invalid_capture =
    "the capture is invalid because of an earlier error: end it with cudaStreamEndCapture";

cudaError_t invalidate(const char* call, Capture& capture, cudaError_t error, const char* why) {
    capture.invalid = true;
    return refuse(call, error, why);
}

void leave(CUstream_st& stream, void* capture) {
    if (stream.capture != capture) return;
    stream.capture = nullptr;
    stream.captured.clear();
}

void join(CUstream_st& stream, Capture& capture) {
    stream.capture = &capture;
    stream.slot = capture.slots++;
    stream.captured.clear();
}

void end(Capture& capture) {
    streams::each(leave, &capture);
    take_out(active, &capture);
    if (capture.graph) graphs::destroy(capture.graph);
    delete &capture;
}

}  // namespace

Capture* find(uint64_t number) {
    Capture* capture = active;
    while (capture && capture->number != number) capture = capture->next;
    return capture;
}

cudaError_t begin(CUstream_st& stream, cudaStreamCaptureMode mode) {
    const char* call = "cudaStreamBeginCapture";
    if (streams::is_legacy(stream)) {
        return refuse(call, cudaErrorStreamCaptureUnsupported,
                      "the legacy default stream cannot be captured: make a stream with cudaStreamCreate");
    }
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
        return refuse(call, cudaErrorInvalidValue,
                      "invalid capture mode: pass cudaStreamCaptureModeGlobal, ThreadLocal or Relaxed");
    }
    if (stream.capture) return refuse(call, cudaErrorIllegalState, "the stream is already being captured");
    auto* capture = new Capture();
    capture->number = ++numbers;
    capture->mode = mode;
    capture->origin = &stream;
    capture->thread = pthread_self();
    capture->next = active;
    active = capture;
    capture->graph = graphs::create();
    join(stream, *capture);
    return cudaSuccess;
}

cudaError_t finish(CUstream_st& stream, CUgraph_st** graph) {
    const char* call = "cudaStreamEndCapture";
    Capture* capture = stream.capture;
    if (!capture) return refuse(call, cudaErrorIllegalState, "the stream is not being captured");
    if (capture->origin != &stream) {
        return invalidate(call, *capture, cudaErrorStreamCaptureUnmatched,
                          "the capture began in another stream: end it there");
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(capture->thread, pthread_self())) {
        return invalidate(call, *capture, cudaErrorStreamCaptureWrongThread,
                          "the capture began in another host thread: end it there");
    }
    cudaError_t error = cudaSuccess;
    if (capture->invalid) {
        error = refuse(call, cudaErrorStreamCaptureInvalidated, "the capture is invalid because of an error during it");
    } else if (!stream.captured.covers(capture->all)) {
        error = refuse(call, cudaErrorStreamCaptureUnjoined,
                       "unjoined work of another stream in the capture: record an event in that stream and let the "
                       "capture's first stream wait for it");
    } else {
        *graph = capture->graph;
        capture->graph = nullptr;
    }
    end(*capture);
    return error;
}

namespace {

cudaGraphNodeType type_of(const Operation& operation) {
    switch (operation.kind) {
        case OperationKind::kernel:
            return cudaGraphNodeTypeKernel;
        case OperationKind::copy:
            return cudaGraphNodeTypeMemcpy;
        case OperationKind::fill:
            return cudaGraphNodeTypeMemset;
        default:
            return cudaGraphNodeTypeHost;
    }
}

// Makes the node depend on the last node of each captured stream that it is ordered after. Omits a node if another one
// of these last nodes already depends on it.
void depend_on_known(CUgraphNode_st& node) {
    NodeSet last;
    for (CUgraphNode_st* other = node.previous; other; other = other->previous)
        if (node.known.at(other->slot) == other->place) last.push(other);
    for (size_t i = last.size(); i-- > 0;) {
        bool implied = false;
        for (const CUgraphNode_st* other : last) implied |= other->known.covers(last[i]->slot, last[i]->place);
        if (!implied) node.before.push(last[i]);
    }
}

}  // namespace

cudaError_t add(const Operation& operation, CUstream_st& stream) {
    Capture& capture = *stream.capture;
    if (capture.invalid) return refuse(operation.call, cudaErrorStreamCaptureInvalidated, invalid_capture);
    if (operation.kind == OperationKind::allocation || operation.kind == OperationKind::release) {
        return invalidate(
            operation.call, capture, cudaErrorNotSupported,
            "the simulator does not support memory nodes: allocate before the capture, free after the last launch");
    }
    CUgraphNode_st* node = graphs::add(*capture.graph, type_of(operation));
    node->work.add(operation);
    node->stream = stream.number;
    node->slot = stream.slot;
    node->place = capture.all.at(stream.slot) + 1;
    node->known = stream.captured;
    depend_on_known(*node);
    capture.all.raise(stream.slot, node->place);
    stream.captured.raise(stream.slot, node->place);
    return cudaSuccess;
}

cudaError_t forbids_unsafe(const char* call) {
    for (Capture* capture = active; capture; capture = capture->next) {
        bool here = pthread_equal(capture->thread, pthread_self());
        bool forbidden =
            capture->mode == cudaStreamCaptureModeGlobal || (capture->mode == cudaStreamCaptureModeThreadLocal && here);
        if (!forbidden) continue;
        return invalidate(call, *capture, cudaErrorStreamCaptureUnsupported,
                          "not allowed during a stream capture, except in mode cudaStreamCaptureModeRelaxed");
    }
    return cudaSuccess;
}

cudaError_t forbids_device(const char* call) {
    if (!active) return cudaSuccess;
    return invalidate(call, *active, cudaErrorStreamCaptureUnsupported,
                      "a stream is being captured: its work does not run and cannot be waited for");
}

cudaError_t forbids_stream(const char* call, CUstream_st& stream) {
    if (!stream.capture) return forbids_legacy(call, stream);
    if (stream.capture->invalid) return refuse(call, cudaErrorStreamCaptureInvalidated, invalid_capture);
    return invalidate(call, *stream.capture, cudaErrorStreamCaptureUnsupported,
                      "the stream is being captured: its work does not run and cannot be waited for");
}

cudaError_t forbids_event(const char* call, CUevent_st& event) {
    if (!event.capture) return cudaSuccess;
    const char* why = "the event was recorded during a capture: it is part of the graph";
    if (Capture* capture = find(event.capture)) return invalidate(call, *capture, cudaErrorCapturedEvent, why);
    return refuse(call, cudaErrorCapturedEvent, why);
}

namespace {

constexpr const char* legacy_would_wait =
    "the legacy default stream would wait for a stream that is being captured: create that stream with "
    "cudaStreamNonBlocking, or make this call before the capture";

// Returns a capture of a stream that the stream, if it is the legacy default stream, synchronizes with; else null.
Capture* waits_for(const CUstream_st& waiting) {
    Capture* found = nullptr;
    auto visit = [](CUstream_st& stream, void* result) {
        if (stream.capture && stream.blocking) *static_cast<Capture**>(result) = stream.capture;
    };
    if (active && streams::is_legacy(waiting)) streams::each(visit, &found);
    return found;
}

}  // namespace

cudaError_t forbids_legacy(const char* call, const CUstream_st& stream) {
    Capture* capture = waits_for(stream);
    return capture ? invalidate(call, *capture, cudaErrorStreamCaptureImplicit, legacy_would_wait) : cudaSuccess;
}

cudaError_t forbids_legacy_status(const char* call, const CUstream_st& stream) {
    return waits_for(stream) ? refuse(call, cudaErrorStreamCaptureImplicit, legacy_would_wait) : cudaSuccess;
}

cudaError_t forbids_external(const char* call, CUstream_st& stream) {
    return invalidate(call, *stream.capture, cudaErrorNotSupported,
                      "the simulator does not support event nodes: record the event before or after cudaGraphLaunch");
}

cudaError_t wait(CUstream_st& stream, CUevent_st& event) {
    const char* call = "cudaStreamWaitEvent";
    Capture* other = find(event.capture);
    if (event.capture && !other) {
        return refuse(call, cudaErrorCapturedEvent, "the event is part of a graph whose capture has ended");
    }
    if (other && other->invalid) return refuse(call, cudaErrorStreamCaptureInvalidated, invalid_capture);
    if (!stream.capture) {
        if (streams::is_legacy(stream)) {
            return invalidate(call, *other, cudaErrorStreamCaptureImplicit,
                              "the legacy default stream cannot be captured");
        }
        join(stream, *other);
    } else if (stream.capture->invalid) {
        return refuse(call, cudaErrorStreamCaptureInvalidated, invalid_capture);
    } else if (!other) {
        return invalidate(call, *stream.capture, cudaErrorStreamCaptureIsolation,
                          "the event was recorded outside of the capture: a graph cannot wait for it");
    } else if (other != stream.capture) {
        other->invalid = true;
        return invalidate(call, *stream.capture, cudaErrorStreamCaptureMerge, "the event belongs to another capture");
    }
    stream.captured.join(event.captured);
    return cudaSuccess;
}

void forget(CUstream_st& stream) {
    if (!stream.capture) return;
    if (stream.capture->origin == &stream)
        end(*stream.capture);
    else
        stream.capture->invalid = true;
}

void reset() {
    while (active) end(*active);
}

}  // namespace captures

}  // namespace sim
