// Sliding-window attention, f16 or bf16: query i sees the `window` keys that end with its own position.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel, template <typename T>, that skips the tiles of keys that none of its queries sees.

template <typename T>
void sliding_window(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                    int head_dim, int window, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    // TODO: launch one block for each tile of queries of each head.
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
extern "C" void sliding_window_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch, int heads,
                                   int query_len, int key_len, int head_dim, int window, float scale,
                                   cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

extern "C" void sliding_window_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                    __nv_bfloat16* out, int batch, int heads, int query_len, int key_len, int head_dim,
                                    int window, float scale, cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}
