// A graph with two branches: keys and values are appended in parallel, and the length is incremented before the
// attention.
#include <cuda_runtime.h>

#include <cmath>

// Copies the row of this step from `from` to the cache. *length is the number of tokens in the cache.
__global__ void put(const float* from, float* cache, const int* length, int prompt, int width) {
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        cache[static_cast<size_t>(*length) * width + i] = from[static_cast<size_t>(*length - prompt) * width + i];
    }
}

__global__ void count(int* length) { *length += 1; }
__global__ void start(int* length, int prompt) { *length = prompt; }

// Each thread computes one column of the head; all threads of the block together compute each score. *length already
// counts this token.
__global__ void attend(const float* q, const float* k_cache, const float* v_cache, float* out, const int* length,
                       int prompt, int heads, int head_dim, float scale) {
    __shared__ float products[128];
    const int tokens = *length, head = blockIdx.x, d = threadIdx.x;
    const size_t own = (static_cast<size_t>(tokens - 1 - prompt) * heads + head) * head_dim + d;
    float m = -INFINITY, l = 0, o = 0;
    for (int token = 0; token < tokens; ++token) {
        const size_t at = (static_cast<size_t>(token) * heads + head) * head_dim + d;
        products[d] = d < head_dim ? q[own] * k_cache[at] : 0.0f;
        for (int half = 64; half > 0; half /= 2) {
            __syncthreads();
            if (d < half) products[d] += products[d + half];
        }
        __syncthreads();
        const float score = products[0] * scale, larger = fmaxf(m, score);
        __syncthreads();
        const float old = expf(m - larger), weight = expf(score - larger);
        m = larger;
        l = l * old + weight;
        if (d < head_dim) o = o * old + weight * v_cache[at];
    }
    if (d < head_dim) out[own] = o / l;
}

extern "C" void graph_decode(const float* q, const float* k, const float* v, float* k_cache, float* v_cache, float* out,
                             int* length, int prompt, int steps, int heads, int head_dim, float scale,
                             cudaStream_t stream) {
    const int width = heads * head_dim;
    cudaStream_t main, side;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(fork, main);
    cudaStreamWaitEvent(side, fork, 0);
    put<<<1, 256, 0, main>>>(k, k_cache, length, prompt, width);
    put<<<1, 256, 0, side>>>(v, v_cache, length, prompt, width);
    cudaEventRecord(join, side);
    cudaStreamWaitEvent(main, join, 0);
    count<<<1, 1, 0, main>>>(length);
    attend<<<heads, 128, 0, main>>>(q, k_cache, v_cache, out, length, prompt, heads, head_dim, scale);
    cudaStreamEndCapture(main, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    start<<<1, 1, 0, stream>>>(length, prompt);
    for (int i = 0; i < steps; ++i) cudaGraphLaunch(executable, stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaStreamDestroy(side);
    cudaStreamDestroy(main);
}
