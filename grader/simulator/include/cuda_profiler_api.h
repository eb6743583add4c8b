// cudaProfilerStart and cudaProfilerStop have no effect here; cuda_runtime_api.h defines them.
#pragma once

#include "cuda_runtime_api.h"
