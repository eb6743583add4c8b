// Flash attention, backward, f32: dq, dk, dv from q, k, v, out, dout and the saved lse, in O(N) memory.
//
//   q, out, dout, dq: [batch, heads, query_len, head_dim]      k, v, dk, dv: [batch, heads, key_len, head_dim]
//   lse, delta:       [batch, heads, query_len]                lse = log(sum over keys of exp(scale * score))
//
//   P = exp(scale * Q K^T - lse)      dV = P^T dO      dP = dO V^T      delta = row sums of dO * O
//   dS = P * (dP - delta)             dQ = scale * dS K                 dK = scale * dS^T Q
//
// The N x M matrices P and dS are recomputed tile by tile: once by blocks that own keys,
// for dk and dv, and once by blocks that own queries, for dq. Every output has one owner, which adds in a fixed order.
// So the kernel needs no atomics, and every run gives the same bits.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/vector.cuh"

constexpr int kTile = 64;  // rows (queries or keys) of a tile
// A block owns the rows of one tile, and loads other rows (keys for queries, queries for keys) tile by tile. Its
// threads form a square of kSide x kSide: ty counts along the owned rows, tx along the other rows, or along columns of
// outputs.
constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;
constexpr int kEach = kTile / kSide;     // a thread computes products of kEach owned rows with kEach other rows
constexpr int kWeightPitch = kTile + 4;  // 4 floats more, so that neighboring rows lie in different banks

struct Sizes {
    int query_len, key_len, head_dim;
    float scale;
    bool causal;
    bool vectors;  // every row starts at a multiple of 16 bytes
};

// Copy up to 64 rows into a tile; rows past the end become zero.
template <int DIM>
__device__ void load_rows(float (*tile)[DIM + 4], const float* rows, int count, const Sizes& n) {
    if (n.vectors) {
#pragma unroll 4
        for (int i = threadIdx.x; i < kTile * DIM / 4; i += kThreads) {
            const int row = i / (DIM / 4), column = i % (DIM / 4) * 4;
            const bool exists = row < count && column < n.head_dim;
            const auto* from = reinterpret_cast<const float4*>(rows + static_cast<size_t>(row) * n.head_dim + column);
            *reinterpret_cast<float4*>(&tile[row][column]) = exists ? *from : make_float4(0, 0, 0, 0);
        }
    } else {
        for (int i = threadIdx.x; i < kTile * DIM; i += kThreads) {
            const int row = i / DIM, column = i % DIM;
            const bool exists = row < count && column < n.head_dim;
            tile[row][column] = exists ? rows[static_cast<size_t>(row) * n.head_dim + column] : 0.0f;
        }
    }
}

// Return sum + a . b, as four multiply-adds. The expression a.x * b.x + a.y * b.y + ... would compile to more
// operations.
__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
    return sum;
}

// Compute products[i][j] = own row (4 ty + i) . other row (tx + 16 j).
template <int DIM>
__device__ __forceinline__ void dot_rows(float (&products)[kEach][kEach], const float (*own)[DIM + 4],
                                         const float (*other)[DIM + 4]) {
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) products[i][j] = 0;
    }
#pragma unroll 4
    for (int d = 0; d < DIM; d += 4) {
        float4 b[kEach];
#pragma unroll
        for (int j = 0; j < kEach; ++j) b[j] = *reinterpret_cast<const float4*>(&other[tx + kSide * j][d]);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const float4 a = *reinterpret_cast<const float4*>(&own[kEach * ty + i][d]);
#pragma unroll
            for (int j = 0; j < kEach; ++j) products[i][j] = dot(a, b[j], products[i][j]);
        }
    }
}

// Add weights[own row 4 ty + i][r] * other[r][column c of this thread] to sums[i][c], for all other rows r.
template <int DIM>
__device__ __forceinline__ void add_weighted_rows(float (&sums)[kEach][DIM / kSide],
                                                  const float (*weights)[kWeightPitch], const float (*other)[DIM + 4]) {
    constexpr int kColumns = DIM / kSide;
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll 4
    for (int r = 0; r < kTile; ++r) {
        float row[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) row[c] = other[r][tx + kSide * c];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const float weight = weights[kEach * ty + i][r];
#pragma unroll
            for (int c = 0; c < kColumns; ++c) sums[i][c] += weight * row[c];
        }
    }
}

// Write the thread's sums, times `factor`, to up to `count` rows.
template <int DIM>
__device__ __forceinline__ void store_rows(float* rows, const float (&sums)[kEach][DIM / kSide], float factor,
                                           int count, int head_dim) {
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        const int row = kEach * ty + i;
#pragma unroll
        for (int c = 0; c < DIM / kSide; ++c) {
            const int column = tx + kSide * c;
            if (row < count && column < head_dim)
                rows[static_cast<size_t>(row) * head_dim + column] = sums[i][c] * factor;
        }
    }
}

