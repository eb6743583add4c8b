// Wrong: reads every entry of the block table, and masks the keys that do not exist only afterwards.
//
//   q, out: [batch, head_dim]     k_cache: [pages, page_size, head_dim], used for keys and values     head_dim: 32
#include <cuda_runtime.h>

#include <cmath>

__global__ void paged_kernel(const float* q, const float* k_cache, const int* block_tables, const int* lengths,
                             float* out, int page_size, int max_pages) {
    const int b = blockIdx.x, lane = threadIdx.x;
    float m = -INFINITY, l = 0, o = 0;
    for (int key = 0; key < max_pages * page_size; ++key) {
        const long long page = block_tables[b * max_pages + key / page_size];
        const float x = k_cache[(page * page_size + key % page_size) * 32 + lane];
        float score = q[b * 32 + lane] * x;
        for (int reach = 16; reach > 0; reach /= 2) score += __shfl_xor_sync(0xffffffff, score, reach);
        if (key >= lengths[b]) score = -INFINITY;  // too late
        const float new_m = fmaxf(m, score);
        const float correction = expf(m - new_m), weight = expf(score - new_m);
        m = new_m;
        l = l * correction + weight;
        o = o * correction + weight * x;
    }
    out[b * 32 + lane] = o / l;
}

extern "C" void paged(const float* q, const float* k_cache, const int* block_tables, const int* lengths, float* out,
                      int batch, int page_size, int max_pages, cudaStream_t stream) {
    paged_kernel<<<batch, 32, 0, stream>>>(q, k_cache, block_tables, lengths, out, page_size, max_pages);
}
