// Rotary position embedding, rotate-half: channel i of each head turns with channel i + rotary_dim / 2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// cos and sin of position * theta^(-2 pair / rotary_dim). The product needs about 17 bits for the position and 24 more
// for what is left after whole turns are taken away, so it is made in double; the remainder fits a float.
__device__ float2 angle(int position, int pair, int rotary_dim, double log2_theta) {
    double turns = position * exp2(-2.0 * pair / rotary_dim * log2_theta) * 0.15915494309189535;  // 1 / (2 pi)
    turns -= rint(turns);
    float sin, cos;
    sincospif(2.0f * static_cast<float>(turns), &sin, &cos);
    return make_float2(cos, sin);
}

constexpr int kThreads = 256;  // eight such blocks fit on an SM, so that all blocks of 2048 tokens run at once
constexpr int kTokens = 2;     // of one block: their angles are made side by side, so the wait for them is paid once

// Angles depend on the token and the pair but not on the head: a block makes those of its tokens once, in shared
// memory, and every head uses them. Each thread turns V neighbouring pairs at a time.
//
// x, out: [tokens, heads, head_dim]   positions: [tokens]   rotary_dim / 2 and head_dim are multiples of V
template <typename T, int V>
__global__ void __launch_bounds__(kThreads, 8)
    rope_kernel(const T* __restrict__ x, const int* __restrict__ positions, T* __restrict__ out, int tokens, int heads,
                int head_dim, int rotary_dim, double log2_theta) {
    extern __shared__ float2 turn[];  // [kTokens, half]: cos, sin
    using Piece = llmk::Vector<T, V>;
    const int half = rotary_dim / 2;
    const int first_token = blockIdx.x * kTokens;
    const int count = min(kTokens, tokens - first_token);
    for (int i = threadIdx.x; i < count * half; i += blockDim.x) {
        turn[i] = angle(positions[first_token + i / half], i % half, rotary_dim, log2_theta);
    }
    __syncthreads();

    const long long start = static_cast<long long>(first_token) * heads * head_dim;
    const int pieces = half / V;  // of one head
    for (int i = threadIdx.x; i < count * heads * pieces; i += blockDim.x) {
        const int pair = i % pieces * V;
        const int head = i / pieces;  // counted through the tokens of the block
        const long long channel = start + static_cast<long long>(head) * head_dim + pair;
        const Piece first = llmk::load_vector<V>(x + channel);
        const Piece second = llmk::load_vector<V>(x + channel + half);
        const float2* turns = turn + head / heads * half + pair;
        Piece turned_first, turned_second;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const float2 t = turns[j];
            const float a = first.get(j), b = second.get(j);
            turned_first.set(j, a * t.x - b * t.y);
            turned_second.set(j, b * t.x + a * t.y);
        }
        llmk::store_vector(out + channel, turned_first);
        llmk::store_vector(out + channel + half, turned_second);
    }
    const int rest = head_dim - 2 * half;  // channels that do not turn
    for (int i = threadIdx.x; i < count * heads * rest; i += blockDim.x) {
        const long long channel = start + static_cast<long long>(i / rest) * head_dim + 2 * half + i % rest;
        out[channel] = x[channel];
    }
}

template <typename T>
void rope(const T* x, const int* positions, T* out, int tokens, int heads, int head_dim, int rotary_dim, float theta,
          cudaStream_t stream) {
    if (tokens == 0 || heads == 0 || head_dim == 0) return;
    constexpr int V = llmk::kVectorWidth<T>;
    const bool vectors = llmk::rows_are_aligned(head_dim, x, out) && rotary_dim / 2 % V == 0;
    const auto kernel = vectors ? rope_kernel<T, V> : rope_kernel<T, 1>;
    const size_t shared_bytes = kTokens * (rotary_dim / 2) * sizeof(float2);
    kernel<<<(tokens + kTokens - 1) / kTokens, kThreads, shared_bytes, stream>>>(
        x, positions, out, tokens, heads, head_dim, rotary_dim, log2(static_cast<double>(theta)));
}

// x, out: [tokens, heads, head_dim]   positions: [tokens]
extern "C" void rope_f32(const float* x, const int* positions, float* out, int tokens, int heads, int head_dim,
                         int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}

extern "C" void rope_f16(const __half* x, const int* positions, __half* out, int tokens, int heads, int head_dim,
                         int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}

extern "C" void rope_bf16(const __nv_bfloat16* x, const int* positions, __nv_bfloat16* out, int tokens, int heads,
                          int head_dim, int rotary_dim, float theta, cudaStream_t stream) {
    rope(x, positions, out, tokens, heads, head_dim, rotary_dim, theta, stream);
}
