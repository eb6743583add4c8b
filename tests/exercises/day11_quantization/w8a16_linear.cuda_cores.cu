// A different design: no tensor cores. The bits 0x4b000000 | u are the float 2^23 + u, which converts weights without a
// conversion instruction. A warp computes eight features for four rows, and the rows of x are in shared memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kOwn = 8;  // features of a warp
constexpr int kRows = 4;
constexpr int kChunk = 512;  // columns: 16 for each lane

__global__ void __launch_bounds__(kThreads)
    features_of_warps(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                      int in_features, int out_features) {
    __shared__ float part[kRows][kChunk];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int feature0 = (blockIdx.x * kWarps + warp) * kOwn, row0 = blockIdx.y * kRows;
    float sums[kOwn][kRows] = {};
    for (int chunk = 0; chunk < in_features; chunk += kChunk) {
        __syncthreads();
        for (int e = threadIdx.x; e < kRows * kChunk; e += kThreads) {
            const int row = row0 + e / kChunk, column = chunk + e % kChunk;
            const bool there = row < rows && column < in_features;
            // Column c of lane l is column 16 l + c of the chunk; lanes read neighboring floats.
            const int at = e % kChunk % 16 * 32 + e % kChunk / 16;
            part[e / kChunk][at] = there ? __half2float(x[static_cast<long long>(row) * in_features + column]) : 0.0f;
        }
        __syncthreads();
        const int column = chunk + 16 * lane;
        for (int f = 0; f < kOwn; ++f) {
            if (feature0 + f >= out_features) break;
            const signed char* row = weight + static_cast<long long>(feature0 + f) * in_features;
            unsigned words[4] = {};
            if (column + 16 <= in_features && reinterpret_cast<unsigned long long>(row + column) % 16 == 0) {
                const uint4 found = *reinterpret_cast<const uint4*>(row + column);
                words[0] = found.x, words[1] = found.y, words[2] = found.z, words[3] = found.w;
            } else {
                for (int c = 0; c < 16 && column + c < in_features; ++c) {
                    words[c / 4] |= static_cast<unsigned>(static_cast<unsigned char>(row[column + c])) << (c % 4 * 8);
                }
            }
            for (int c = 0; c < 16; ++c) {
                const unsigned biased = (words[c / 4] ^ 0x80808080u) >> (c % 4 * 8) & 255;
                const float w = __uint_as_float(0x4b000000u | biased) - 8388736.0f;
                for (int r = 0; r < kRows; ++r) sums[f][r] += w * part[r][c * 32 + lane];
            }
        }
    }
    for (int f = 0; f < kOwn; ++f) {
        for (int r = 0; r < kRows; ++r) {
            float sum = sums[f][r];
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            if (lane == 0 && feature0 + f < out_features && row0 + r < rows) {
                out[static_cast<long long>(row0 + r) * out_features + feature0 + f] =
                    __float2half_rn(sum * scales[feature0 + f]);
            }
        }
    }
}

extern "C" void w8a16_linear(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                             int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kWarps * kOwn - 1) / (kWarps * kOwn), (rows + kRows - 1) / kRows);
    features_of_warps<<<grid, kThreads, 0, stream>>>(x, weight, scales, out, rows, in_features, out_features);
}
