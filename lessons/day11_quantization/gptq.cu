// out = x w for a few rows and int4 weights in GPTQ's format, in four versions, each with one change. A further kernel
// has int8 weights.
//
//   x: [rows, in_features]     qweight: [in_features / 8, out_features]     out: [rows, out_features]
//   qzeros: [groups, out_features / 8]     scales: [groups, out_features]     g_idx: [in_features]
//
// Versions 2 to 4 require groups of whole words, in order: the group of k is k / group_size.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Return the zero of a column. Zeros are stored minus 1, eight columns per word.
__device__ int zero_of(const int* qzeros, size_t group, int column, int out_features) {
    const unsigned word = qzeros[group * (out_features / 8) + column / 8];
    return (word >> (column % 8 * 4) & 15) + 1;
}

// Version 1: one thread per column and row, which computes the formula as written.
__global__ void by_column_kernel(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                                 const int* g_idx, __half* out, int in_features, int out_features) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= out_features) return;
    float sum = 0;
    for (int k = 0; k < in_features; ++k) {
        const unsigned word = qweight[static_cast<size_t>(k / 8) * out_features + column];
        const int q = word >> (k % 8 * 4) & 15;
        const size_t group = g_idx[k];
        const float scale = __half2float(scales[group * out_features + column]);
        const float weight = (q - zero_of(qzeros, group, column, out_features)) * scale;
        sum += __half2float(x[static_cast<size_t>(row) * in_features + k]) * weight;
    }
    out[static_cast<size_t>(row) * out_features + column] = __float2half(sum);
}

__device__ __half2 as_half2(unsigned bits) { return *reinterpret_cast<const __half2*>(&bits); }

// Unpack the eight weights of a word and subtract their zero, exactly, as the pairs (0, 4), (1, 5), (2, 6), (3, 7).
__device__ void unpack(unsigned word, int zero, __half2 (&pairs)[4]) {
    const __half2 low = __float2half2_rn(1024 + zero), high = __float2half2_rn(-(64 + zero));
    const __half2 sixteenth = __float2half2_rn(1 / 16.0f);
    for (int i = 0; i < 2; ++i) {
        pairs[2 * i] = __hsub2(as_half2((word & 0x000f000fu) | 0x64006400u), low);  // 1024 + q - low
        pairs[2 * i + 1] =
            __hfma2(as_half2((word & 0x00f000f0u) | 0x64006400u), sixteenth, high);  // (1024 + 16 q) / 16
        word >>= 8;
    }
}

// Return the dot product of a word's weights with eight neighbors of a row of x, in half, as two independent sums.
__device__ __half2 dot(const __half2 (&pairs)[4], const __half* x) {
    __half2 sum = __float2half2_rn(0);
    for (int p = 0; p < 4; ++p) sum = __hfma2(pairs[p], __halves2half2(x[p], x[p + 4]), sum);
    return sum;
}

// Version 2: unpack a word once, two weights per instruction; read zero and scale once per word.
// kHalfSums: accumulate the whole sum over k in half.
template <bool kHalfSums>
__global__ void by_word_kernel(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                               __half* out, int in_features, int out_features, int group_size) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= out_features) return;
    const __half* x_row = x + static_cast<size_t>(row) * in_features;
    float sum = 0;
    __half2 half_sum = __float2half2_rn(0);
    for (int i = 0; i < in_features / 8; ++i) {
        const size_t group = 8 * i / group_size;
        const __half scale = scales[group * out_features + column];
        __half2 pairs[4];
        unpack(qweight[static_cast<size_t>(i) * out_features + column], zero_of(qzeros, group, column, out_features),
               pairs);
        if (kHalfSums) {
            for (int p = 0; p < 4; ++p) {
                const __half2 weights = __hmul2(pairs[p], __half2half2(scale));
                half_sum = __hfma2(weights, __halves2half2(x_row[8 * i + p], x_row[8 * i + p + 4]), half_sum);
            }
        } else {
            for (int p = 0; p < 4; ++p) {
                const float2 two = __half22float2(pairs[p]);
                const float both = two.x * __half2float(x_row[8 * i + p]) + two.y * __half2float(x_row[8 * i + p + 4]);
                sum += both * __half2float(scale);
            }
        }
    }
    if (kHalfSums) sum = __half2float(__hadd(__low2half(half_sum), __high2half(half_sum)));
    out[static_cast<size_t>(row) * out_features + column] = __float2half(sum);
}

constexpr int kThreads = 128;  // each with four columns
constexpr int kRows = 8;       // rows of x per block, at most
constexpr int kPart = 128;     // values of k in shared memory at a time

