// Reports a runtime API call that fails, with CUDA's error and a reason in words for the finding. `caller` is the
// call's return address, if known.
#pragma once

#include "driver_types.h"
#include "events.h"
#include "last_error.h"

namespace sim {

inline cudaError_t refuse(const char* call, cudaError_t error, const char* why, const void* caller = nullptr) {
    events::refused(nullptr, call, error, why, caller);
    set_error(error);
    return error;
}

}  // namespace sim
