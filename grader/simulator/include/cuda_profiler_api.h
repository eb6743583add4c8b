// cudaProfilerStart and cudaProfilerStop, which have nothing to start here: they are with the rest of the runtime's calls.
#pragma once

#include "cuda_runtime_api.h"
