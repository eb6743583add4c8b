// Attention of one token after another. Each step is one launch of a CUDA graph: append the key and the value, then
// attend to all tokens so far.
//
//   q, k, v, out: [steps, heads, head_dim]     k_cache, v_cache: [tokens, heads, head_dim]     length: [1]
//
// The graph is captured once and launched for each step. The code has one fault: find it from the report, and correct it.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"

constexpr int kThreads = 128;
constexpr int kEach = 4;  // elements of a head per lane, because head_dim is at most 128

// Append the step's key and value, `width` numbers each, after the first `known` tokens.
__global__ void append(const float* k, const float* v, float* k_cache, float* v_cache, int known, int prompt,
                       int width) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= width) return;
    const size_t from = static_cast<size_t>(known - prompt) * width + i, to = static_cast<size_t>(known) * width + i;
    k_cache[to] = k[from];
    v_cache[to] = v[from];
}

// One warp per head: online softmax over the first known + 1 tokens.
__global__ void attend(const float* q, const float* k_cache, const float* v_cache, float* out, int known, int prompt,
                       int heads, int head_dim, float scale) {
    const int head = blockIdx.x, lane = threadIdx.x;
    const size_t own = (static_cast<size_t>(known - prompt) * heads + head) * head_dim;  // offset in q and out
    float query[kEach] = {}, sum[kEach] = {}, largest = -INFINITY, weights = 0.0f;
    for (int j = 0; j < kEach; ++j) {
        if (lane + 32 * j < head_dim) query[j] = q[own + lane + 32 * j] * scale;
    }
    for (int token = 0; token <= known; ++token) {
        const size_t row = (static_cast<size_t>(token) * heads + head) * head_dim;
        float score = 0.0f;
        for (int j = 0; j < kEach; ++j) {
            if (lane + 32 * j < head_dim) score += query[j] * k_cache[row + lane + 32 * j];
        }
        score = llmk::warp_sum(score);
        const float before = largest;
        largest = fmaxf(largest, score);
        const float rescale = expf(before - largest), weight = expf(score - largest);
        weights = weights * rescale + weight;
        for (int j = 0; j < kEach; ++j) {
            if (lane + 32 * j < head_dim) sum[j] = sum[j] * rescale + weight * v_cache[row + lane + 32 * j];
        }
    }
    for (int j = 0; j < kEach; ++j) {
        if (lane + 32 * j < head_dim) out[own + lane + 32 * j] = sum[j] / weights;
    }
}

__global__ void set(int* to, int value) { *to = value; }

extern "C" void graph_decode(const float* q, const float* k, const float* v, float* k_cache, float* v_cache, float* out,
                             int* length, int prompt, int steps, int heads, int head_dim, float scale,
                             cudaStream_t stream) {
    const int width = heads * head_dim;
    int known = prompt;  // tokens in the caches

    // One step, captured in its own stream: nothing runs yet.
    cudaStream_t capturing;
    cudaGraph_t graph;
    cudaGraphExec_t step;
    cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking);
    cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal);
    append<<<(width + kThreads - 1) / kThreads, kThreads, 0, capturing>>>(k, v, k_cache, v_cache, known, prompt, width);
    attend<<<heads, 32, 0, capturing>>>(q, k_cache, v_cache, out, known, prompt, heads, head_dim, scale);
    cudaStreamEndCapture(capturing, &graph);
    cudaGraphInstantiate(&step, graph, 0);

    for (int i = 0; i < steps; ++i) {
        cudaGraphLaunch(step, stream);
        ++known;
    }
    set<<<1, 1, 0, stream>>>(length, known);

    cudaGraphExecDestroy(step);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(capturing);
}
