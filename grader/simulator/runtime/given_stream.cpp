// Detects a launcher that uses the default stream although its caller passed another stream. The caller prepares the
// inputs in the passed stream and waits only for this stream. Work on the default stream may run before the inputs are
// ready, or end after the wait, because PyTorch's side streams are not synchronized with the default stream. Streams
// that the launcher creates itself are not checked here.
#include "given_stream.h"

#include "api.h"
#include "cuda_runtime_api.h"
#include "events.h"

namespace {

cudaStream_t given = nullptr;  // the stream that the caller passes; null if sim_give_stream was not called

}  // namespace

void* sim_give_stream(void) {
    if (!given) cudaStreamCreateWithFlags(&given, cudaStreamNonBlocking);
    return given;
}

namespace sim {

cudaStream_t given_stream() { return given; }

void check_stream(const char* what, cudaStream_t stream, const void* address) {
    bool is_default = !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    if (given && is_default) events::default_stream_used(what, address);
}

}  // namespace sim