__device__ __forceinline__ bool visible(int query, int key, const Sizes& n) {
    return query < n.query_len && key < n.key_len &&
           (!n.causal || key <= query + static_cast<long long>(n.key_len) - n.query_len);
}

// Compute delta[row] = dout[row] . out[row], with one warp per row.
__global__ void sum_products(const float* dout, const float* out, float* delta, long long rows, int head_dim) {
    const long long row = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const int lane = threadIdx.x % 32;
    float sum = 0;
    for (int d = lane; d < head_dim; d += 32) sum += dout[row * head_dim + d] * out[row * head_dim + d];
    sum = llmk::warp_sum(sum);
    if (lane == 0) delta[row] = sum;
}

// Shared memory of a block: its own rows, a tile of the other rows, and the weights of the 64 x 64 pairs.
template <int DIM>
struct Tiles {
    float own[kTile][DIM + 4], own_gradient[kTile][DIM + 4];      // q and dout, or k and v
    float other[kTile][DIM + 4], other_gradient[kTile][DIM + 4];  // k and v, or q and dout
    float p[kTile][kWeightPitch], ds[kTile][kWeightPitch];        // [own row][other row]
    float lse[kTile], delta[kTile];
};

template <int DIM>
__device__ __forceinline__ void load_statistics(Tiles<DIM>& tiles, const float* lse, const float* delta, int count) {
    if (threadIdx.x < kTile) {
        const bool exists = static_cast<int>(threadIdx.x) < count;
        tiles.lse[threadIdx.x] = exists ? lse[threadIdx.x] : 0;
        tiles.delta[threadIdx.x] = exists ? delta[threadIdx.x] : 0;
    }
}

// Compute dk and dv of 64 keys: walk over the queries that see any of them.
template <int DIM>
__global__ void __launch_bounds__(kThreads)
    key_gradients(const float* q, const float* k, const float* v, const float* dout, const float* lse,
                  const float* delta, float* dk, float* dv, Sizes n) {
    extern __shared__ float4 shared[];
    auto& tiles = *reinterpret_cast<Tiles<DIM>*>(shared);
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
    const int key_tiles = (n.key_len + kTile - 1) / kTile;
    const int first_key = static_cast<int>(blockIdx.x % key_tiles) * kTile;
    const size_t head = blockIdx.x / key_tiles;
    const int keys = min(kTile, n.key_len - first_key);
    const size_t key_start = (head * n.key_len + first_key) * n.head_dim;
    load_rows<DIM>(tiles.own, k + key_start, keys, n);
    load_rows<DIM>(tiles.own_gradient, v + key_start, keys, n);

    float dk_sums[kEach][DIM / kSide] = {}, dv_sums[kEach][DIM / kSide] = {};
    // Causal: query i sees keys up to i + key_len - query_len, so query j - key_len + query_len is the first that sees
    // key j.
    const long long seen_from = n.causal ? static_cast<long long>(first_key) - n.key_len + n.query_len : 0;
    const int start = static_cast<int>(max(0LL, seen_from)) / kTile * kTile;
    for (int first_query = start; first_query < n.query_len; first_query += kTile) {
        const int queries = min(kTile, n.query_len - first_query);
        const size_t row = head * n.query_len + first_query;
        __syncthreads();  // all threads have used the previous tile
        load_rows<DIM>(tiles.other, q + row * n.head_dim, queries, n);
        load_rows<DIM>(tiles.other_gradient, dout + row * n.head_dim, queries, n);
        load_statistics(tiles, lse + row, delta + row, queries);
        __syncthreads();

        float s[kEach][kEach], dp[kEach][kEach];
        dot_rows<DIM>(s, tiles.own, tiles.other);                     // S^T = K Q^T
        dot_rows<DIM>(dp, tiles.own_gradient, tiles.other_gradient);  // dP^T = V dO^T
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const int key = kEach * ty + i, query = tx + kSide * j;
                const bool counts = visible(first_query + query, first_key + key, n);
                const float p = counts ? expf(n.scale * s[i][j] - tiles.lse[query]) : 0.0f;
                tiles.p[key][query] = p;
                tiles.ds[key][query] = p * (dp[i][j] - tiles.delta[query]);
            }
        }
        __syncwarp();  // the 16 threads that share rows of P and dS are lanes of one warp
        add_weighted_rows<DIM>(dv_sums, tiles.p, tiles.other_gradient);  // dV += P^T dO
        add_weighted_rows<DIM>(dk_sums, tiles.ds, tiles.other);          // dK += dS^T Q
    }
    store_rows<DIM>(dk + key_start, dk_sums, n.scale, keys, n.head_dim);
    store_rows<DIM>(dv + key_start, dv_sums, 1.0f, keys, n.head_dim);
}

