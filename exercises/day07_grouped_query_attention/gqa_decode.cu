// Grouped-query attention, decode: one query per sequence against its KV cache, the keys split over blocks.
//
//   q, out: [batch, heads, head_dim]     k, v: [batch, kv_heads, max_len, head_dim]     lengths: [batch]
//   partial_out: [batch, heads, splits, head_dim]     partial_stats: [batch, heads, splits, 2], both scratch memory
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which a block owns one part of the keys of one key/value head of one sequence
// TODO:   - each key and each value is read once, 16 bytes per lane, and used for all query heads of the group
// TODO:   - it stores the result of its part without the division: largest score, sum of exponentials, weighted sum
// TODO:   - each sequence has its own length: skip parts that would begin past its end

// TODO: a kernel that combines the parts of each query head; a sequence without keys gives zeros

template <typename T>
void gqa_decode(const T* q, const T* k, const T* v, const int* lengths, T* out, float* partial_out,
                float* partial_stats, int batch, int heads, int kv_heads, int max_len, int head_dim, int splits,
                float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch both.
}

extern "C" void gqa_decode_f32(const float* q, const float* k, const float* v, const int* lengths, float* out,
                               float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                               int max_len, int head_dim, int splits, float scale, cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}

extern "C" void gqa_decode_f16(const __half* q, const __half* k, const __half* v, const int* lengths, __half* out,
                               float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                               int max_len, int head_dim, int splits, float scale, cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}

extern "C" void gqa_decode_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                const int* lengths, __nv_bfloat16* out, float* partial_out, float* partial_stats,
                                int batch, int heads, int kv_heads, int max_len, int head_dim, int splits, float scale,
                                cudaStream_t stream) {
    gqa_decode(q, k, v, lengths, out, partial_out, partial_stats, batch, heads, kv_heads, max_len, head_dim, splits,
               scale, stream);
}
