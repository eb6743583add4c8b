// y = x w^T on Hopper's tensor cores: TMA loads a ring of tiles, and two warpgroups multiply.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

// TODO: a kernel, template <typename T>, whose parameters are the tensor maps, const __grid_constant__ CUtensorMap:
// TODO:   - two mbarriers per stage of the ring: full (the tiles have arrived) and empty (they have been used)
// TODO:   - one thread waits until a stage is empty, announces the bytes of its tiles, and starts their copies
// TODO:   - warpgroups wait until it is full, multiply (four wgmma of depth 16 for 64 of k), and arrive at empty
// TODO:   - they round the accumulators and store them to y, but nothing outside it

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    // TODO: tensor maps of x, of w and, for stores by TMA, of y; then launch.
}

extern "C" void wgmma_linear_f16(const __half* x, const __half* w, __half* y, int rows, int in_features,
                                 int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}

extern "C" void wgmma_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows,
                                  int in_features, int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}
