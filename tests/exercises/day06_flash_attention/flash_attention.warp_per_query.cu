// A warp computes one query; a block has 32 warps. Each lane computes the score of one key of the tile, then the
// weighted sum for every 32nd column. Shuffles exchange the weights.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kWarps = 32;
constexpr int kKeys = 32;
constexpr int kMaxDim = 128;
constexpr unsigned kAll = 0xffffffff;

__global__ void __launch_bounds__(kWarps * 32)
    attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len, int head_dim,
           float scale, bool causal) {
    extern __shared__ float shared[];
    const int pitch = head_dim | 1;  // odd, so rows that are read together are in different banks
    float* k_tile = shared;
    float* v_tile = k_tile + kKeys * pitch;
    float* q_rows = v_tile + kKeys * pitch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tiles = (query_len + kWarps - 1) / kWarps;
    const size_t head = blockIdx.x / tiles;
    const int query = blockIdx.x % tiles * kWarps + warp;
    const bool exists = query < query_len;
    float* q_row = q_rows + warp * head_dim;
    for (int d = lane; d < head_dim; d += 32) q_row[d] = exists ? q[(head * query_len + query) * head_dim + d] : 0.0f;

    float o[kMaxDim / 32] = {}, m = -INFINITY, l = 0;
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * head_dim; i += kWarps * 32) {
            const int row = i / head_dim, d = i % head_dim;
            const bool inside = first + row < key_len;
            k_tile[row * pitch + d] = inside ? k[(head * key_len + first + row) * head_dim + d] : 0.0f;
            v_tile[row * pitch + d] = inside ? v[(head * key_len + first + row) * head_dim + d] : 0.0f;
        }
        __syncthreads();
        const int key = first + lane;
        float s = 0;
        for (int d = 0; d < head_dim; ++d) s += q_row[d] * k_tile[lane * pitch + d];
        s = key < key_len && (!causal || key <= query + key_len - query_len) ? s * scale : -INFINITY;
        float top = s;
        for (int bit = 16; bit > 0; bit /= 2) top = fmaxf(top, __shfl_xor_sync(kAll, top, bit));
        if (top == -INFINITY) continue;  // same condition in all lanes, and no barrier follows in this iteration
        const float new_m = fmaxf(m, top), correction = expf(m - new_m), p = expf(s - new_m);
        float sum = p;
        for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(kAll, sum, bit);
        m = new_m;
        l = l * correction + sum;
        for (float& x : o) x *= correction;
        for (int j = 0; j < kKeys; ++j) {
            const float weight = __shfl_sync(kAll, p, j);
            for (int c = 0; c * 32 + lane < head_dim; ++c) o[c] += weight * v_tile[j * pitch + c * 32 + lane];
        }
    }
    if (!exists) return;
    for (int c = 0; c * 32 + lane < head_dim; ++c) {
        out[(head * query_len + query) * head_dim + c * 32 + lane] = l > 0 ? o[c] / l : 0.0f;
    }
}

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const int blocks = (query_len + kWarps - 1) / kWarps * batch * heads;
    const size_t bytes = sizeof(float) * (2 * kKeys * (head_dim | 1) + kWarps * head_dim);
    cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    attend<<<blocks, kWarps * 32, bytes, stream>>>(q, k, v, out, query_len, key_len, head_dim, scale, causal);
}
