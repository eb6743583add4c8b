// y = x w^T on Blackwell's tensor cores: two blocks of a cluster multiply together, and each warp has a role.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

// TODO: a kernel, template <typename T>, whose parameters are the tensor maps, const __grid_constant__ CUtensorMap:
// TODO:   - one warp allocates columns of tensor memory, and deallocates them when no warp uses them
// TODO:   - one thread waits until a stage is empty, announces the bytes of its tiles, and starts their copies
// TODO:   - one thread waits until the stage is full, issues four tcgen05.mma of depth 16, and commits them to the
// TODO:     mbarrier of empty stages
// TODO:   - four warps wait until the accumulators are complete, load their lanes, round, and store, nothing outside y

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    // TODO: tensor maps of x, of w and, for stores by TMA, of y; then launch.
}

extern "C" void tcgen05_linear_f16(const __half* x, const __half* w, __half* y, int rows, int in_features,
                                   int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}

extern "C" void tcgen05_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows,
                                    int in_features, int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}
