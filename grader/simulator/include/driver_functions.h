// Kernel files may include this header of CUDA. The simulator's cuda_runtime.h contains its declarations.
#pragma once

#include "cuda_runtime.h"
