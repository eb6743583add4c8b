// cudaError_t: the codes that the runtime can return, with CUDA's values.
#pragma once

enum cudaError {
#define SIM_ERROR(name, value, text) name = value,
#include "sim/error_codes.def"
#undef SIM_ERROR
};
typedef enum cudaError cudaError_t;
