// Version 4, register tiles: a thread owns 4 queries x 4 keys of the scores, and 4 queries x 4 columns of the output.
//
// In version 3 each 16 bytes that a thread reads from shared memory feed 4 multiply-adds. Here 8 such reads (4 of
// queries, 4 of keys) feed 64: both products of attention become the register-tiled product of day 4. The weights P
// change hands in between: a thread computes them for its 4 keys, but needs them for all 64, so they pass through
// shared memory.
//
//   q, out: [heads, query_len, DIM]     k, v: [heads, key_len, DIM]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 64;
constexpr int kKeys = 64;
constexpr int kSide = 16;  // threads along the queries, and along the keys or columns
constexpr int kThreads = kSide * kSide;
constexpr int kEach = 4;  // queries of a thread, and its keys

// Rows in shared memory are 4 floats longer than they need to be. Threads that read together read the same column of 8
// neighbouring rows; with the 4 extra floats those lie in different banks.
template <int DIM>
struct Tiles {
    float q[kQueries][DIM + 4];
    float k[kKeys][DIM + 4];
    float v[kKeys][DIM];
    float p[kQueries][kKeys + 4];
};

template <int DIM, int PITCH>
__device__ void load_tile(float (*tile)[PITCH], const float* rows, int count) {
    for (int i = threadIdx.x; i < 64 * DIM / 4; i += kThreads) {
        const int row = i / (DIM / 4), column = i % (DIM / 4) * 4;
        *reinterpret_cast<float4*>(&tile[row][column]) =
            row < count ? reinterpret_cast<const float4*>(rows)[i] : make_float4(0, 0, 0, 0);
    }
}

// sum + a . b, as four multiply-adds (written as one expression, a.x * b.x + a.y * b.y + ..., it would be six
// operations).
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
    constexpr int kColumns = DIM / kSide;  // output columns of one thread: 2 or 4
    extern __shared__ float4 shared[];
    auto& tiles = *reinterpret_cast<Tiles<DIM>*>(shared);

    const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;  // keys tx, tx + 16, ...; queries 4 ty ... 4 ty + 3
    const int first_query = blockIdx.x * kQueries;
    const size_t head = blockIdx.y;
    q += (head * query_len + first_query) * DIM;
    out += (head * query_len + first_query) * DIM;
    k += head * key_len * DIM;
    v += head * key_len * DIM;

    float o[kEach][kColumns] = {};
    float m[kEach], l[kEach];
    for (int i = 0; i < kEach; ++i) {
        m[i] = -INFINITY;
        l[i] = 0;
    }
    load_tile<DIM>(tiles.q, q, query_len - first_query);

    const int offset = key_len - query_len;  // causal: query i sees keys 0 ... i + offset
    const int block_visible = causal ? min(first_query + kQueries, query_len) + offset : key_len;

    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();  // everyone is done with the tiles before
        load_tile<DIM>(tiles.k, k + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        load_tile<DIM>(tiles.v, v + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        __syncthreads();

        // S = Q K^T: for each 4 columns, 4 + 4 reads and 64 multiply-adds.
        float s[kEach][kEach] = {};
#pragma unroll 4
        for (int d = 0; d < DIM; d += 4) {
            float4 key[kEach];
#pragma unroll
            for (int j = 0; j < kEach; ++j) key[j] = *reinterpret_cast<const float4*>(&tiles.k[tx + kSide * j][d]);
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const float4 query = *reinterpret_cast<const float4*>(&tiles.q[kEach * ty + i][d]);
#pragma unroll
                for (int j = 0; j < kEach; ++j) s[i][j] = dot(query, key[j], s[i][j]);
            }
        }

        // The online softmax. The 16 threads with the same ty are lanes of one warp: they agree on the maximum by
        // shuffles. Each sums the weights of its own keys only; the sums are added once, at the end.
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int visible = causal ? first_query + kEach * ty + i + offset + 1 : key_len;
            float new_m = m[i];
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const int key = first_key + tx + kSide * j;
                s[i][j] = key < visible && key < key_len ? s[i][j] * scale : -INFINITY;
                new_m = fmaxf(new_m, s[i][j]);
            }
            for (int bit = kSide / 2; bit > 0; bit /= 2) {
                new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, bit));
            }
            const float base = new_m == -INFINITY ? 0.0f : new_m;
            const float correction = expf(m[i] - base);
            m[i] = new_m;
            l[i] *= correction;
#pragma unroll
            for (int c = 0; c < kColumns; ++c) o[i][c] *= correction;
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const float weight = expf(s[i][j] - base);
                l[i] += weight;
                tiles.p[kEach * ty + i][tx + kSide * j] = weight;
            }
        }
        __syncwarp();  // the threads that share a row of P are lanes of one warp

        // O += P V: for each 4 keys, 4 reads of weights and 4 of values, and 64 multiply-adds.
#pragma unroll 4
        for (int j = 0; j < kKeys; j += 4) {
            float4 weight[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) weight[i] = *reinterpret_cast<const float4*>(&tiles.p[kEach * ty + i][j]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                float value[kColumns];
#pragma unroll
                for (int c = 0; c < kColumns; ++c) value[c] = tiles.v[j + n][kColumns * tx + c];
#pragma unroll
                for (int i = 0; i < kEach; ++i) {
                    const float w = n == 0 ? weight[i].x : n == 1 ? weight[i].y : n == 2 ? weight[i].z : weight[i].w;
#pragma unroll
                    for (int c = 0; c < kColumns; ++c) o[i][c] += w * value[c];
                }
            }
        }
    }

    for (int i = 0; i < kEach; ++i) {
        float sum = l[i];
        for (int bit = kSide / 2; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffff, sum, bit);
        const float inverse = sum > 0 ? 1 / sum : 0.0f;
        const int row = kEach * ty + i;
        if (first_query + row >= query_len) continue;
        for (int c = 0; c < kColumns; ++c) out[row * DIM + kColumns * tx + c] = o[i][c] * inverse;
    }
}

template <int DIM>
void launch(const float* q, const float* k, const float* v, float* out, int heads, int query_len, int key_len,
            float scale, bool causal, cudaStream_t stream) {
    const dim3 grid((query_len + kQueries - 1) / kQueries, heads);
    cudaFuncSetAttribute(attend<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Tiles<DIM>));
    attend<DIM><<<grid, kThreads, sizeof(Tiles<DIM>), stream>>>(q, k, v, out, query_len, key_len, scale, causal);
}

extern "C" void attention(const float* q, const float* k, const float* v, float* out, int heads, int query_len,
                          int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim == 32 ? launch<32> : launch<64>;
    launch_for(q, k, v, out, heads, query_len, key_len, scale, causal, stream);
}
