// Version 4, register tiles: a thread owns 8 queries x 8 keys of the scores, and 8 queries x 4 or 8 columns of the
// output.
//
// In version 3 each 16 bytes that a thread reads from shared memory feed 4 multiply-adds. Here 16 such reads (8 of
// queries, 8 of keys) feed 256: both matmuls of attention use the register tiles of day 4. The weights P
// are exchanged in between: a thread computes them for its 8 keys, but needs them for all 64, so they pass through
// shared memory.
//
//   q, out: [heads, query_len, DIM]     k, v: [heads, key_len, DIM]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kEach = 8;     // queries of a thread, and keys of a thread
constexpr int kGroups = 16;  // threads along the queries
constexpr int kLanes = 8;    // threads along the keys, and along the columns
constexpr int kThreads = kGroups * kLanes;
constexpr int kQueries = kGroups * kEach;
constexpr int kKeys = kLanes * kEach;

// Rows in shared memory are padded by 4 or 8 floats, so that rows that are read, or written, together lie in different
// banks.
template <int DIM>
struct Tiles {
    float q[kQueries][DIM + 4];
    float k[kKeys][DIM + 4];
    float v[kKeys][DIM];
    float p[kQueries][kKeys + 8];
};

template <int ROWS, int DIM, int PITCH>
__device__ void load_tile(float (*tile)[PITCH], const float* rows, int count) {
    for (int i = threadIdx.x; i < ROWS * DIM / 4; i += kThreads) {
        const int row = i / (DIM / 4), column = i % (DIM / 4) * 4;
        *reinterpret_cast<float4*>(&tile[row][column]) =
            row < count ? reinterpret_cast<const float4*>(rows)[i] : make_float4(0, 0, 0, 0);
    }
}

__device__ __forceinline__ float4 read4(const float* from) { return *reinterpret_cast<const float4*>(from); }

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
__global__ void __launch_bounds__(kThreads) attend(const float* q, const float* k, const float* v, float* out,
                                                   int query_len, int key_len, float scale, bool causal) {
    constexpr int kColumns = DIM / kLanes;  // output columns of one thread: 4 or 8
    extern __shared__ float4 shared[];
    auto& tiles = *reinterpret_cast<Tiles<DIM>*>(shared);

    // A warp is 4 groups of 8 threads. Lane bits 1 and 4 are the group's number (ty), the others the place in it (tx).
    // So four neighboring lanes have two values of ty and two of tx: each query and each key is read by two of the
    // lanes. The hardware serves such 16-byte reads in half the wavefronts.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tx = (lane & 1) | (lane >> 1 & 6);                    // owns keys tx, tx + 8, ...
    const int ty = 4 * warp + ((lane >> 1 & 1) | (lane >> 3 & 2));  // owns queries ty, ty + 16, ...
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
    load_tile<kQueries, DIM>(tiles.q, q, query_len - first_query);

    const int offset = key_len - query_len;  // causal: query i sees keys 0 ... i + offset
    const int block_visible = causal ? min(first_query + kQueries, query_len) + offset : key_len;

    for (int first_key = 0; first_key < block_visible; first_key += kKeys) {
        __syncthreads();  // all threads have used the previous tiles
        load_tile<kKeys, DIM>(tiles.k, k + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        load_tile<kKeys, DIM>(tiles.v, v + static_cast<size_t>(first_key) * DIM, key_len - first_key);
        __syncthreads();

        // S = Q K^T: for each 4 columns, 8 + 8 reads and 256 multiply-adds.
        float s[kEach][kEach] = {};
#pragma unroll 4
        for (int d = 0; d < DIM; d += 4) {
            float4 key[kEach];
#pragma unroll
            for (int j = 0; j < kEach; ++j) key[j] = read4(&tiles.k[tx + kLanes * j][d]);
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const float4 query = read4(&tiles.q[ty + kGroups * i][d]);
#pragma unroll
                for (int j = 0; j < kEach; ++j) s[i][j] = dot(query, key[j], s[i][j]);
            }
        }

        // The online softmax. The 8 threads with the same ty are lanes of one warp, and differ in lane bits 0, 2 and 3:
        // shuffles find their common maximum. Each thread sums the weights of its own keys only; the sums are added at
        // the end.
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int row = ty + kGroups * i;
            const int visible = causal ? first_query + row + offset + 1 : key_len;
            float new_m = m[i];
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const int key = first_key + tx + kLanes * j;
                s[i][j] = key < visible && key < key_len ? s[i][j] * scale : -INFINITY;
                new_m = fmaxf(new_m, s[i][j]);
            }
            new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 1));
            new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 4));
            new_m = fmaxf(new_m, __shfl_xor_sync(0xffffffff, new_m, 8));
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
                tiles.p[row][tx + kLanes * j] = weight;
            }
        }
        __syncwarp();  // the threads that share a row of P are lanes of one warp

        // O += P V: for each 4 keys, 8 reads of weights, 4 or 8 of values, and 128 or 256 multiply-adds.
#pragma unroll 2
        for (int j = 0; j < kKeys; j += 4) {
            float4 weight[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) weight[i] = read4(&tiles.p[ty + kGroups * i][j]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
                for (int c = 0; c < kColumns; c += 4) {
                    const float4 value = read4(&tiles.v[j + n][4 * tx + kLanes * c]);
#pragma unroll
                    for (int i = 0; i < kEach; ++i) {
                        const float w = n == 0   ? weight[i].x
                                        : n == 1 ? weight[i].y
                                        : n == 2 ? weight[i].z
                                                 : weight[i].w;
                        o[i][c] += w * value.x;
                        o[i][c + 1] += w * value.y;
                        o[i][c + 2] += w * value.z;
                        o[i][c + 3] += w * value.w;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        float sum = l[i];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 4);
        sum += __shfl_xor_sync(0xffffffff, sum, 8);
        const float inverse = sum > 0 ? 1 / sum : 0.0f;
        const int row = ty + kGroups * i;
        if (first_query + row >= query_len) continue;
#pragma unroll
        for (int c = 0; c < kColumns; c += 4) {
            *reinterpret_cast<float4*>(&out[row * DIM + 4 * tx + kLanes * c]) =
                make_float4(o[i][c] * inverse, o[i][c + 1] * inverse, o[i][c + 2] * inverse, o[i][c + 3] * inverse);
        }
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
