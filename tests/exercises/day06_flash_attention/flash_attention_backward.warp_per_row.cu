// A warp computes one row, which is a query or a key; a block has 32 warps. Each lane computes the weight and its
// gradient for one key (or query) of the tile, then the sums of every 32nd column. Shuffles exchange the weights.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kWarps = 32;
constexpr int kMaxEach = 4;  // columns per lane, for head_dim <= 128
constexpr unsigned kAll = 0xffffffff;

__global__ void products(const float* dout, const float* out, float* delta, long long rows, int head_dim) {
    const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0;
    for (int d = threadIdx.x; d < head_dim; d += 32) sum += dout[row * head_dim + d] * out[row * head_dim + d];
    for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_down_sync(kAll, sum, bit);
    if (threadIdx.x == 0) delta[row] = sum;
}

// A warp owns one row and loops over the other rows. If KEYS, it owns a key (own_a: k, own_b: v), the other rows are
// queries (other_a: q, other_b: dout), and it sums dk and dv. Otherwise it owns a query (own_a: q, own_b: dout), the
// other rows are keys (other_a: k, other_b: v), and it sums dq.
template <bool KEYS>
__global__ void __launch_bounds__(kWarps * 32)
    gradients(const float* own_a, const float* own_b, const float* other_a, const float* other_b, const float* lse,
              const float* delta, float* sum_a, float* sum_b, int own_len, int other_len, int head_dim, float scale,
              bool causal) {
    extern __shared__ float shared[];
    const int pitch = head_dim | 1;
    float* a_tile = shared;
    float* b_tile = a_tile + 32 * pitch;
    float* own = b_tile + 32 * pitch + threadIdx.y * 2 * head_dim;
    const int lane = threadIdx.x;
    const int tiles = (own_len + kWarps - 1) / kWarps;
    const size_t head = blockIdx.x / tiles;
    const int row = blockIdx.x % tiles * kWarps + threadIdx.y;
    const size_t at = head * own_len + row;
    for (int d = lane; d < head_dim; d += 32) {
        own[d] = row < own_len ? own_a[at * head_dim + d] : 0.0f;
        own[head_dim + d] = row < own_len ? own_b[at * head_dim + d] : 0.0f;
    }
    float a_sums[kMaxEach] = {}, b_sums[kMaxEach] = {};
    for (int first = 0; first < other_len; first += 32) {
        __syncthreads();
        for (int i = threadIdx.y * 32 + lane; i < 32 * head_dim; i += kWarps * 32) {
            const int r = i / head_dim, d = i % head_dim;
            const bool inside = first + r < other_len;
            a_tile[r * pitch + d] = inside ? other_a[(head * other_len + first + r) * head_dim + d] : 0.0f;
            b_tile[r * pitch + d] = inside ? other_b[(head * other_len + first + r) * head_dim + d] : 0.0f;
        }
        __syncthreads();
        const int other = first + lane;
        const int query = KEYS ? other : row, key = KEYS ? row : other;
        const int query_len = KEYS ? other_len : own_len, key_len = KEYS ? own_len : other_len;
        const bool counts = query < query_len && key < key_len && (!causal || key <= query + key_len - query_len);
        float s = 0, dp = 0, p = 0, ds = 0;
        for (int d = 0; d < head_dim; ++d) {
            s += own[d] * a_tile[lane * pitch + d];
            dp += own[head_dim + d] * b_tile[lane * pitch + d];
        }
        if (counts) {
            p = expf(s * scale - lse[head * query_len + query]);
            ds = p * (dp - delta[head * query_len + query]);
        }
        for (int j = 0; j < 32; ++j) {
            const float ds_j = __shfl_sync(kAll, ds, j);
            const float p_j = KEYS ? __shfl_sync(kAll, p, j) : 0.0f;
            for (int c = 0; c * 32 + lane < head_dim; ++c) {
                a_sums[c] += ds_j * a_tile[j * pitch + c * 32 + lane];
                if (KEYS) b_sums[c] += p_j * b_tile[j * pitch + c * 32 + lane];
            }
        }
    }
    if (row >= own_len) return;
    for (int c = 0; c * 32 + lane < head_dim; ++c) {
        sum_a[at * head_dim + c * 32 + lane] = a_sums[c] * scale;
        if (KEYS) sum_b[at * head_dim + c * 32 + lane] = b_sums[c];
    }
}

extern "C" void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                                         const float* dout, const float* lse, float* delta, float* dq, float* dk,
                                         float* dv, int batch, int heads, int query_len, int key_len, int head_dim,
                                         float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const int all_heads = batch * heads;
    const long long rows = static_cast<long long>(all_heads) * query_len;
    const dim3 block(32, kWarps);
    const int bytes = static_cast<int>(sizeof(float)) * (64 * (head_dim | 1) + kWarps * 2 * head_dim);
    cudaFuncSetAttribute(gradients<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaFuncSetAttribute(gradients<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (query_len > 0) products<<<(rows + 7) / 8, dim3(32, 8), 0, stream>>>(dout, out, delta, rows, head_dim);
    if (key_len > 0) {
        gradients<true><<<(key_len + kWarps - 1) / kWarps * all_heads, block, bytes, stream>>>(
            k, v, q, dout, lse, delta, dk, dv, key_len, query_len, head_dim, scale, causal);
    }
    if (query_len > 0) {
        gradients<false><<<(query_len + kWarps - 1) / kWarps * all_heads, block, bytes, stream>>>(
            q, dout, k, v, lse, delta, dq, nullptr, query_len, key_len, head_dim, scale, causal);
    }
}
