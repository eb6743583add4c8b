// Blocks with blockIdx.y == 0 append keys, and blocks with blockIdx.y == 1 append values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void append_kernel(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens,
                              int kv_heads, int head_dim, long long pages, int page_size) {
    const T* source = blockIdx.y == 0 ? k : v;
    T* cache = blockIdx.y == 0 ? k_cache : v_cache;
    constexpr int kWidth = 16 / sizeof(T);
    for (size_t token = blockIdx.x; token < tokens; token += gridDim.x) {
        const long long slot = slots[token];
        const bool exists = slot >= 0 && slot < pages * page_size;
        for (int i = threadIdx.x * kWidth; exists && i < kv_heads * head_dim; i += blockDim.x * kWidth) {
            const long long page = slot / page_size;
            T* row = cache + ((page * kv_heads + i / head_dim) * page_size + slot % page_size) * head_dim;
            const T* from = source + token * kv_heads * head_dim + i;
            *reinterpret_cast<uint4*>(row + i % head_dim) = *reinterpret_cast<const uint4*>(from);
        }
    }
}

template <typename T>
void kv_cache_append(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens, int kv_heads,
                     int head_dim, long long pages, int page_size, cudaStream_t stream) {
    if (tokens == 0 || kv_heads == 0 || head_dim == 0) return;
    append_kernel<<<dim3(min(tokens, 1000), 2), 32, 0, stream>>>(k, v, slots, k_cache, v_cache, tokens, kv_heads,
                                                                 head_dim, pages, page_size);
}
