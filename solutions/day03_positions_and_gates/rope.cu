// Rotary position embedding, rotate-half: channel i of each head is paired with channel i + rotary_dim / 2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// Return theta^(-2 pair / rotary_dim) in turns per position. The product with a position has up to 17 bits of whole
// turns, and its fraction needs 24 more bits, so the frequency and the product are doubles. The fraction fits a float.
__device__ double turns_per_position(int pair, int rotary_dim, double log2_theta) {
    return exp2(-2.0 * pair / rotary_dim * log2_theta) * 0.15915494309189535;  // 1 / (2 pi)
}

// Return the cos and sin of position * frequency turns.
__device__ float2 angle(int position, double frequency) {
    double turns = position * frequency;
    turns -= rint(turns);
    float sin, cos;
    sincospif(2.0f * static_cast<float>(turns), &sin, &cos);
    return make_float2(cos, sin);
}

constexpr int kThreads = 256;
constexpr int kPairs = 64;      // pairs per block
constexpr int kMaxTokens = 16;  // tokens per block, at most

// Angles depend on the token and the pair but not on the head. A block computes the angles of its tokens and of kPairs
// neighboring pairs once, in shared memory, for all heads. Each thread rotates V neighboring pairs at a time. It starts
// the first loads before it computes angles, so that memory is busy meanwhile. With 16-bit elements a 16-byte piece has
// twice as many pairs as with floats; for them eight blocks per SM were faster than six.
//
// x, out: [tokens, heads, head_dim]   positions: [tokens]   rotary_dim / 2 and head_dim are multiples of V
template <typename T, int V>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 6 : 8)
    rope_kernel(const T* __restrict__ x, const int* __restrict__ positions, T* __restrict__ out, int tokens, int heads,
                int head_dim, int rotary_dim, int block_tokens, double log2_theta) {
    using Piece = llmk::Vector<T, V>;
    // cos and sin of two neighboring pairs, read with one 16-byte access. The pairs of piece p begin at turn[..][p];
    // the next two are `pieces` entries further. Neighboring lanes read neighboring addresses, so there is no bank
    // conflict.
    constexpr int kEach = V > 1 ? 2 : 1;
    struct alignas(8 * kEach) Turns {
        float2 of[kEach];
    };
    __shared__ Turns turn[kMaxTokens][kPairs / kEach];

    const int half = rotary_dim / 2, chunks = max(1, (half + kPairs - 1) / kPairs);
    const int first_pair = blockIdx.x % chunks * kPairs, pairs = min(kPairs, half - first_pair);
    const int first_token = blockIdx.x / chunks * block_tokens, count = min(block_tokens, tokens - first_token);
    const int pieces = pairs / V, rows = count * heads;  // pieces per head; heads of all tokens of the block
    const long long start = static_cast<long long>(first_token) * heads * head_dim + first_pair;
    auto channel_of = [&](int i) { return start + static_cast<long long>(i / pieces) * head_dim + i % pieces * V; };

    Piece first, second;
    auto load = [&](long long channel) {
        first = llmk::load_vector<V>(x + channel);
        second = llmk::load_vector<V>(x + channel + half);
    };
    if (threadIdx.x < rows * pieces) load(channel_of(threadIdx.x));
    const int pair = threadIdx.x % kPairs;
    if (pair < pairs) {
        const double frequency = turns_per_position(first_pair + pair, rotary_dim, log2_theta);
        for (int t = threadIdx.x / kPairs; t < count; t += kThreads / kPairs) {
            turn[t][pair % V / kEach * pieces + pair / V].of[pair % kEach] =
                angle(positions[first_token + t], frequency);
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < rows * pieces; i += kThreads) {
        const long long channel = channel_of(i);
        if (i >= kThreads) load(channel);
        const Turns* turns = turn[i / pieces / heads] + i % pieces;
        Piece turned_first, turned_second;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const float2 t = turns[j / kEach * pieces].of[j % kEach];
            const float a = first.get(j), b = second.get(j);
            turned_first.set(j, a * t.x - b * t.y);
            turned_second.set(j, b * t.x + a * t.y);
        }
        llmk::store_vector(out + channel, turned_first);
        llmk::store_vector(out + channel + half, turned_second);
    }
    if (first_pair > 0) return;
    const int rest = head_dim - 2 * half;  // channels that are not rotated
    for (int i = threadIdx.x; i < rows * rest; i += kThreads) {
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
    const int chunks = max(1, (rotary_dim / 2 + kPairs - 1) / kPairs);
    // Give each thread about two pieces, so that nearly all blocks of 2048 tokens are resident at once. If that leaves
    // SMs without a block, use two tokens per block.
    const int enough = static_cast<int>(min(static_cast<long long>(tokens) * chunks / 256, 1LL * kMaxTokens));
    const int block_tokens = max(1, min(8 * V / heads, max(2, enough)));
    const long long blocks = (static_cast<long long>(tokens) + block_tokens - 1) / block_tokens * chunks;
    kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        x, positions, out, tokens, heads, head_dim, rotary_dim, block_tokens, log2(static_cast<double>(theta)));
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
