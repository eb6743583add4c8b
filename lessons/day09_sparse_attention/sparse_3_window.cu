// Version 3: a sliding window, over tiles. Query i sees the `window` keys that end with its own position.
//
// No list: the first and the last query of a block determine its keys. The rest is day 6's version 3, one key at a time
// to keep the code short: a thread owns a query, and the block's tiles pass through shared memory.
//
//   q, k, v, out: [len, kDim]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kDim = 32;
constexpr int kQueries = 64;  // queries per block, one thread each
constexpr int kKeys = 16;     // keys per tile

__global__ void attend(const float* q, const float* k, const float* v, float* out, int len, int window, float scale) {
    __shared__ float k_tile[kKeys][kDim], v_tile[kKeys][kDim];

    const int first_query = blockIdx.x * kQueries, query = first_query + threadIdx.x;
    const int begin = max(0, first_query - window + 1);  // the first key of the block's first query
    const int end = min(first_query + kQueries, len);    // one past the last key of its last query

    float q_row[kDim], o[kDim] = {}, m = -INFINITY, l = 0;
    for (int d = 0; d < kDim; ++d) q_row[d] = query < len ? q[query * kDim + d] : 0.0f;

    for (int first = begin / kKeys * kKeys; first < end; first += kKeys) {  // from the tile that holds `begin`
        __syncthreads();  // all threads are done with the previous tile
        for (int i = threadIdx.x; i < kKeys * kDim; i += kQueries) {
            const bool exists = first + i / kDim < len;
            k_tile[i / kDim][i % kDim] = exists ? k[first * kDim + i] : 0.0f;
            v_tile[i / kDim][i % kDim] = exists ? v[first * kDim + i] : 0.0f;
        }
        __syncthreads();  // the tile has arrived

        for (int j = 0; j < kKeys; ++j) {
            const int key = first + j;
            if (key <= query - window || key > query) continue;  // outside the window of this query
            float s = 0;
            for (int d = 0; d < kDim; ++d) s += q_row[d] * k_tile[j][d];
            s *= scale;
            const float new_m = fmaxf(m, s);
            const float correction = expf(m - new_m), p = expf(s - new_m);
            m = new_m;
            l = l * correction + p;
            for (int d = 0; d < kDim; ++d) o[d] = o[d] * correction + p * v_tile[j][d];
        }
    }

    if (query >= len) return;
    for (int d = 0; d < kDim; ++d) out[query * kDim + d] = o[d] / l;  // a query sees itself, so l is not 0
}

extern "C" void attention(const float* q, const float* k, const float* v, float* out, int len, int window, float scale,
                          cudaStream_t stream) {
    if (len == 0) return;
    attend<<<(len + kQueries - 1) / kQueries, kQueries, 0, stream>>>(q, k, v, out, len, window, scale);
}
