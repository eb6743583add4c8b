// Inner activations stay f16. They are divided by a power of two, so that the largest one of a row does not overflow.
// Gate and up are computed in one pass.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kMost = 160;  // maximum features per warp: 8 warps compute up to 1,280

__global__ void scaled(const __half* x, const __half* gain, const __half* gate_up, const __half* down, __half* out,
                       int c, int f, float eps) {
    extern __shared__ __half memory[];
    __half *y = memory, *inside = memory + c;
    __shared__ float largest[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const __half* row = x + static_cast<size_t>(blockIdx.x) * c;
    float squares = 0;
    // Each warp computes the sum of squares of the whole row.
    for (int i = lane; i < c; i += 32) squares += __half2float(row[i]) * __half2float(row[i]);
    const float scale = rsqrtf(llmk::warp_sum(squares) / c + eps);
    for (int i = threadIdx.x; i < c; i += 256)
        y[i] = __float2half(__half2float(row[i]) * scale * __half2float(gain[i]));
    __syncthreads();
    float most = 0;
    const auto value_of = [&](int j) {
        float gate = 0, up = 0;
        for (int i = lane; i < c; i += 32) {
            const float value = __half2float(y[i]);
            gate += value * __half2float(gate_up[static_cast<size_t>(j) * c + i]);
            up += value * __half2float(gate_up[static_cast<size_t>(f + j) * c + i]);
        }
        gate = llmk::warp_sum(gate);
        return gate / (1 + expf(-gate)) * llmk::warp_sum(up);
    };
    float mine[kMost];
    for (int j = warp, n = 0; j < f; j += 8, ++n) {
        mine[n] = value_of(j);
        most = fmaxf(most, fabsf(mine[n]));
    }
    if (lane == 0) largest[warp] = most;
    __syncthreads();
    for (int w = 0; w < 8; ++w) most = fmaxf(most, largest[w]);
    const float power = exp2f(fmaxf(0.0f, ceilf(log2f(fmaxf(most, 1e-30f) / 60000.0f))));
    for (int j = warp, n = 0; j < f; j += 8, ++n) {
        if (lane == 0) inside[j] = __float2half(mine[n] / power);
    }
    __syncthreads();
    for (int i = warp; i < c; i += 8) {
        float sum = 0;
        for (int j = lane; j < f; j += 32) {
            sum += __half2float(inside[j]) * __half2float(down[static_cast<size_t>(i) * f + j]);
        }
        sum = llmk::warp_sum(sum) * power;
        if (lane == 0) out[static_cast<size_t>(blockIdx.x) * c + i] = __float2half(__half2float(row[i]) + sum);
    }
}

extern "C" void fits_in_fp16(const __half* x, const __half* norm_weight, const __half* gate_up, const __half* down,
                             __half* out, int rows, int hidden, int feed_forward, float eps, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    scaled<<<rows, 256, (hidden + feed_forward) * sizeof(__half), stream>>>(x, norm_weight, gate_up, down, out, hidden,
                                                                            feed_forward, eps);
}
