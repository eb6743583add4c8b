// The second half of a Qwen2 block in f16: out = x + down(silu(gate y) * up y), y = x / sqrt(mean(x^2) + eps) *
// norm_weight.
//
//   x, out: [rows, hidden]      norm_weight: [hidden]
//   gate_up: [2 * feed_forward, hidden], gate then up      down: [hidden, feed_forward]
//
// All values in this kernel are f16, as the weights are. Its errors are larger than in the lesson's table: some rows
// are infinite, others have lost digits. There are four kinds of intermediate values, each with a type below. Find out
// from the report which of them do not fit into f16, and widen only those: wider values take more bytes to store and
// load.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

using Squares = __half;  // squares of x, and their sum
using Normed = __half;   // y
using Sum = __half;      // sums of products
using Inside = __half;   // silu(gate) * up

constexpr int kThreads = 256;

// Return the sum over the lanes of a warp of weights[i] * values[i], on every lane.
template <typename T>
__device__ float product(const __half* weights, const T* values, int count) {
    Sum sum = 0.0f;
    for (int i = threadIdx.x % 32; i < count; i += 32) {
        sum =
            static_cast<Sum>(static_cast<float>(sum) + static_cast<float>(weights[i]) * static_cast<float>(values[i]));
    }
    return llmk::warp_sum(static_cast<float>(sum));
}

__global__ void mlp(const __half* x, const __half* norm_weight, const __half* gate_up, const __half* down, __half* out,
                    int hidden, int feed_forward, float eps) {
    extern __shared__ float shared[];
    Inside* inside = reinterpret_cast<Inside*>(shared);            // [feed_forward]
    Normed* y = reinterpret_cast<Normed*>(shared + feed_forward);  // [hidden]
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    x += static_cast<size_t>(blockIdx.x) * hidden;
    out += static_cast<size_t>(blockIdx.x) * hidden;

    Squares squares = 0.0f;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        const Squares value = static_cast<float>(x[i]);
        squares = squares + value * value;
    }
    const float scale = rsqrtf(llmk::block_sum(static_cast<float>(squares)) / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        y[i] = static_cast<Normed>(static_cast<float>(x[i]) * scale * static_cast<float>(norm_weight[i]));
    }
    __syncthreads();

    for (int f = warp; f < feed_forward; f += warps) {
        const float gate = product(gate_up + static_cast<size_t>(f) * hidden, y, hidden);
        const float up = product(gate_up + static_cast<size_t>(feed_forward + f) * hidden, y, hidden);
        if (lane == 0) inside[f] = static_cast<Inside>(gate / (1.0f + expf(-gate)) * up);
    }
    __syncthreads();
    for (int i = warp; i < hidden; i += warps) {
        const float sum = product(down + static_cast<size_t>(i) * feed_forward, inside, feed_forward);
        if (lane == 0) out[i] = static_cast<__half>(static_cast<float>(x[i]) + sum);
    }
}

extern "C" void fits_in_fp16(const __half* x, const __half* norm_weight, const __half* gate_up, const __half* down,
                             __half* out, int rows, int hidden, int feed_forward, float eps, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const size_t bytes = feed_forward * sizeof(float) + hidden * sizeof(float);
    mlp<<<rows, kThreads, bytes, stream>>>(x, norm_weight, gate_up, down, out, hidden, feed_forward, eps);
}
