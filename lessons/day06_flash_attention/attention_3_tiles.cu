// Version 3, tiles: the queries of a block share each tile of keys and values through shared memory.
//
// A tile of 16 keys is fetched once for 64 queries, where version 2 fetched it once per warp. The scores of a tile are
// in registers. The maximum, and with it the correction, moves once per tile instead of once per key.
//
//   q, out: [heads, query_len, DIM]     k, v: [heads, key_len, DIM]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 64;  // queries of a block: one for each thread
constexpr int kKeys = 16;     // keys of a tile

// Copies rows of DIM floats into a tile with all threads of the block. Rows past the last one become zeros.
template <int DIM>
__device__ void load_tile(float4 (*tile)[DIM / 4], const float* rows, int count) {
    for (int i = threadIdx.x; i < kKeys * DIM / 4; i += kQueries) {
        const int row = i / (DIM / 4), chunk = i % (DIM / 4);
        tile[row][chunk] = row < count ? reinterpret_cast<const float4*>(rows)[i] : make_float4(0, 0, 0, 0);
    }
}

// sum + a . b as four multiply-adds. As one expression, a.x * b.x + a.y * b.y + ..., it would be six
// operations.
__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
    return sum;
}

template <int DIM>
__global__ void attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len,
                       float scale, bool causal) {
    __shared__ float4 k_tile[kKeys][DIM / 4];
    __shared__ float4 v_tile[kKeys][DIM / 4];

    const int first_query = blockIdx.x * kQueries;
    const int query = first_query + threadIdx.x;
    const size_t head = blockIdx.y;
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

    // This query sees the keys before `visible`. No query of the block sees `block_visible` or a later key, so the
    // block skips the tiles from there on. Under a causal mask that skips about half of all tiles.
    const int visible = causal ? query + key_len - query_len + 1 : key_len;
    const int block_visible = causal ? min(first_query + kQueries, query_len) + key_len - query_len : key_len;

    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();  // all threads have used the previous tile
        load_tile<DIM>(k_tile, k + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        load_tile<DIM>(v_tile, v + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        __syncthreads();  // the tile is complete

        float s[kKeys];
        float new_m = m;
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
            float sum = 0;
            for (int c = 0; c < DIM / 4; ++c) sum = dot(q_row[c], k_tile[j][c], sum);
            s[j] = first_key + j < visible ? sum * scale : -INFINITY;
            new_m = fmaxf(new_m, s[j]);
        }

        const float base = new_m == -INFINITY ? 0.0f : new_m;  // before the first visible key, -inf - -inf would be NaN
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

    if (query >= query_len) return;
    const float inverse = l > 0 ? 1 / l : 0.0f;
    for (int c = 0; c < DIM / 4; ++c) {
        reinterpret_cast<float4*>(out)[c] =
            make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}

extern "C" void attention(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                          int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, heads);
    const auto kernel = head_dim == 32 ? attend<32> : attend<64>;
    kernel<<<grid, kQueries, 0, stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}
