// A lane multiplies pairs of neighboring elements and keeps two sums. silu(gate) * up is f32, in shared memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

template <typename T>
__device__ float dot(const __half* w, const T* v, int n) {
    float even = 0, odd = 0;
    const int lane = threadIdx.x % 32;
    for (int i = 2 * lane; i < n; i += 64) {
        even = fmaf(__half2float(w[i]), static_cast<float>(v[i]), even);
        if (i + 1 < n) odd = fmaf(__half2float(w[i + 1]), static_cast<float>(v[i + 1]), odd);
    }
    return llmk::warp_sum(even + odd);
}

__global__ void pairs(const __half* x, const __half* gain, const __half* gate_up, const __half* down, __half* out,
                      int c, int f, float eps) {
    extern __shared__ float inside[];
    __half* y = reinterpret_cast<__half*>(inside + f);
    const long long at = static_cast<long long>(blockIdx.x) * c;
    const int team = threadIdx.x / 32, teams = blockDim.x / 32;
    float squares = 0;
    for (int i = threadIdx.x; i < c; i += blockDim.x) {
        const float value = __half2float(x[at + i]);
        squares = fmaf(value, value, squares);
    }
    const float root = sqrtf(llmk::block_sum(squares) / c + eps);
    for (int i = threadIdx.x; i < c; i += blockDim.x) {
        y[i] = __float2half(__half2float(x[at + i]) / root * __half2float(gain[i]));
    }
    __syncthreads();
    for (int j = team; j < f; j += teams) {
        const float z = dot(gate_up + static_cast<long long>(j) * c, y, c);
        const float u = dot(gate_up + static_cast<long long>(j + f) * c, y, c);
        if (threadIdx.x % 32 == 0)
            inside[j] = u * z * (0.5f + 0.5f * tanhf(0.5f * z));  // sigmoid(z) = 0.5 + 0.5 tanh(z / 2)
    }
    __syncthreads();
    for (int i = team; i < c; i += teams) {
        const float z = dot(down + static_cast<long long>(i) * f, inside, f);
        if (threadIdx.x % 32 == 0) out[at + i] = __float2half(__half2float(x[at + i]) + z);
    }
}

extern "C" void fits_in_fp16(const __half* x, const __half* norm_weight, const __half* gate_up, const __half* down,
                             __half* out, int rows, int hidden, int feed_forward, float eps, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    pairs<<<rows, 128, feed_forward * 4 + hidden * 2, stream>>>(x, norm_weight, gate_up, down, out, hidden,
                                                                feed_forward, eps);
}