// The tiling of exllama: 128 threads compute 512 columns of up to 8 rows, from kPart values of k in shared memory. They
// unpack a word once for all rows. The eight terms of a word are added in half, everything else in float.
__device__ void add_part(const __half* x, const int* qweight, const int* qzeros, const __half* scales, int k, int rows,
                         int in_features, int out_features, int group_size, float (&sums)[kRows][4]) {
    __shared__ __half part[kRows][kPart];
    const int column = (blockIdx.x * kThreads + threadIdx.x) * 4;
    const int here = min(kPart, in_features - k);
    __syncthreads();  // all threads are done with the previous part
    for (int row = 0; row < rows; ++row) {
        for (int j = threadIdx.x; j < here; j += kThreads)
            part[row][j] = x[static_cast<size_t>(row) * in_features + k + j];
    }
    __syncthreads();
    if (column >= out_features) return;
    for (int i = 0; i < here / 8; ++i) {
        const size_t word_row = k / 8 + i, group = (k + 8 * i) / group_size;
        const uint4 four = *reinterpret_cast<const uint4*>(qweight + word_row * out_features + column);  // 16 bytes
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            __half2 pairs[4];
            unpack(words[c], zero_of(qzeros, group, column + c, out_features), pairs);
            const float scale = __half2float(scales[group * out_features + column + c]);
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                if (row >= rows) continue;
                const float2 two = __half22float2(dot(pairs, &part[row][8 * i]));
                sums[row][c] += (two.x + two.y) * scale;
            }
        }
    }
}

// Version 3: exllama's tiling, with one block for all of in_features.
__global__ void tiled_kernel(const __half* x, const int* qweight, const int* qzeros, const __half* scales, __half* out,
                             int rows, int in_features, int out_features, int group_size) {
    float sums[kRows][4] = {};
    for (int k = 0; k < in_features; k += kPart) {
        add_part(x, qweight, qzeros, scales, k, rows, in_features, out_features, group_size, sums);
    }
    const int column = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (column >= out_features) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (row >= rows) continue;
        for (int c = 0; c < 4; ++c)
            out[static_cast<size_t>(row) * out_features + column + c] = __float2half(sums[row][c]);
    }
}

// Version 4: the same tiling, with one block per part of in_features. All parts are added to out, which must be zero
// before.
__global__ void split_k_kernel(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                               __half* out, int rows, int in_features, int out_features, int group_size) {
    float sums[kRows][4] = {};
    add_part(x, qweight, qzeros, scales, blockIdx.y * kPart, rows, in_features, out_features, group_size, sums);
    const int column = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (column >= out_features) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (row >= rows) continue;
        __half2* to = reinterpret_cast<__half2*>(out + static_cast<size_t>(row) * out_features + column);
        atomicAdd(to, __floats2half2_rn(sums[row][0], sums[row][1]));
        atomicAdd(to + 1, __floats2half2_rn(sums[row][2], sums[row][3]));
    }
}

// Weight-only int8: one byte per weight, one scale per column. q: [in_features, out_features]
__global__ void int8_kernel(const __half* x, const signed char* q, const __half* scales, __half* out, int in_features,
                            int out_features) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= out_features) return;
    float sum = 0;
    for (int k = 0; k < in_features; ++k) {
        sum += __half2float(x[static_cast<size_t>(row) * in_features + k]) *
               q[static_cast<size_t>(k) * out_features + column];
    }
    out[static_cast<size_t>(row) * out_features + column] = __float2half(sum * __half2float(scales[column]));
}

extern "C" void by_column(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                          const int* g_idx, __half* out, int rows, int in_features, int out_features,
                          cudaStream_t stream) {
    by_column_kernel<<<dim3((out_features + 63) / 64, rows), 64, 0, stream>>>(x, qweight, qzeros, scales, g_idx, out,
                                                                              in_features, out_features);
}

extern "C" void by_word(const __half* x, const int* qweight, const int* qzeros, const __half* scales, __half* out,
                        int rows, int in_features, int out_features, int group_size, bool half_sums,
                        cudaStream_t stream) {
    const auto kernel = half_sums ? by_word_kernel<true> : by_word_kernel<false>;
    kernel<<<dim3((out_features + 63) / 64, rows), 64, 0, stream>>>(x, qweight, qzeros, scales, out, in_features,
                                                                    out_features, group_size);
}

extern "C" void tiled(const __half* x, const int* qweight, const int* qzeros, const __half* scales, __half* out,
                      int rows, int in_features, int out_features, int group_size, cudaStream_t stream) {
    for (int row = 0; row < rows; row += kRows) {
        tiled_kernel<<<(out_features + 4 * kThreads - 1) / (4 * kThreads), kThreads, 0, stream>>>(
            x + static_cast<size_t>(row) * in_features, qweight, qzeros, scales,
            out + static_cast<size_t>(row) * out_features, min(kRows, rows - row), in_features, out_features,
            group_size);
    }
}

extern "C" void split_k(const __half* x, const int* qweight, const int* qzeros, const __half* scales, __half* out,
                        int rows, int in_features, int out_features, int group_size, cudaStream_t stream) {
    const dim3 grid((out_features + 4 * kThreads - 1) / (4 * kThreads), (in_features + kPart - 1) / kPart);
    for (int row = 0; row < rows; row += kRows) {
        split_k_kernel<<<grid, kThreads, 0, stream>>>(x + static_cast<size_t>(row) * in_features, qweight, qzeros,
                                                      scales, out + static_cast<size_t>(row) * out_features,
                                                      min(kRows, rows - row), in_features, out_features, group_size);
    }
}

extern "C" void int8(const __half* x, const signed char* q, const __half* scales, __half* out, int rows,
                     int in_features, int out_features, cudaStream_t stream) {
    int8_kernel<<<dim3((out_features + 63) / 64, rows), 64, 0, stream>>>(x, q, scales, out, in_features, out_features);
}
