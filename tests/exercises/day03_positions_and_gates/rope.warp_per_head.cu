// Correct alternative: one block per token, one warp per head. The angle is computed from two floats whose sum is the
// frequency, in place of one double
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

// Returns position * (high + low) minus the nearest integer, where high + low is the number of turns per position. A
// fused multiply-add computes the rounding error of position * high, which is added back.
__device__ float fraction_of_turn(float position, float high, float low) {
    const float product = position * high;
    const float error = fmaf(position, high, -product);
    return product - rintf(product) + (error + position * low);
}

// x, out: [tokens, heads, head_dim]   positions: [tokens]
template <typename T>
__global__ void rope_heads(const T* x, const int* positions, T* out, int heads, int head_dim, int rotary_dim,
                           double log2_theta) {
    extern __shared__ float angles[];  // [half] cosines, [half] sines
    const int half = rotary_dim / 2;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const double turns = exp2(-2.0 * i / rotary_dim * log2_theta) / 6.283185307179586;
        const float high = static_cast<float>(turns);
        const float low = static_cast<float>(turns - high);
        const float part = fraction_of_turn(positions[blockIdx.x], high, low);
        angles[i] = cospif(2.0f * part);
        angles[half + i] = sinpif(2.0f * part);
    }
    __syncthreads();
    for (int head = threadIdx.x / 32; head < heads; head += blockDim.x / 32) {
        const long long at = (static_cast<long long>(blockIdx.x) * heads + head) * head_dim;
        for (int c = threadIdx.x % 32; c < head_dim; c += 32) {
            if (c >= rotary_dim) {
                out[at + c] = x[at + c];
            } else if (c < half) {
                const float a = to_float(x[at + c]), b = to_float(x[at + c + half]);
                store(out + at + c, a * angles[c] - b * angles[half + c]);
                store(out + at + c + half, b * angles[c] + a * angles[half + c]);
            }
        }
    }
}

template <typename T>
void rope(const T* x, const int* positions, T* out, int tokens, int heads, int head_dim, int rotary_dim, float theta,
          cudaStream_t stream) {
    if (tokens == 0 || heads == 0 || head_dim == 0) return;
    rope_heads<<<tokens, 128, rotary_dim * sizeof(float), stream>>>(x, positions, out, heads, head_dim, rotary_dim,
                                                                    log2(static_cast<double>(theta)));
}

// x, out: [tokens, heads, head_dim]   positions: [tokens]
