// out = x w for a few rows of f16 and int4 weights in GPTQ's format, with in_features divided into parts. Wrong: the
// order of the additions, and so the rounding, differs between runs, although all results are within the tolerance.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]     partial: [splits, rows, out_features]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 64;  // columns per block, one for each thread
constexpr int kRows = 16;

// Block (c, s) computes the sums of 64 columns over part s of in_features.
__global__ void add_part(const __half* x, const int* qweight, const int* qzeros, const __half* scales, float* partial,
                         int rows, int in_features, int out_features, int group_size) {
    const int column = blockIdx.x * kThreads + threadIdx.x;
    if (column >= out_features) return;
    const int words = in_features / 8, words_each = (words + gridDim.y - 1) / gridDim.y;
    const int first = blockIdx.y * words_each, end = min(first + words_each, words);

    float sums[kRows] = {};
    for (int i = first; i < end; ++i) {
        const unsigned word = qweight[static_cast<size_t>(i) * out_features + column];
        for (int j = 0; j < 8; ++j) {
            const int k = 8 * i + j;
            const size_t group = k / group_size;
            const unsigned zeros = qzeros[group * (out_features / 8) + column / 8];
            const int zero = (zeros >> (column % 8 * 4) & 15) + 1;
            const int q = word >> 4 * j & 15;
            const float weight = (q - zero) * __half2float(scales[group * out_features + column]);
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                if (row < rows) sums[row] += __half2float(x[static_cast<size_t>(row) * in_features + k]) * weight;
            }
        }
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (row < rows) atomicAdd(&partial[static_cast<size_t>(row) * out_features + column], sums[row]);
    }
}

// Rounds each f32 sum to f16 once.
__global__ void add_up(const float* partial, __half* out, int outputs) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= outputs) return;
    out[i] = __float2half(partial[i]);
}

extern "C" void gptq_split_k(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                             float* partial, __half* out, int rows, int in_features, int out_features, int group_size,
                             int splits, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    cudaMemsetAsync(partial, 0, sizeof(float) * rows * out_features, stream);
    const dim3 grid((out_features + kThreads - 1) / kThreads, splits);
    add_part<<<grid, kThreads, 0, stream>>>(x, qweight, qzeros, scales, partial, rows, in_features, out_features,
                                            group_size);
    const int outputs = rows * out_features;
    add_up<<<(outputs + kThreads - 1) / kThreads, kThreads, 0, stream>>>(partial, out, outputs);
}
