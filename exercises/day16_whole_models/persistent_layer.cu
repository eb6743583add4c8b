// One decoder layer for one token in one launch: RMSNorm, q, k and v, RoPE, attention over a paged cache, the output
// matrix and the residual, RMSNorm, SwiGLU and the residual.
//
// One block stays on each SM and computes its rows of all four matrices. A thread loads these rows to a ring in shared
// memory, in the order of their use, and waits for no input. Blocks exchange results in words of 64 bits, which contain
// the number of the phase that wrote them, so there is no barrier between phases.
//
//   x, out: [hidden]     norms: [2, hidden], before attention and before the MLP
//   weights: four row-major matrices, one after the other: q, k and v [(heads + 2 kv_heads) head_dim, hidden], the
//       output [hidden, heads head_dim], gate and up [2 inter, hidden], in turn, down [hidden, inter]
//   rope: [head_dim / 2, 2], cosine and sine for columns 2 p and 2 p + 1 of a head
//   k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     table: [max_pages]     words, state: the workspace
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/persistent_attention.cuh"
#include "llmk/persistent_inputs.cuh"
#include "llmk/persistent_multiply.cuh"
#include "llmk/persistent_prefetch.cuh"
#include "llmk/persistent_weights.cuh"

using namespace llmk::persistent;

enum { kQkvPhase, kAttentionPhase, kOutPhase, kGateUpPhase, kDownPhase, kPhases };
constexpr int kEpochs = 16;        // a launch adds this to state[0]
constexpr int kMostParts = 16;     // parts of a head's keys
constexpr int kFlying = 45 << 10;  // bytes of weights in flight per SM; more requests would only queue up

// Everything that the kernel needs. `model` has the pointers and sizes that the headers of day 16 use.
template <typename T>
struct Layer {
    Model<T> model;
    const T* x;
    T* out;
    int* state;       // [2]: a number larger than the epoch of every word; the number of blocks that have finished
    int inter, keys;  // keys: the number of keys that the token attends to, including its own
};

// Return the number of parts of a row of a matrix; one warp computes each part.
__host__ __device__ constexpr int parts_of_row(int columns) {
    constexpr int kMost = kMostVectors * 32 * 8;
    return columns <= kMost ? 1 : columns <= 2 * kMost ? 2 : columns <= 4 * kMost ? 4 : 8;
}

// TODO: this block's work in each phase: its rows of the four matrices, where they begin in `weights`, and their inputs.
// TODO: readers: RMSNorm of x, then the input of each phase, by attention() and take_input() of the headers.
// TODO: multipliers: multiply() for each phase.
// TODO: writers: RoPE and the cache, SwiGLU, the residual; publish what other blocks read, with the phase's epoch.
// TODO: the kernel: the ring and the mbarriers in shared memory, the roles, and the workspace for the next launch.

template <typename T>
void persistent_layer(const T* x, const float* norms, const T* weights, const float* rope, const int* table, T* k_cache,
                      T* v_cache, T* out, long long* words, int* state, int hidden, int heads, int kv_heads,
                      int head_dim, int inter, int page_size, int pages, int past, float eps, cudaStream_t stream) {
    Model<T> model = {};
    model.weights = weights;
    model.parameters = norms;
    model.rope = rope;
    model.keys = k_cache;
    model.values = v_cache;
    model.table = table;
    model.width = hidden;
    model.heads = heads;
    model.kv_heads = kv_heads;
    model.head_dim = model.rotary = head_dim;
    model.page_size = page_size;
    model.pages = pages;
    model.splits = kMostParts;
    model.epsilon = eps;
    model.scale = 1.0f / sqrtf(static_cast<float>(head_dim));
    model.x = reinterpret_cast<float*>(words);
    model.x_words = reinterpret_cast<Word*>(words) + hidden / 2;
    model.qkv_words = model.x_words + hidden / 2;
    model.part_words = model.qkv_words + (heads + 2 * kv_heads) * head_dim;
    model.hidden_words = model.part_words + heads * kMostParts * (head_dim + 2);
    const Layer<T> layer = {model, x, out, state, inter, past + 1};
    // TODO: the sizes in shared memory, and a cooperative launch with one block per SM.
}

extern "C" void persistent_layer_f16(const __half* x, const float* norms, const __half* weights, const float* rope,
                                     const int* table, __half* k_cache, __half* v_cache, __half* out, long long* words,
                                     int* state, int hidden, int heads, int kv_heads, int head_dim, int inter,
                                     int page_size, int pages, int past, float eps, cudaStream_t stream) {
    persistent_layer(x, norms, weights, rope, table, k_cache, v_cache, out, words, state, hidden, heads, kv_heads,
                     head_dim, inter, page_size, pages, past, eps, stream);
}

extern "C" void persistent_layer_bf16(const __nv_bfloat16* x, const float* norms, const __nv_bfloat16* weights,
                                      const float* rope, const int* table, __nv_bfloat16* k_cache,
                                      __nv_bfloat16* v_cache, __nv_bfloat16* out, long long* words, int* state,
                                      int hidden, int heads, int kv_heads, int head_dim, int inter, int page_size,
                                      int pages, int past, float eps, cudaStream_t stream) {
    persistent_layer(x, norms, weights, rope, table, k_cache, v_cache, out, words, state, hidden, heads, kv_heads,
                     head_dim, inter, page_size, pages, past, eps, stream);
}
