// The simulator's version of cuda_runtime.h. nvcc includes this header automatically in every .cu file.
#pragma once

#define __CUDA_RUNTIME_H__

#ifndef __cplusplus
#include "cuda_runtime_api.h"
#include "vector_functions.h"
#else

#if !defined(__CUDACC__)
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
#endif
// Sets the compute capability of the simulated device, so that kernels may use its features.
#include "sim/architectures.h"
#if !defined(__CUDA_ARCH__)
#define __CUDA_ARCH__ (10 * SIM_SM)
#if SIM_SM == 90
#define __CUDA_ARCH_FEAT_SM90_ALL 1  // features of sm_90a, which later architectures do not have
#endif
#endif

#include "sim/c_library.h"
#include "sim/copies.h"

#include "host_defines.h"
#include "vector_types.h"
#include "vector_functions.h"
#include "sim/identity.h"
#include "sim/barrier.h"
#include "sim/warp.h"
#include "sim/shared.h"
#include "sim/globals.h"
#include "sim/launch.h"
#include "sim/cluster.h"
#include "sim/host_api.h"
#include "sim/cache_hints.h"
#include "sim/math.h"
#include "device_atomic_functions.h"
#include "device_functions.h"

#endif
