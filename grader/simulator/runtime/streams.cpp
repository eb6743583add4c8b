#include "streams.h"

#include "captures.h"
#include "given_stream.h"
#include "host_threads.h"
#include "refuse.h"

namespace sim::streams {

namespace {

CUstream_st* first_stream = nullptr;  // first element of the list of created streams
CUevent_st* first_event = nullptr;
CUstream_st legacy, per_thread;
unsigned created = 0;  // streams created since the last reset
unsigned current_generation = 1;
uint32_t lanes = 0;
bool several = false;  // a stream other than the legacy default stream was used since the last reset
Clock host;
Clock orphans;  // operations of destroyed blocking streams, for which the legacy default stream must still wait
thread_local bool in_host_function = false;

void prepare(CUstream_st& stream) {
    if (stream.generation == current_generation) return;
    stream.generation = current_generation;
    stream.lane = new_lane();
    stream.count = stream.asked = 0;
    stream.known.clear();
}

}  // namespace

unsigned generation() { return current_generation; }

uint32_t new_lane() { return lanes++; }

void now_several() { several = true; }

CUstream_st* find(cudaStream_t handle) {
    if (!handle || handle == cudaStreamLegacy) {
        prepare(legacy);
        return &legacy;
    }
    if (handle == cudaStreamPerThread) {
        several = true;
        prepare(per_thread);
        return &per_thread;
    }
    for (CUstream_st* stream = first_stream; stream; stream = stream->next) {
        if (stream != handle) continue;
        prepare(*stream);
        return stream;
    }
    return nullptr;
}

CUevent_st* find(cudaEvent_t handle) {
    CUevent_st* event = first_event;
    while (event && event != handle) event = event->next;
    if (event && event->generation != current_generation) {  // the recorded work has long been complete
        event->generation = current_generation;
        event->known.clear();
        event->capture = 0;
    }
    return event;
}

bool is_legacy(const CUstream_st& stream) { return &stream == &legacy; }

CUstream_st* create_stream(bool blocking, int priority) {
    DeviceLock lock;
    auto* stream = new CUstream_st();
    stream->number = ++created;
    stream->blocking = blocking;
    stream->priority = priority;
    stream->next = first_stream;
    first_stream = stream;
    several = true;
    return stream;
}

void destroy_stream(CUstream_st& stream) {
    captures::forget(stream);
    prepare(stream);
    if (stream.blocking) orphans.join(stream.known);
    take_out(first_stream, &stream);
    delete &stream;
}

CUevent_st* create_event(bool timing) {
    DeviceLock lock;
    auto* event = new CUevent_st();
    event->timing = timing;
    event->generation = current_generation;
    event->next = first_event;
    first_event = event;
    return event;
}

void destroy_event(CUevent_st& event) {
    take_out(first_event, &event);
    delete &event;
}

void each(void (*visit)(CUstream_st&, void*), void* context) {
    prepare(legacy);
    visit(legacy, context);
    if (per_thread.generation == current_generation) visit(per_thread, context);
    for (CUstream_st* stream = first_stream; stream; stream = stream->next) {
        prepare(*stream);
        visit(*stream, context);
    }
}

// The legacy default stream synchronizes with all blocking streams.
void advance(CUstream_st& stream) {
    stream.known.join(host);
    host_threads::add_knowledge(stream.known);
    if (!several) return;
    if (&stream == &legacy) {
        legacy.known.join(orphans);
        orphans.clear();
        auto join = [](CUstream_st& other, void*) {
            if (other.blocking) legacy.known.join(other.known);
        };
        each(join, nullptr);
    } else if (stream.blocking) {
        prepare(legacy);
        stream.known.join(legacy.known);
    }
}

cudaError_t perform_in_order(const Operation& operation, unsigned stream, uint32_t lane, uint32_t number,
                             Clock& known) {
    const char* call = operation.kind == OperationKind::kernel ? nullptr : operation.call;
    Work work = {{call, operation.caller, stream, lane, number}, &known, !several};
    in_host_function = operation.kind == OperationKind::host_function;
    events::work_begin(work, in_host_function);
    if (in_host_function) host_threads::begin_function(known, lane, number);
    cudaError_t error = perform(operation);
    if (in_host_function) host_threads::end_function(known);
    events::work_end();
    in_host_function = false;
    return error;
}

cudaError_t forbids_host_function(const char* call) {
    if (!in_host_function) return cudaSuccess;
    return refuse(call, cudaErrorNotPermitted, "a host function in a stream must not call CUDA");
}

cudaError_t submit(const Operation& operation, cudaStream_t handle) {
    DeviceLock lock;
    if (OperationList* node = graphs::collecting()) {
        cudaError_t error = admissible(operation);
        if (!error) node->add(operation);
        return error;
    }
    if (cudaError_t error = forbids_host_function(operation.call)) return error;
    CUstream_st* stream = find(handle);
    if (!stream) return refuse(operation.call, cudaErrorInvalidResourceHandle, no_stream);
    cudaError_t error = admissible(operation);
    if (error) return error;
    if (stream->capture) return captures::add(operation, *stream);
    if ((error = captures::forbids_legacy(operation.call, *stream))) return error;
    events::submitted();
    advance(*stream);
    Clock before;
    Clock* known = &stream->known;
    if (several) known = &(before = stream->known);
    uint32_t number = ++stream->count;
    error = perform_in_order(operation, stream->number, stream->lane, number, *known);
    stream->known.join(*known);
    stream->known.raise(stream->lane, number);
    return error;
}

const Clock& host_clock() { return host; }

void host_waited_for(const Clock& clock) {
    host_threads::HistoryLock lock;
    host.join(clock);
}

void host_waited_for_all() {
    host_threads::HistoryLock lock;
    host.join(orphans);
    auto join = [](CUstream_st& stream, void*) { host.join(stream.known); };
    each(join, nullptr);
}

void caller_reads(const void* data, size_t bytes) {
    DeviceLock lock;
    if (!several) return;
    CUstream_st& stream = *find(given_stream());
    advance(stream);
    Clock known = stream.known;
    Work work = {{"the caller of the launcher", nullptr, stream.number, stream.lane, ++stream.count}, &known, false};
    events::work_begin(work, false);
    events::host_read(data, bytes);
    events::work_end();
}

void reset() {
    DeviceLock lock;
    captures::reset();
    in_host_function = false;  // may be left set by a launcher that was stopped
    events::work_end();
    ++current_generation;
    lanes = 0;
    created = 0;
    host_threads::reset();
    host.clear();
    orphans.clear();
    several = first_stream != nullptr;
    for (CUstream_st* stream = first_stream; stream; stream = stream->next)
        if (stream->number > created) created = stream->number;
}

}  // namespace sim::streams
