// A template parameter selects the parallel or the serial residual. Shared memory holds the normalized row and the
// inner activations.
#include <cuda_runtime.h>

constexpr unsigned kAll = 0xffffffffu;

__device__ float total(float mine) {
    for (int reach = 16; reach > 0; reach /= 2) mine += __shfl_xor_sync(kAll, mine, reach);
    return mine;
}

template <bool kParallel>
__global__ void half_block(const float* x, const float* attention, const float* norm_weight, const float* norm_bias,
                           const float* up, const float* up_bias, const float* down, const float* down_bias, float* out,
                           int hidden, int feed_forward, float eps) {
    extern __shared__ float y[];
    float* h = y + hidden;
    const long long at = static_cast<long long>(blockIdx.x) * hidden;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    // Every warp computes mean and variance of the whole row from global memory, so no barrier is needed.
    auto read = [&](int i) { return kParallel ? x[at + i] : x[at + i] + attention[at + i]; };
    float mean = 0, count = 0, m2 = 0;
    for (int i = lane; i < hidden; i += 32) {  // Welford's algorithm in each lane
        const float value = read(i), delta = value - mean;
        count += 1;
        mean += delta / count;
        m2 += delta * (value - mean);
    }
    for (int reach = 16; reach > 0; reach /= 2) {
        const float other_count = __shfl_xor_sync(kAll, count, reach), other_mean = __shfl_xor_sync(kAll, mean, reach);
        const float other_m2 = __shfl_xor_sync(kAll, m2, reach), both = count + other_count;
        if (both > 0) {
            const float delta = other_mean - mean;
            m2 += other_m2 + delta * delta * count * other_count / both;
            mean = (count * mean + other_count * other_mean) / both;
        }
        count = both;
    }
    const float scale = rsqrtf(m2 / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        y[i] = fmaf((read(i) - mean) * scale, norm_weight[i], norm_bias[i]);
    }
    __syncthreads();
    for (int f = warp; f < feed_forward; f += warps) {
        float z = 0;
        for (int i = lane; i < hidden; i += 32) z = fmaf(up[static_cast<long long>(f) * hidden + i], y[i], z);
        z = total(z) + up_bias[f];
        if (lane == 0) h[f] = z * normcdff(z);
    }
    __syncthreads();
    for (int i = warp; i < hidden; i += warps) {
        float z = 0;
        for (int f = lane; f < feed_forward; f += 32)
            z = fmaf(down[static_cast<long long>(i) * feed_forward + f], h[f], z);
        z = total(z);
        if (lane == 0) out[at + i] = z + down_bias[i] + attention[at + i] + x[at + i];
    }
}

extern "C" void neox_parallel_residual(const float* x, const float* attention, const float* norm_weight,
                                       const float* norm_bias, const float* up, const float* up_bias, const float* down,
                                       const float* down_bias, float* out, int rows, int hidden, int feed_forward,
                                       float eps, bool parallel, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const auto kernel = parallel ? half_block<true> : half_block<false>;
    kernel<<<rows, 128, (static_cast<size_t>(hidden) + feed_forward) * 4, stream>>>(
        x, attention, norm_weight, norm_bias, up, up_bias, down, down_bias, out, hidden, feed_forward, eps);
}
