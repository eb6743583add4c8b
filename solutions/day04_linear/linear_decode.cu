// Linear layer for 1 to 16 rows, f16 or bf16 in, f32 sums: out = x weight^T (+ bias). Each weight is used once for each row, so
// nothing but reading the weights costs time: every byte once, 16 at a time, with all of the GPU asking.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/few_rows.cuh"
#include "llmk/vector.cuh"

// weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
template <typename T>
struct Layer {
    const T* weight;
    const T* bias;
    T* out;
    int in_features, out_features;
    bool has_bias;

    __device__ const T* weight_row(int tile, int i) const {
        const int feature = tile * llmk::FewRows::kTile + i;
        return feature < out_features ? weight + static_cast<long long>(feature) * in_features : nullptr;
    }
    __device__ void expect(int) const {}
    __device__ void use(uint4&, const uint4&, const uint4&) const {}
    __device__ void end_of_tile() const {}
    __device__ void store(int tile, int i, int row, float sum) const {
        const int feature = tile * llmk::FewRows::kTile + i;
        if (feature >= out_features) return;
        if (has_bias) sum += static_cast<float>(bias[feature]);
        out[static_cast<long long>(row) * out_features + feature] = static_cast<T>(sum);
    }
};

// x: [rows, in_features]   vectors: every row of x and weight starts at a multiple of 16 bytes
template <typename T>
__global__ void __launch_bounds__(llmk::FewRows::kThreads, 2)
    linear_decode_kernel(const T* __restrict__ x, Layer<T> layer, int rows, int tiles, int parts, bool vectors) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int first_row = blockIdx.y * llmk::FewRows::kRows;  // 0, as long as there are no more than 16 rows
    layer.out += static_cast<long long>(first_row) * layer.out_features;
    llmk::multiply_few_rows(shared, x + static_cast<long long>(first_row) * layer.in_features,
                            min(rows - first_row, llmk::FewRows::kRows), layer.in_features, tiles, parts, vectors,
                            layer);
}

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                   bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const int tiles = (out_features + llmk::FewRows::kTile - 1) / llmk::FewRows::kTile;
    const llmk::FewRows share(tiles, in_features);
    const dim3 grid(share.blocks, (rows + llmk::FewRows::kRows - 1) / llmk::FewRows::kRows);
    const Layer<T> layer = {weight, bias, out, in_features, out_features, has_bias};
    const bool vectors = llmk::rows_are_aligned(in_features, x, weight);
    cudaFuncSetAttribute(linear_decode_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, llmk::FewRows::kBytes);
    linear_decode_kernel<<<grid, llmk::FewRows::kThreads, llmk::FewRows::kBytes, stream>>>(x, layer, rows, tiles,
                                                                                           share.parts, vectors);
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
