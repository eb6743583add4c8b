// One thread per query computes delta and dq, and one thread per key computes dk and dv. Shared memory holds a tile of
// the keys that a query needs, or of the queries that a key needs.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kRows = 64;
constexpr int kTile = 16;

__device__ bool sees(int query, int key, int query_len, int key_len, bool causal) {
    return query < query_len && key < key_len && (!causal || key - key_len <= query - query_len);
}

// Fills a tile with `count` rows. The remaining rows and columns become zero.
template <int DIM>
__device__ void fill(float (*tile)[DIM], const float* rows, int count, int head_dim) {
    for (int i = threadIdx.x; i < kTile * DIM; i += kRows) {
        const int row = i / DIM, d = i % DIM;
        tile[row][d] = row < count && d < head_dim ? rows[static_cast<size_t>(row) * head_dim + d] : 0.0f;
    }
}

template <int DIM>
__global__ void of_queries(const float* q, const float* k, const float* v, const float* out, const float* dout,
                           const float* lse, float* delta, float* dq, int query_len, int key_len, int head_dim,
                           float scale, bool causal) {
    __shared__ float k_tile[kTile][DIM], v_tile[kTile][DIM];
    const size_t head = blockIdx.y;
    const int query = blockIdx.x * kRows + threadIdx.x;
    const bool exists = query < query_len;
    const size_t row = head * query_len + query;
    float q_row[DIM], dout_row[DIM], sums[DIM], d_row = 0;
    for (int d = 0; d < DIM; ++d) {
        q_row[d] = exists && d < head_dim ? q[row * head_dim + d] : 0.0f;
        dout_row[d] = exists && d < head_dim ? dout[row * head_dim + d] : 0.0f;
        sums[d] = 0;
        if (exists && d < head_dim) d_row += dout_row[d] * out[row * head_dim + d];
    }
    const float lse_row = exists ? lse[row] : 0.0f;
    if (exists) delta[row] = d_row;
    for (int first = 0; first < key_len; first += kTile) {
        __syncthreads();
        fill<DIM>(k_tile, k + (head * key_len + first) * head_dim, key_len - first, head_dim);
        fill<DIM>(v_tile, v + (head * key_len + first) * head_dim, key_len - first, head_dim);
        __syncthreads();
        for (int j = 0; j < kTile; ++j) {
            if (!sees(query, first + j, query_len, key_len, causal)) continue;
            float s = 0, dp = 0;
            for (int d = 0; d < DIM; ++d) {
                s += q_row[d] * k_tile[j][d];
                dp += dout_row[d] * v_tile[j][d];
            }
            const float ds = expf(s * scale - lse_row) * (dp - d_row) * scale;
            for (int d = 0; d < DIM; ++d) sums[d] += ds * k_tile[j][d];
        }
    }
    for (int d = 0; d < DIM; ++d) {
        if (exists && d < head_dim) dq[row * head_dim + d] = sums[d];
    }
}

template <int DIM>
__global__ void of_keys(const float* q, const float* k, const float* v, const float* dout, const float* lse,
                        const float* delta, float* dk, float* dv, int query_len, int key_len, int head_dim, float scale,
                        bool causal) {
    __shared__ float q_tile[kTile][DIM], dout_tile[kTile][DIM], lse_tile[kTile], delta_tile[kTile];
    const size_t head = blockIdx.y;
    const int key = blockIdx.x * kRows + threadIdx.x;
    const bool exists = key < key_len;
    const size_t row = head * key_len + key;
    float k_row[DIM], v_row[DIM], dk_sums[DIM], dv_sums[DIM];
    for (int d = 0; d < DIM; ++d) {
        k_row[d] = exists && d < head_dim ? k[row * head_dim + d] : 0.0f;
        v_row[d] = exists && d < head_dim ? v[row * head_dim + d] : 0.0f;
        dk_sums[d] = dv_sums[d] = 0;
    }
    for (int first = 0; first < query_len; first += kTile) {
        const size_t start = head * query_len + first;
        __syncthreads();
        fill<DIM>(q_tile, q + start * head_dim, query_len - first, head_dim);
        fill<DIM>(dout_tile, dout + start * head_dim, query_len - first, head_dim);
        if (threadIdx.x < kTile && first + static_cast<int>(threadIdx.x) < query_len) {
            lse_tile[threadIdx.x] = lse[start + threadIdx.x];
            delta_tile[threadIdx.x] = delta[start + threadIdx.x];
        }
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
            if (!sees(first + i, key, query_len, key_len, causal)) continue;
            float s = 0, dp = 0;
            for (int d = 0; d < DIM; ++d) {
                s += k_row[d] * q_tile[i][d];
                dp += v_row[d] * dout_tile[i][d];
            }
            const float p = expf(s * scale - lse_tile[i]);
            const float ds = p * (dp - delta_tile[i]) * scale;
            for (int d = 0; d < DIM; ++d) {
                dk_sums[d] += ds * q_tile[i][d];
                dv_sums[d] += p * dout_tile[i][d];
            }
        }
    }
    for (int d = 0; d < DIM; ++d) {
        if (!exists || d >= head_dim) continue;
        dk[row * head_dim + d] = dk_sums[d];
        dv[row * head_dim + d] = dv_sums[d];
    }
}

template <int DIM>
void launch(const float* q, const float* k, const float* v, const float* out, const float* dout, const float* lse,
            float* delta, float* dq, float* dk, float* dv, int all_heads, int query_len, int key_len, int head_dim,
            float scale, bool causal, cudaStream_t stream) {
    const dim3 queries((query_len + kRows - 1) / kRows, all_heads), keys((key_len + kRows - 1) / kRows, all_heads);
    if (query_len > 0) {
        of_queries<DIM><<<queries, kRows, 0, stream>>>(q, k, v, out, dout, lse, delta, dq, query_len, key_len, head_dim,
                                                       scale, causal);
    }
    if (key_len > 0) {
        of_keys<DIM><<<keys, kRows, 0, stream>>>(q, k, v, dout, lse, delta, dk, dv, query_len, key_len, head_dim, scale,
                                                 causal);
    }
}

extern "C" void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                                         const float* dout, const float* lse, float* delta, float* dq, float* dk,
                                         float* dv, int batch, int heads, int query_len, int key_len, int head_dim,
                                         float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const auto launch_for = head_dim <= 32 ? launch<32> : launch<128>;
    launch_for(q, k, v, out, dout, lse, delta, dq, dk, dv, batch * heads, query_len, key_len, head_dim, scale, causal,
               stream);
}
