// Checks that a launcher uses the stream that its caller passed.
#pragma once

#include "driver_types.h"

namespace sim {

// Called when host code submits work to a stream. Reports work on the default stream if the caller passed another one.
// `address` is the call's return address.
void check_stream(const char* what, cudaStream_t stream, const void* address);

// Returns the stream that the caller passes: the default one unless sim_give_stream created another.
cudaStream_t given_stream();

}  // namespace sim
