// One decode step of a whole Qwen2: it reads one token per sequence and computes the logits of the next one. The
// kernels are given, simple and correct. Your task is the wiring: the position of the new token, the place of its key
// and value in the cache, and the inputs of each kernel.
//
//   ids, lengths: [batch]; lengths includes the new token        block_tables: [batch, max_pages]
//   table: [vocabulary, hidden], also the weight of the logits   last_norm: [hidden]
//   per layer, all layers contiguous:
//     norm_1, norm_2: [hidden]                                    out_weight: [hidden, heads * head_dim]
//     qkv_weight: [(heads + 2 kv_heads) * head_dim, hidden]       qkv_bias: [(heads + 2 kv_heads) * head_dim]; q, k, v
//     gate_up_weight: [2 * feed_forward, hidden] (gate, then up)  down_weight: [hidden, feed_forward]
//     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]
//   logits: [batch, vocabulary]
#include <cuda_runtime.h>

#include "llmk/plain_layer.cuh"

constexpr int kThreads = 128, kWarps = kThreads / 32;

// Buffers between the kernels. Each has one row per sequence.
struct Work {
    float *x, *normed, *added;  // [hidden]: the residual stream; its norm; the output of a layer, to be added to it
    float *qkv, *attended;      // [(heads + 2 kv_heads) * head_dim], [heads * head_dim]
    float *gate_up, *inside;    // [2 * feed_forward], [feed_forward]
};

// Return the position of a sequence's new token; the sequence's first token has position 0.
__device__ int position_of(const int* lengths, int sequence) {
    int position = 0;
    // TODO 1: compute it from lengths, which includes the new token.
    return position;
}

// Return the offset of a position's head_dim numbers in a layer's cache. block_table: [max_pages], one sequence's row.
__device__ size_t place_of(const int* block_table, int position, int kv_head, int kv_heads, int head_dim,
                           int page_size) {
    size_t place = 0;
    // TODO 2: find the page in block_table, and the row inside the page.
    return place;
}

// Rotate the first gridDim.x heads of each row by its position, in place: channel i with channel i + head_dim / 2.
__global__ void rope(float* rows, const int* lengths, int row_size, int head_dim, float theta) {
    float* head = rows + static_cast<size_t>(blockIdx.y) * row_size + blockIdx.x * head_dim;
    const int half = head_dim / 2;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const float angle = position_of(lengths, blockIdx.y) * powf(theta, -2.0f * i / head_dim);
        const float first = head[i], second = head[i + half];
        head[i] = first * cosf(angle) - second * sinf(angle);
        head[i + half] = second * cosf(angle) + first * sinf(angle);
    }
}

// Write the key and value of each new token to a layer's cache, with one block per key/value head (gridDim.x).
// k, v: the rows of the first sequence; the rows of the next sequence are row_size elements further.
__global__ void append(const float* k, const float* v, const int* lengths, const int* block_tables, float* k_cache,
                       float* v_cache, int row_size, int head_dim, int page_size, int max_pages) {
    const size_t from = static_cast<size_t>(blockIdx.y) * row_size + blockIdx.x * head_dim;
    const size_t to = place_of(block_tables + static_cast<size_t>(blockIdx.y) * max_pages,
                               position_of(lengths, blockIdx.y), blockIdx.x, gridDim.x, head_dim, page_size);
    for (int i = threadIdx.x; i < head_dim; i += blockDim.x) {
        k_cache[to + i] = k[from + i];
        v_cache[to + i] = v[from + i];
    }
}

// Attention of each new token over all tokens of its sequence, with one warp per query head (gridDim.x) and day 6's
// online softmax.
// q: the first sequence's row, with row_size as in append. out: [batch, heads, head_dim]; head_dim is at most 128.
__global__ void attend(const float* q, const float* k_cache, const float* v_cache, const int* lengths,
                       const int* block_tables, float* out, int row_size, int kv_heads, int head_dim, int page_size,
                       int max_pages) {
    const int head = blockIdx.x, sequence = blockIdx.y, kv_head = head / (gridDim.x / kv_heads), lane = threadIdx.x;
    q += static_cast<size_t>(sequence) * row_size + head * head_dim;
    out += (static_cast<size_t>(sequence) * gridDim.x + head) * head_dim;
    float maximum = -INFINITY, sum = 0, mine[4] = {};
    for (int key = 0; key < lengths[sequence]; ++key) {
        const size_t place = place_of(block_tables + static_cast<size_t>(sequence) * max_pages, key, kv_head, kv_heads,
                                      head_dim, page_size);
        float score = 0;
        for (int i = lane; i < head_dim; i += 32) score += q[i] * k_cache[place + i];
        score = llmk::warp_sum(score) * rsqrtf(head_dim);
        const float largest = fmaxf(maximum, score), kept = expf(maximum - largest), weight = expf(score - largest);
        sum = sum * kept + weight;
        for (int i = 0; i < 4; ++i) {
            if (lane + 32 * i < head_dim) mine[i] = mine[i] * kept + weight * v_cache[place + lane + 32 * i];
        }
        maximum = largest;
    }
    for (int i = 0; i < 4; ++i) {
        if (lane + 32 * i < head_dim) out[lane + 32 * i] = mine[i] / sum;
    }
}

extern "C" void qwen2_decode(const int* ids, const int* lengths, const int* block_tables, const float* table,
                             const float* norm_1, const float* qkv_weight, const float* qkv_bias,
                             const float* out_weight, const float* norm_2, const float* gate_up_weight,
                             const float* down_weight, const float* last_norm, float* k_cache, float* v_cache,
                             float* logits, float* work, int batch, int layers, int vocabulary, int hidden, int heads,
                             int kv_heads, int head_dim, int feed_forward, int pages, int page_size, int max_pages,
                             float eps, float theta, cudaStream_t stream) {
    if (batch == 0) return;
    const int q_size = heads * head_dim, kv_size = kv_heads * head_dim, qkv_size = q_size + 2 * kv_size;
    Work w;
    w.x = work;
    w.normed = w.x + batch * hidden;
    w.added = w.normed + batch * hidden;
    w.qkv = w.added + batch * hidden;
    w.attended = w.qkv + batch * qkv_size;
    w.gate_up = w.attended + batch * q_size;
    w.inside = w.gate_up + batch * 2 * feed_forward;
    // The grids of add and swiglu (elementwise), and of linear (one warp per output).
    const auto blocks = [](int count) { return (count + kThreads - 1) / kThreads; };
    const auto products = [batch](int out_features) { return dim3((out_features + kWarps - 1) / kWarps, batch); };

    llmk::embed<<<batch, kThreads, 0, stream>>>(ids, table, w.x, hidden);
    for (int layer = 0; layer < layers; ++layer) {
        // TODO 3: x = x + attention(norm_1(x)). This layer's weights and cache follow those of the previous layers.
        // TODO:   q, k and v are one linear layer, and contiguous in a row of w.qkv.

        // TODO 4: x = x + mlp(norm_2(x)), mlp(y) = down(silu(gate(y)) * up(y)). Gate and up are one linear layer too.
    }
    // TODO 5: the last norm, and the logits: table is [vocabulary, hidden], the weight of a linear layer.
}
