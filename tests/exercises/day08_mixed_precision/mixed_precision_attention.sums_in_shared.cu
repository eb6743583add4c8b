// A different design: the weighted sums stay in shared memory, where each row is easy to rescale; two lanes share a
// row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

namespace wmma = nvcuda::wmma;

constexpr int kWarps = 4, kThreads = 32 * kWarps, kKeys = 32;
constexpr int kQueries = 16 * kWarps;  // each warp computes 16 queries
constexpr int kDim = 128, kPitch = kDim + 8, kScorePitch = kKeys + 4, kWeightPitch = kKeys + 8;

__device__ __forceinline__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ __forceinline__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

template <typename T>
__device__ void copy(T* tile, const T* from, int rows, int there, int head_dim) {
    for (int i = threadIdx.x; i < rows * kDim; i += kThreads) {
        const int r = i / kDim, c = i % kDim;
        tile[r * kPitch + c] = r < there && c < head_dim ? from[static_cast<size_t>(r) * head_dim + c] : T(0.0f);
    }
}

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, int head_dim,
                       float scale, bool causal) {
    __shared__ __align__(32) T q_tile[kQueries * kPitch];
    __shared__ __align__(32) T kv_tile[kKeys * kPitch];
    __shared__ __align__(32) float score_tile[kWarps][16 * kScorePitch];
    __shared__ __align__(32) T weight_tile[kWarps][16 * kWeightPitch];
    extern __shared__ __align__(32) float sums[];  // [kWarps][16][kDim + 4]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_query = blockIdx.x * kQueries;
    const size_t head = blockIdx.y;
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += head * key_len * head_dim;
    v += head * key_len * head_dim;
    const int offset = key_len - query_len, row = lane / 2;
    const int visible = causal ? min(first_query + warp * 16 + row + offset + 1, key_len) : key_len;
    const int key_end = causal ? min(first_query + kQueries + offset, key_len) : key_len;
    copy(q_tile, q, kQueries, query_len - first_query, head_dim);
    float m = -INFINITY, l = 0;  // state of row lane / 2; each of its two lanes has half of the keys
    float* mine = sums + warp * 16 * (kDim + 4);
    for (int i = lane; i < 16 * (kDim + 4); i += 32) mine[i] = 0;
    __syncwarp();
    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        __syncthreads();
        copy(kv_tile, k + static_cast<size_t>(first_key) * head_dim, kKeys, key_len - first_key, head_dim);
        __syncthreads();
        for (int j = 0; j < kKeys; j += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> s;
            wmma::fill_fragment(s, 0.0f);
            for (int c = 0; c < kDim; c += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b;
                wmma::load_matrix_sync(a, q_tile + warp * 16 * kPitch + c, kPitch);
                wmma::load_matrix_sync(b, kv_tile + j * kPitch + c, kPitch);
                wmma::mma_sync(s, a, b, s);
            }
            wmma::store_matrix_sync(score_tile[warp] + j, s, kScorePitch, wmma::mem_row_major);
        }
        __syncthreads();
        copy(kv_tile, v + static_cast<size_t>(first_key) * head_dim, kKeys, key_len - first_key, head_dim);
        float p[kKeys / 2], new_m = m;
        for (int j = 0; j < kKeys / 2; ++j) {
            const int key = 2 * j + lane % 2;
            p[j] = first_key + key < visible ? score_tile[warp][row * kScorePitch + key] * scale : -INFINITY;
            new_m = fmaxf(new_m, p[j]);
        }
        new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 1));
        const float base = new_m == -INFINITY ? 0.0f : new_m, correction = expf(m - base);
        m = new_m;
        l *= correction;
        for (int j = 0; j < kKeys / 2; ++j) {
            p[j] = expf(p[j] - base);
            l += p[j];
            put(&weight_tile[warp][row * kWeightPitch + 2 * j + lane % 2], p[j]);
        }
        for (int c = lane % 2; c < kDim; c += 2) mine[row * (kDim + 4) + c] *= correction;
        __syncthreads();
        for (int c = 0; c < kDim / 16; ++c) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> o;
            wmma::load_matrix_sync(o, mine + c * 16, kDim + 4, wmma::mem_row_major);
            for (int j = 0; j < kKeys; j += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> b;
                wmma::load_matrix_sync(a, weight_tile[warp] + j, kWeightPitch);
                wmma::load_matrix_sync(b, kv_tile + j * kPitch + c * 16, kPitch);
                wmma::mma_sync(o, a, b, o);
            }
            wmma::store_matrix_sync(mine + c * 16, o, kDim + 4, wmma::mem_row_major);
        }
    }
    l += __shfl_xor_sync(0xffffffff, l, 1);
    const float inverse = l > 0 ? 1 / l : 0;
    __syncwarp();
    for (int c = lane % 2; c < kDim; c += 2) mine[row * (kDim + 4) + c] *= inverse;
    __syncwarp();
    for (int i = lane; i < 16 * head_dim; i += 32) {
        const int r = i / head_dim, c = i % head_dim;
        if (first_query + warp * 16 + r < query_len) {
            put(out + static_cast<size_t>(warp * 16 + r) * head_dim + c, mine[r * (kDim + 4) + c]);
        }
    }
}

template <typename T>
void mixed_precision_attention(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    constexpr int kShared = sizeof(float) * kQueries * (kDim + 4);
    cudaFuncSetAttribute(attend<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 80 * 1024);
    attend<T><<<dim3((query_len + kQueries - 1) / kQueries, batch * heads), kThreads, kShared, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, scale, causal);
}
