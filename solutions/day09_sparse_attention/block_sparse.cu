// Block-sparse attention, f32: each block of queries sees the blocks of keys that a CSR list names.
//
// A block of threads owns a block of queries, one thread each, and walks over its list. It fetches each listed tile of
// keys once for all its queries; an unlisted tile costs nothing.
//
//   q, out: [batch, heads, query_len, DIM]     k, v: [batch, heads, key_len, DIM]     DIM: 4, 8, 32 or 64
//   offsets: [ceil(query_len / block) + 1]
//   indices: the key blocks of query block b are entries offsets[b] ... offsets[b + 1] - 1
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/softmax.cuh"

constexpr int kKeys = 16;  // keys per tile; a block of keys is one or several tiles

template <int DIM>
__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int query_len, int key_len, int block, bool causal, float scale) {
    __shared__ float4 k_tile[kKeys][DIM / 4];
    __shared__ float4 v_tile[kKeys][DIM / 4];
    const int first_query = blockIdx.x * block;
    const int query = first_query + threadIdx.x;
    const long long head = blockIdx.y;
    q += (head * query_len + query) * DIM;
    out += (head * query_len + query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;

    float4 q_row[DIM / 4], o[DIM / 4];
    for (int c = 0; c < DIM / 4; ++c) {
        q_row[c] = query < query_len ? reinterpret_cast<const float4*>(q)[c] : make_float4(0, 0, 0, 0);
        o[c] = make_float4(0, 0, 0, 0);
    }
    float m = -INFINITY, l = 0;
    const int visible = causal ? min(query + key_len - query_len + 1, key_len) : key_len;
    const int block_visible = causal ? min(first_query + block + key_len - query_len, key_len) : key_len;

    for (int e = offsets[blockIdx.x]; e < offsets[blockIdx.x + 1]; ++e) {
        const int first_of_block = indices[e] * block, last = min(first_of_block + block, block_visible);
        for (int first_key = first_of_block; first_key < last; first_key += kKeys) {
            __syncthreads();  // all threads are done with the previous tile
            for (int i = threadIdx.x; i < kKeys * DIM / 4; i += block) {
                const int row = i / (DIM / 4), chunk = i % (DIM / 4);
                const long long from = static_cast<long long>(first_key + row) * (DIM / 4) + chunk;
                const bool exists = first_key + row < key_len;
                k_tile[row][chunk] = exists ? reinterpret_cast<const float4*>(k)[from] : make_float4(0, 0, 0, 0);
                v_tile[row][chunk] = exists ? reinterpret_cast<const float4*>(v)[from] : make_float4(0, 0, 0, 0);
            }
            __syncthreads();  // the tile has arrived

            float s[kKeys];
            float new_m = m;
#pragma unroll
            for (int j = 0; j < kKeys; ++j) {
                float sum = 0;
                for (int c = 0; c < DIM / 4; ++c) {
                    const float4 key = k_tile[j][c];
                    sum += q_row[c].x * key.x + q_row[c].y * key.y + q_row[c].z * key.z + q_row[c].w * key.w;
                }
                s[j] = first_key + j < visible ? sum * scale : -INFINITY;
                new_m = fmaxf(new_m, s[j]);
            }
            const float base = llmk::finite_max_or_zero(new_m);
            const float correction = expf(m - base);
            m = new_m;
            l *= correction;
            for (int c = 0; c < DIM / 4; ++c) {
                o[c].x *= correction, o[c].y *= correction, o[c].z *= correction, o[c].w *= correction;
            }
#pragma unroll
            for (int j = 0; j < kKeys; ++j) {
                const float p = expf(s[j] - base);
                l += p;
                for (int c = 0; c < DIM / 4; ++c) {
                    const float4 value = v_tile[j][c];
                    o[c].x += p * value.x, o[c].y += p * value.y, o[c].z += p * value.z, o[c].w += p * value.w;
                }
            }
        }
    }

    if (query >= query_len) return;
    const float inverse = llmk::reciprocal_or_zero(l);
    for (int c = 0; c < DIM / 4; ++c) {
        reinterpret_cast<float4*>(out)[c] =
            make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}

extern "C" void block_sparse(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                             float* out, int batch, int heads, int query_len, int key_len, int head_dim, int block,
                             bool causal, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + block - 1) / block, batch * heads);
    const auto kernel = head_dim == 4    ? attend<4>
                        : head_dim == 8  ? attend<8>
                        : head_dim == 32 ? attend<32>
                                         : attend<64>;
    kernel<<<grid, block, 0, stream>>>(q, k, v, offsets, indices, out, query_len, key_len, block, causal, scale);
}
