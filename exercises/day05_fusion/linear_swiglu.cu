// Gate, up and SwiGLU in one kernel, f16 or bf16 in, f32 accumulators: out = silu(x gate_weight^T) * (x up_weight^T).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int kTileRows = 128;  // a block computes kTileRows x kTileFeatures outputs
constexpr int kTileFeatures = 64;

// If gate is below -88, exp(-gate) overflows to infinity, and the result is 0, as it should be.
__device__ float gated(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

// TODO: a kernel, template <typename T>, whose stages hold a tile of x, of gate_weight and of up_weight, and whose
// warps keep the accumulators of both matmuls.

template <typename T>
void linear_swiglu(const T* x, const T* gate_weight, const T* up_weight, T* out, int rows, int in_features, int hidden,
                   cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const long long tiles = (rows + kTileRows - 1LL) / kTileRows * ((hidden + kTileFeatures - 1LL) / kTileFeatures);
    // TODO: launch one block for each tile of outputs. You may choose another tile.
}

// x: [rows, in_features]   gate_weight, up_weight: [hidden, in_features]   out: [rows, hidden]
extern "C" void linear_swiglu_f16(const __half* x, const __half* gate_weight, const __half* up_weight, __half* out,
                                  int rows, int in_features, int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}

extern "C" void linear_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* gate_weight,
                                   const __nv_bfloat16* up_weight, __nv_bfloat16* out, int rows, int in_features,
                                   int hidden, cudaStream_t stream) {
    linear_swiglu(x, gate_weight, up_weight, out, rows, in_features, hidden, stream);
}