// Compute dq of 64 queries: walk over the keys that any of them sees.
template <int DIM>
__global__ void __launch_bounds__(kThreads)
    query_gradients(const float* q, const float* k, const float* v, const float* dout, const float* lse,
                    const float* delta, float* dq, Sizes n) {
    extern __shared__ float4 shared[];
    auto& tiles = *reinterpret_cast<Tiles<DIM>*>(shared);
    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
    const int query_tiles = (n.query_len + kTile - 1) / kTile;
    const int first_query = static_cast<int>(blockIdx.x % query_tiles) * kTile;
    const size_t head = blockIdx.x / query_tiles;
    const int queries = min(kTile, n.query_len - first_query);
    const size_t row = head * n.query_len + first_query;
    load_rows<DIM>(tiles.own, q + row * n.head_dim, queries, n);
    load_rows<DIM>(tiles.own_gradient, dout + row * n.head_dim, queries, n);
    load_statistics(tiles, lse + row, delta + row, queries);

    float dq_sums[kEach][DIM / kSide] = {};
    const long long seen = static_cast<long long>(first_query) + queries + n.key_len - n.query_len;
    const int end = n.causal ? static_cast<int>(max(0LL, seen)) : n.key_len;
    for (int first_key = 0; first_key < end; first_key += kTile) {
        const int keys = min(kTile, n.key_len - first_key);
        const size_t key_start = (head * n.key_len + first_key) * n.head_dim;
        __syncthreads();
        load_rows<DIM>(tiles.other, k + key_start, keys, n);
        load_rows<DIM>(tiles.other_gradient, v + key_start, keys, n);
        __syncthreads();

        float s[kEach][kEach], dp[kEach][kEach];
        dot_rows<DIM>(s, tiles.own, tiles.other);                     // S = Q K^T
        dot_rows<DIM>(dp, tiles.own_gradient, tiles.other_gradient);  // dP = dO V^T
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const int query = kEach * ty + i, key = tx + kSide * j;
                const bool counts = visible(first_query + query, first_key + key, n);
                const float p = counts ? expf(n.scale * s[i][j] - tiles.lse[query]) : 0.0f;
                tiles.ds[query][key] = p * (dp[i][j] - tiles.delta[query]);
            }
        }
        __syncwarp();
        add_weighted_rows<DIM>(dq_sums, tiles.ds, tiles.other);  // dQ += dS K
    }
    store_rows<DIM>(dq + row * n.head_dim, dq_sums, n.scale, queries, n.head_dim);
}

template <int DIM>
void launch(const float* q, const float* k, const float* v, const float* dout, const float* lse, const float* delta,
            float* dq, float* dk, float* dv, int all_heads, const Sizes& n, cudaStream_t stream) {
    constexpr size_t kBytes = sizeof(Tiles<DIM>);
    cudaFuncSetAttribute(key_gradients<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    cudaFuncSetAttribute(query_gradients<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    const int key_blocks = all_heads * ((n.key_len + kTile - 1) / kTile);
    const int query_blocks = all_heads * ((n.query_len + kTile - 1) / kTile);
    if (key_blocks > 0) {
        key_gradients<DIM><<<key_blocks, kThreads, kBytes, stream>>>(q, k, v, dout, lse, delta, dk, dv, n);
    }
    if (query_blocks > 0) {
        query_gradients<DIM><<<query_blocks, kThreads, kBytes, stream>>>(q, k, v, dout, lse, delta, dq, n);
    }
}

extern "C" void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                                         const float* dout, const float* lse, float* delta, float* dq, float* dk,
                                         float* dv, int batch, int heads, int query_len, int key_len, int head_dim,
                                         float scale, bool causal, cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    if (rows > 0) sum_products<<<(rows + 7) / 8, 256, 0, stream>>>(dout, out, delta, rows, head_dim);
    const auto launch_for = head_dim <= 32 ? launch<32> : head_dim <= 64 ? launch<64> : launch<128>;
    const bool vectors = llmk::rows_are_aligned(head_dim, q, k, v, dout);
    const Sizes sizes{query_len, key_len, head_dim, scale, causal, vectors};
    launch_for(q, k, v, dout, lse, delta, dq, dk, dv, batch * heads, sizes, stream);
}
