// A grid-stride loop over all tokens. Each step copies 16 bytes of k and 16 bytes of v.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void append_kernel(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens,
                              int kv_heads, int head_dim, long long pages, int page_size) {
    const int width = 16 / sizeof(T), row = head_dim / width;
    const long long total = static_cast<long long>(tokens) * kv_heads * row;
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < total;
         i += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long token = i / (kv_heads * row), slot = slots[token];
        if (slot < 0 || slot >= pages * page_size) continue;
        const long long head = i / row % kv_heads;
        const long long target = (slot / page_size * kv_heads + head) * page_size + slot % page_size;
        reinterpret_cast<uint4*>(k_cache)[target * row + i % row] = reinterpret_cast<const uint4*>(k)[i];
        reinterpret_cast<uint4*>(v_cache)[target * row + i % row] = reinterpret_cast<const uint4*>(v)[i];
    }
}

template <typename T>
void kv_cache_append(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens, int kv_heads,
                     int head_dim, long long pages, int page_size, cudaStream_t stream) {
    if (tokens == 0 || kv_heads == 0 || head_dim == 0) return;
    append_kernel<<<64, 256, 0, stream>>>(k, v, slots, k_cache, v_cache, tokens, kv_heads, head_dim, pages, page_size);
}
