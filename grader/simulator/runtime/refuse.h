// A runtime call that fails: CUDA's error, and the reason in words for the findings.
#pragma once

#include "driver_types.h"
#include "events.h"
#include "last_error.h"

namespace sim {

inline cudaError_t refuse(const char* call, cudaError_t error, const char* why) {
    events::refused(nullptr, call, error, why);
    set_error(error);
    return error;
}

}  // namespace sim
