// Correct alternative: one thread per token and pair of channels, which keeps the pair's angle in registers and loops
// over the heads
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float* p, float x) { *p = x; }
__device__ void store(__half* p, float x) { *p = __float2half(x); }
__device__ void store(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// x, out: [tokens, heads, head_dim]   positions: [tokens]
template <typename T>
__global__ void rope_pairs(const T* x, const int* positions, T* out, int heads, int head_dim, int rotary_dim,
                           double theta) {
    const long long token = blockIdx.x;
    const int half = rotary_dim / 2;
    for (int c = threadIdx.x; c < head_dim - half; c += blockDim.x) {
        const bool turns = c < half;
        const int first = turns ? c : c + half;  // the first channel of a pair, or a channel that is not rotated
        float sin = 0.0f, cos = 1.0f;
        if (turns) {
            const double angle = positions[token] * pow(theta, -2.0 * c / rotary_dim);
            const double around = 6.283185307179586;
            sincosf(static_cast<float>(angle - around * rint(angle / around)), &sin, &cos);
        }
        for (int head = 0; head < heads; ++head) {
            const long long at = (token * heads + head) * head_dim + first;
            if (turns) {
                const float a = to_float(x[at]), b = to_float(x[at + half]);
                store(out + at, a * cos - b * sin);
                store(out + at + half, b * cos + a * sin);
            } else {
                out[at] = x[at];
            }
        }
    }
}

template <typename T>
void rope(const T* x, const int* positions, T* out, int tokens, int heads, int head_dim, int rotary_dim, float theta,
          cudaStream_t stream) {
    if (tokens == 0 || heads == 0 || head_dim == 0) return;
    rope_pairs<<<tokens, 64, 0, stream>>>(x, positions, out, heads, head_dim, rotary_dim, theta);
}

// x, out: [tokens, heads, head_dim]   positions: [tokens]
