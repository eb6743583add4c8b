// Append keys and values to a paged cache: token t goes to slot slots[t].
//
//   k, v: [tokens, kv_heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     slots: [tokens]
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// TODO: a kernel that copies the row of each token and head to its slot: page slot / page_size, row slot % page_size.
// TODO:   - skip a slot outside the cache, and compute no address from it
// TODO:   - neighboring threads copy neighboring 16-byte pieces; 64-bit offsets

template <typename T>
void kv_cache_append(const T* k, const T* v, const long long* slots, T* k_cache, T* v_cache, int tokens, int kv_heads,
                     int head_dim, long long pages, int page_size, cudaStream_t stream) {
    if (tokens == 0 || kv_heads == 0 || head_dim == 0) return;
    // TODO: launch it.
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
