// A caller who has given a launcher a stream of its own waits for that stream alone: what went to the default stream may be
// done later, or before the inputs are there. PyTorch's side streams are not synchronized with the default stream. Streams
// that a launcher creates itself are its own affair.
#include "given_stream.h"

#include "api.h"
#include "cuda_runtime_api.h"
#include "events.h"

namespace {

cudaStream_t given = nullptr;  // null: nobody has asked for one

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
