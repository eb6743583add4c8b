// One step of a whole Qwen2: a token of each sequence goes in, what the model makes of it for the next one comes out. The
// kernels are given, each plain and right. What is asked for is the wiring: where the new token stands, where its key and value
// go, and which kernel reads what.
//
//   ids, lengths: [batch]; lengths counts the new token      block_tables: [batch, max_pages]
//   table: [vocabulary, hidden], which also gives the logits      last_norm: [hidden]
//   of each layer, all layers one behind the other:
//     norm_1, norm_2: [hidden]                                    out_weight: [hidden, heads * head_dim]
//     qkv_weight: [(heads + 2 kv_heads) * head_dim, hidden]       qkv_bias: as many      (q, then k, then v)
//     gate_up_weight: [2 * feed_forward, hidden] (gate, then up)  down_weight: [hidden, feed_forward]
//     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]
//   logits: [batch, vocabulary]
#include <cuda_runtime.h>

#include "llmk/plain_layer.cuh"

constexpr int kThreads = 128, kWarps = kThreads / 32;

// What lies between two kernels. Each has a row for every sequence.
struct Work {
    float *x, *normed, *added;  // [hidden]: the residual stream; a norm of it; what is to be added to it
    float *qkv, *attended;      // [(heads + 2 kv_heads) * head_dim], [heads * head_dim]
    float *gate_up, *inside;    // [2 * feed_forward], [feed_forward]
};

// The position of a sequence's new token in its text: the first token has position 0.
__device__ int position_of(const int* lengths, int sequence) {
    int position = 0;
    // TODO 1: lengths counts the new token.
    return position;
}

// Where in a layer's cache the head_dim numbers of a position begin. block_table: [max_pages], of this sequence.
__device__ size_t place_of(const int* block_table, int position, int kv_head, int kv_heads, int head_dim,
                           int page_size) {
    size_t place = 0;
    // TODO 2: the page is block_table's, the place in it is what is left.
    return place;
}

// Turns the first gridDim.x heads of each row by its position, in place: channel i with channel i + head_dim / 2.
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

// The key and the value of each new token into a layer's cache: a block for each of the gridDim.x key/value heads.
// k, v: those of the first sequence; the next ones are row_size further on.
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

// Attention of each new token to all tokens of its sequence: a warp for each of the gridDim.x query heads, with day 6's
// running maximum and sum. q: as k in append. out: [batch, heads, head_dim]; head_dim is at most 128.
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
    // Grids of add and swiglu, and of linear.
    const auto blocks = [](int count) { return (count + kThreads - 1) / kThreads; };
    const auto products = [batch](int out_features) { return dim3((out_features + kWarps - 1) / kWarps, batch); };

    llmk::embed<<<batch, kThreads, 0, stream>>>(ids, table, w.x, hidden);
    for (int layer = 0; layer < layers; ++layer) {
        // TODO 3: x = x + attention(norm_1(x)). The weights of this layer, and its cache, lie behind those of the layers before
        // it. q, k and v are one product, and lie side by side in a row of w.qkv.

        // TODO 4: x = x + mlp(norm_2(x)), mlp(y) = down(silu(gate(y)) * up(y)). Gate and up are one product as well.
    }
    // TODO 5: the last norm, and the logits: table is [vocabulary, hidden], the weight of a linear layer.
}
