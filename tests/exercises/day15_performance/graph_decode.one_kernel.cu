// Each decode step is one kernel with one block. It appends k and v to the cache, computes the attention and increments
// the length.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"

__global__ void __launch_bounds__(1024)
    decode_step(const float* q, const float* k, const float* v, float* k_cache, float* v_cache, float* out, int* length,
                int prompt, int heads, int head_dim, float scale) {
    const int known = *length, width = heads * head_dim, lane = threadIdx.x % 32;
    const size_t own = static_cast<size_t>(known - prompt) * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        k_cache[static_cast<size_t>(known) * width + i] = k[own + i];
        v_cache[static_cast<size_t>(known) * width + i] = v[own + i];
    }
    __syncthreads();  // the new row of the cache is stored, and all threads have read *length
    if (threadIdx.x == 0) *length = known + 1;
    for (int head = threadIdx.x / 32; head < heads; head += blockDim.x / 32) {
        float largest = -INFINITY, weights = 0;
        for (int token = 0; token <= known; ++token) {
            float score = 0;
            for (int d = lane; d < head_dim; d += 32) {
                score +=
                    q[own + head * head_dim + d] * k_cache[(static_cast<size_t>(token) * heads + head) * head_dim + d];
            }
            score = llmk::warp_sum(score) * scale;
            const float m = fmaxf(largest, score);
            weights = weights * expf(largest - m) + expf(score - m);
            largest = m;
        }
        // A second pass computes the scores again and sums the values. A lane sums the columns lane, lane + 32, ...
        float sums[4] = {};
        for (int token = 0; token <= known; ++token) {
            const size_t row = (static_cast<size_t>(token) * heads + head) * head_dim;
            float score = 0;
            for (int d = lane; d < head_dim; d += 32) score += q[own + head * head_dim + d] * k_cache[row + d];
            const float weight = expf(llmk::warp_sum(score) * scale - largest) / weights;
            for (int d = lane, j = 0; d < head_dim; d += 32, ++j) sums[j] += weight * v_cache[row + d];
        }
        for (int d = lane, j = 0; d < head_dim; d += 32, ++j) out[own + head * head_dim + d] = sums[j];
    }
}

__global__ void begin(int* length, int prompt) { *length = prompt; }

extern "C" void graph_decode(const float* q, const float* k, const float* v, float* k_cache, float* v_cache, float* out,
                             int* length, int prompt, int steps, int heads, int head_dim, float scale,
                             cudaStream_t stream) {
    cudaStream_t side;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreate(&side);
    cudaStreamBeginCapture(side, cudaStreamCaptureModeRelaxed);
    decode_step<<<1, 32 * (heads < 32 ? heads : 32), 0, side>>>(q, k, v, k_cache, v_cache, out, length, prompt, heads,
                                                                head_dim, scale);
    cudaStreamEndCapture(side, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    begin<<<1, 1, 0, stream>>>(length, prompt);
    while (steps-- > 0) cudaGraphLaunch(executable, stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(side);
}
