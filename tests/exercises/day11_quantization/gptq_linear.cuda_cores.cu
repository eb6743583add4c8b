// A different design: no tensor cores. To convert a weight q to float, the kernel uses the bits 0x4b000000 | q, which
// are the float 2^23 + q. A lane computes four columns, a warp 128, and the warps of a block divide in_features among
// them.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kWarps = 8;
constexpr int kRows = 4;  // rows of x that are processed at a time

__global__ void product(const __half* x, const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                        const __half* bias, __half* out, int rows, int in_features, int out_features, int group_size,
                        bool act_order, bool has_bias) {
    __shared__ float partial[kWarps][kRows][128];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int column = blockIdx.x * 128 + 4 * lane, first_row = blockIdx.y * kRows;
    const bool inside = column < out_features;
    rows = min(kRows, rows - first_row);

    float sums[kRows][4] = {};
    int known = -1;
    unsigned zeros = 0;
    float scale[4] = {};
    for (int i = warp; i < in_features / 8 && inside; i += kWarps) {
        const uint4 words = *reinterpret_cast<const uint4*>(qweight + static_cast<size_t>(i) * out_features + column);
        const unsigned q[4] = {words.x, words.y, words.z, words.w};
        float values[kRows][8];
        for (int r = 0; r < kRows; ++r) {
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (r < rows) {
                bits = *reinterpret_cast<const uint4*>(x + static_cast<size_t>(first_row + r) * in_features + 8 * i);
            }
            const unsigned pairs[4] = {bits.x, bits.y, bits.z, bits.w};
            for (int p = 0; p < 4; ++p) {
                const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&pairs[p]));
                values[r][2 * p] = both.x;
                values[r][2 * p + 1] = both.y;
            }
        }
        for (int j = 0; j < 8; ++j) {
            const int group = act_order ? g_idx[8 * i + j] : (8 * i + j) / group_size;
            if (group != known) {
                known = group;
                const size_t place = static_cast<size_t>(group) * out_features + column;
                zeros = static_cast<unsigned>(qzeros[place / 8]) >> (column % 8 * 4);
                const uint2 halves = *reinterpret_cast<const uint2*>(scales + place);
                const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
                const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
                scale[0] = low.x, scale[1] = low.y, scale[2] = high.x, scale[3] = high.y;
            }
            for (int c = 0; c < 4; ++c) {
                const float zero = __uint_as_float(0x4b000000u + (zeros >> 4 * c & 15) + 1);
                const float w = (__uint_as_float(0x4b000000u | (q[c] >> 4 * j & 15)) - zero) * scale[c];
                for (int r = 0; r < kRows; ++r) sums[r][c] += values[r][j] * w;
            }
        }
    }
    for (int r = 0; r < kRows; ++r) {
        *reinterpret_cast<float4*>(&partial[warp][r][4 * lane]) =
            make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    }
    __syncthreads();
    for (int o = threadIdx.x; o < rows * 128; o += blockDim.x) {
        const int row = o / 128, to = blockIdx.x * 128 + o % 128;
        if (to >= out_features) continue;
        float sum = has_bias ? __half2float(bias[to]) : 0.0f;
        for (int w = 0; w < kWarps; ++w) sum += partial[w][row][o % 128];
        out[static_cast<size_t>(first_row + row) * out_features + to] = __float2half(sum);
    }
}

extern "C" void gptq_linear(const __half* x, const int* qweight, const int* qzeros, const __half* scales,
                            const int* g_idx, const __half* bias, __half* out, int rows, int in_features,
                            int out_features, int group_size, bool act_order, bool has_bias, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 127) / 128, (rows + kRows - 1) / kRows);
    product<<<grid, 32 * kWarps, 0, stream>>>(x, qweight, qzeros, scales, g_idx, bias, out, rows, in_features,
                                              out_features, group_size, act_order, has_bias);
}
