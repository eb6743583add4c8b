// Append keys and values to a paged cache: token t goes to slot slots[t].
//
//   k, v: [tokens, kv_heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     slots: [tokens]
//
// Slot s is row s % page_size of page s / page_size, for every head. A block copies one token. A thread copies 16 bytes
// at a time, so neighboring threads read neighboring bytes and write whole rows of head_dim elements.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kMostThreads = 256;

template <typename T>
__global__ void append_kernel(const T* __restrict__ k, const T* __restrict__ v, const long long* __restrict__ slots,
                              T* __restrict__ k_cache, T* __restrict__ v_cache, int kv_heads, int head_dim,
                              long long pages, int page_size) {
    constexpr int kWidth = 16 / sizeof(T);  // elements per piece
    const long long token = blockIdx.x;
    const long long slot = slots[token];
    if (slot < 0 || slot >= pages * page_size) return;  // the token is padding
    const long long page = slot / page_size, offset = slot % page_size;
    const int pieces = head_dim / kWidth;  // pieces per head
    for (int i = threadIdx.x; i < kv_heads * pieces; i += blockDim.x) {
        const int head = i / pieces, column = i % pieces * kWidth;
        const long long from = (token * kv_heads + head) * head_dim + column;
        const long long to = ((page * kv_heads + head) * page_size + offset) * head_dim + column;
        *reinterpret_cast<uint4*>(k_cache + to) = *reinterpret_cast<const uint4*>(k + from);
        *reinterpret_cast<uint4*>(v_cache + to) = *reinterpret_cast<const uint4*>(v + from);
    }
}

template <typename T>
void kv_cache_append(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens, int kv_heads,
                     int head_dim, long long pages, int page_size, cudaStream_t stream) {
    if (tokens == 0 || kv_heads == 0 || head_dim == 0) return;
    const int pieces = kv_heads * head_dim * static_cast<int>(sizeof(T)) / 16;  // pieces per token, in k and also in v
    const int threads = pieces < kMostThreads ? (pieces + 31) / 32 * 32 : kMostThreads;
    append_kernel<<<tokens, threads, 0, stream>>>(k, v, slots, k_cache, v_cache, kv_heads, head_dim, pages, page_size);
}

extern "C" void kv_cache_append_f32(const float* k, const float* v, const long long* slots, float* k_cache,
                                    float* v_cache, int tokens, int kv_heads, int head_dim, long long pages,
                                    int page_size, cudaStream_t stream) {
    kv_cache_append(k, v, slots, k_cache, v_cache, tokens, kv_heads, head_dim, pages, page_size, stream);
}

extern "C" void kv_cache_append_f16(const __half* k, const __half* v, const long long* slots, __half* k_cache,
                                    __half* v_cache, int tokens, int kv_heads, int head_dim, long long pages,
                                    int page_size, cudaStream_t stream) {
    kv_cache_append(k, v, slots, k_cache, v_cache, tokens, kv_heads, head_dim, pages, page_size, stream);
}

extern "C" void kv_cache_append_bf16(const __nv_bfloat16* k, const __nv_bfloat16* v, const long long* slots,
                                     __nv_bfloat16* k_cache, __nv_bfloat16* v_cache, int tokens, int kv_heads,
                                     int head_dim, long long pages, int page_size, cudaStream_t stream) {
    kv_cache_append(k, v, slots, k_cache, v_cache, tokens, kv_heads, head_dim, pages, page_size, stream);
}
