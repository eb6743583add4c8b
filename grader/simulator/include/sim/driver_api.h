// The driver API calls of older programs that mainly use the runtime API: device queries and free memory.
#pragma once

#include "cuda_runtime_api.h"

typedef int CUdevice;

inline CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
inline CUresult cuDriverGetVersion(int* version) { return static_cast<CUresult>(cudaDriverGetVersion(version)); }
inline CUresult cuDeviceGetCount(int* count) { return static_cast<CUresult>(cudaGetDeviceCount(count)); }
inline CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
inline CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    cudaError_t error = cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device);
    return static_cast<CUresult>(error ? error
                                       : cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device));
}
inline CUresult cuMemGetInfo(size_t* left, size_t* total) { return static_cast<CUresult>(cudaMemGetInfo(left, total)); }
