// Whether a launcher uses the stream that its caller gave it.
#pragma once

#include "driver_types.h"

namespace sim {

// To be called for work of the host on a stream; `address` is where it was asked for.
void check_stream(const char* what, cudaStream_t stream, const void* address);

// The stream that the caller gives; the default one if nobody has asked for another.
cudaStream_t given_stream();

}  // namespace sim
