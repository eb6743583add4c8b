// A step of decoding with a KV cache in e4m3: quantize the new key and value, append them, and attend to all tokens.
//
//   q, out: [batch, heads, head_dim]     k_new, v_new: [batch, kv_heads, head_dim]
//   lengths: [batch], the numbers of tokens before the step
//   k_cache, v_cache: [batch, kv_heads, max_length, head_dim]     k_scales, v_scales: [batch, kv_heads, max_length]
//   parts: [splits, batch * heads, head_dim + 2], for each part of the keys its output, its maximum and its sum
//
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

// TODO: a kernel that quantizes and appends, and one that attends; or one kernel for both steps
// TODO:   - a block for each sequence, key head and part of the keys: its query heads share each key
// TODO:   - the scale of a key multiplies its score, the scale of a value its probability
// TODO:   - online softmax over the part; combine the parts at the end

extern "C" void fp8_kv_cache(const __nv_bfloat16* q, const __nv_bfloat16* k_new, const __nv_bfloat16* v_new,
                             const int* lengths, unsigned char* k_cache, unsigned char* v_cache, float* k_scales,
                             float* v_scales, float* parts, __nv_bfloat16* out, int batch, int heads, int kv_heads,
                             int head_dim, int max_length, int splits, float scale, cudaStream_t stream) {
    if (batch == 0) return;
    // TODO: launch them.
}
