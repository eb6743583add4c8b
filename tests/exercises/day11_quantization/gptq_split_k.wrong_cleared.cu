// out = x w for a few rows of f16 and int4 weights in GPTQ's format, with in_features divided into parts. Wrong: the
// launcher sets `out` to zero, but the kernel still adds rounded f16 sums with atomics.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]     partial: [splits, rows, out_features]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 64;  // columns per block, one for each thread
constexpr int kRows = 16;

// Block (c, s) computes the sums of 64 columns over part s of in_features, and adds them to out.
__global__ void add_part(const __half* x, const int* qweight, const int* qzeros, const __half* scales, __half* out,
                         int rows, int in_features, int out_features, int group_size) {
    const int column = blockIdx.x * kThreads + threadIdx.x;
    if (column >= out_features) return;
    const int words = in_features / 8, words_each = (words + gridDim.y - 1) / gridDim.y;
    const int first = blockIdx.y * words_each, end = min(first + words_each, words);

    __half sums[kRows] = {};
    for (int i = first; i < end; ++i) {
        const unsigned word = qweight[static_cast<size_t>(i) * out_features + column];
        for (int j = 0; j < 8; ++j) {
            const int k = 8 * i + j;
            const size_t group = k / group_size;
            const unsigned zeros = qzeros[group * (out_features / 8) + column / 8];
            const int zero = (zeros >> (column % 8 * 4) & 15) + 1;
            const int q = word >> 4 * j & 15;
            const __half weight = __hmul(__int2half_rn(q - zero), scales[group * out_features + column]);
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                if (row < rows) sums[row] = __hfma(x[static_cast<size_t>(row) * in_features + k], weight, sums[row]);
            }
        }
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (row < rows) atomicAdd(&out[static_cast<size_t>(row) * out_features + column], sums[row]);
    }
}

extern "C" void gptq_split_k(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                             float* partial, __half* out, int rows, int in_features, int out_features, int group_size,
                             int splits, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    cudaMemsetAsync(out, 0, sizeof(__half) * rows * out_features, stream);
    const dim3 grid((out_features + kThreads - 1) / kThreads, splits);
    add_part<<<grid, kThreads, 0, stream>>>(x, qweight, qzeros, scales, out, rows, in_features, out_features,
                                            group_size);
}
