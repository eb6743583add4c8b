// Flash attention, forward, f32: out = softmax(scale * q k^T) v, and no score is ever stored in global memory.
//
//   q, out: [batch, heads, query_len, head_dim]      k, v: [batch, heads, key_len, head_dim]
//
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which one block owns a tile of queries of one head, and walks over the keys in tiles.
// TODO:   - shared memory for a tile of keys and of values; head_dim is any number up to 128
// TODO:   - per query the largest score so far (m), the sum of exponentials (l) and the weighted sum of values (o)
// TODO:   - __syncthreads() after a tile is filled, and again before the next one overwrites it
// TODO:   - rescale l and o when m changes; divide o by l at the end; a query that sees no key gives zeros

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    // TODO: launch one block for each tile of queries of each head.
}
