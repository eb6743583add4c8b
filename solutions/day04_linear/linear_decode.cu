// Linear layer for 1 to 16 rows, f16 or bf16 in, f32 sums: out = x weight^T (+ bias). Each weight is used once per row,
// so the kernel is bound by reading the weights. Read every byte once, 16 bytes per access, with loads on all SMs of
// the GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/few_rows.cuh"
#include "llmk/vector.cuh"

using F = llmk::FewRows;

// weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
template <typename T>
struct Layer {
    const T* weight;
    const T* bias;
    T* out;
    int in_features, out_features;
    bool has_bias;

    __device__ const T* weight_row(int tile, int i) const {
        const int feature = tile * F::kTile + i;
        return feature < out_features ? weight + static_cast<long long>(feature) * in_features : nullptr;
    }
    __device__ void expect(int, int, const uint4&, const uint4&) const {}
    __device__ uint4 use(int, const uint4& weights) const { return weights; }
    __device__ void end_of_strip() const {}
    __device__ void store(int tile, int i, int row, float sum) const {
        const int feature = tile * F::kTile + i;
        if (feature >= out_features) return;
        if (has_bias) sum += static_cast<float>(bias[feature]);
        out[static_cast<long long>(row) * out_features + feature] = static_cast<T>(sum);
    }
};

// x: [rows, in_features]   vectors: every row of x and weight starts at a multiple of 16 bytes
template <int kWide, typename T>
__global__ void __launch_bounds__(F::kThreads, 2)
    linear_decode_kernel(const T* __restrict__ x, Layer<T> layer, int rows, int strips, int parts, bool vectors) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int first_row = blockIdx.y * F::kRows;  // 0 for up to 16 rows
    layer.out += static_cast<long long>(first_row) * layer.out_features;
    llmk::skinny_gemm<kWide>(shared, x + static_cast<long long>(first_row) * layer.in_features,
                             min(rows - first_row, F::kRows), layer.in_features, strips, parts, vectors, layer);
}

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                   bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const F share((out_features + F::kTile - 1) / F::kTile, in_features, rows);
    const dim3 grid(share.blocks, (rows + F::kRows - 1) / F::kRows);
    const Layer<T> layer = {weight, bias, out, in_features, out_features, has_bias};
    const bool vectors = llmk::rows_are_aligned(in_features, x, weight);
    const auto kernel = share.wide ? linear_decode_kernel<2, T> : linear_decode_kernel<1, T>;
    const int bytes = share.wide ? F::kBytes<2> : F::kBytes<1>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<grid, F::kThreads, bytes, stream>>>(x, layer, rows, share.strips, share.parts, vectors);
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_decode_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                                  int in_features, int out_features, bool has_bias, cudaStream_t stream) {
    linear_decode(x, weight, bias, out, rows, in_features, out_features, has_bias, stream);
}

extern "C" void linear_decode_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                   __nv_bfloat16* out, int rows, int in_features, int out_features, bool has_bias,
                                   cudaStream_t stream) {
    linear_decode(x, weight, bias, out, rows, in_features, out_features, has_bias, stream);
}
