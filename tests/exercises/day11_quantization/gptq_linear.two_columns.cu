// A different design: a thread computes two columns for a slice of in_features. Shared memory holds one chunk of the
// rows at a time.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kLanes = 32, kSlices = 8;
constexpr int kChunk = 8 * kSlices * 4;  // input features per chunk
constexpr int kRows = 16;

// Returns 2^23 + n without a conversion instruction: the last bit of a float between 2^23 and 2^24 has the value 1.
__device__ float plus_2_to_23(unsigned n) { return __uint_as_float(0x4b000000u | n); }

__global__ void product(const __half* x, const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                        const __half* bias, __half* out, int rows, int in_features, int out_features, int group_size,
                        bool act_order, bool has_bias) {
    __shared__ float rows_of_x[kRows][kChunk];
    __shared__ float partial[kSlices][2 * kLanes];
    const int lane = threadIdx.x, slice = threadIdx.y, thread = slice * kLanes + lane;
    const int column = (blockIdx.x * kLanes + lane) * 2;
    const bool inside = column < out_features;
    float sums[kRows][2] = {};
    for (int start = 0; start < in_features; start += kChunk) {
        const int here = min(kChunk, in_features - start);
        for (int p = thread; p < rows * here; p += kLanes * kSlices) {
            rows_of_x[p / here][p % here] =
                __half2float(x[static_cast<size_t>(p / here) * in_features + start + p % here]);
        }
        __syncthreads();
        for (int i = slice; i < here / 8 && inside; i += kSlices) {
            const size_t word_row = start / 8 + i;
            const uint2 words = *reinterpret_cast<const uint2*>(qweight + word_row * out_features + column);
            int known = -1;
            unsigned zeros = 0;
            float2 scale = {};
            for (int j = 0; j < 8; ++j) {
                const int k = start + 8 * i + j;
                const int group = act_order ? g_idx[k] : k / group_size;
                if (group != known) {
                    known = group;
                    const size_t place = static_cast<size_t>(group) * out_features + column;
                    zeros = static_cast<unsigned>(qzeros[place / 8]) >> (column % 8 * 4);
                    scale = __half22float2(*reinterpret_cast<const __half2*>(scales + place));
                }
                const float w0 = (plus_2_to_23(words.x >> 4 * j & 15) - plus_2_to_23((zeros & 15) + 1)) * scale.x;
                const float w1 = (plus_2_to_23(words.y >> 4 * j & 15) - plus_2_to_23((zeros >> 4 & 15) + 1)) * scale.y;
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    if (r >= rows) continue;
                    sums[r][0] += rows_of_x[r][8 * i + j] * w0;
                    sums[r][1] += rows_of_x[r][8 * i + j] * w1;
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        if (r >= rows) continue;
        partial[slice][2 * lane] = sums[r][0];
        partial[slice][2 * lane + 1] = sums[r][1];
        __syncthreads();
        const int to = blockIdx.x * 2 * kLanes + thread;
        if (thread < 2 * kLanes && to < out_features) {
            float sum = has_bias ? __half2float(bias[to]) : 0.0f;
            for (int s = 0; s < kSlices; ++s) sum += partial[s][thread];
            out[static_cast<size_t>(r) * out_features + to] = __float2half(sum);
        }
        __syncthreads();
    }
}

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    product<<<(out_features + 2 * kLanes - 1) / (2 * kLanes), dim3(kLanes, kSlices), 0, stream>>>(
        x, qweight, qzeros, scales, g_idx, bias, out, rows, in_features, out_features, group_size, act_order, has_bias);
}
