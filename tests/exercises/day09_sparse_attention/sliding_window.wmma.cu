// Another design: day 8's kernel on tensor cores, through WMMA, and so with S and P in shared memory. A block of 128
// queries starts at the first tile that any of them sees; in that band a warp skips tiles that none of its own 32 sees.
//
//   q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace wmma = nvcuda::wmma;

__device__ __forceinline__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ __forceinline__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 32;  // queries of a warp: one for each lane when the softmax is done
constexpr int kQueries = kRows * kWarps;
constexpr int kKeys = 64;                   // of one tile
constexpr int kColumnPitch = kRows + 4;     // floats from a column of S to the next, so that stores meet no conflict
constexpr int kWeightPitch = kKeys + 8;     // elements from a row of P to the next
constexpr int kOutColumns = 64;             // columns of out that pass through a warp's piece at a time
constexpr int kOutPitch = kOutColumns + 8;  // floats from a row of them to the next
constexpr int kWarpBytes = sizeof(float) * kKeys * kColumnPitch;  // of a warp's piece: S, then P in its place, then out
static_assert(kWarpBytes >= 2 * kRows * kWeightPitch && kWarpBytes >= int(sizeof(float)) * kRows * kOutPitch);

// Sizes for heads of up to DIM columns.
template <int DIM>
struct Shape {
    static constexpr int kPitch = DIM + 8;             // elements: eight rows start in different banks
    static constexpr int kBlocks = DIM <= 64 ? 3 : 2;  // on a multiprocessor at a time
    static constexpr int kTiles = kQueries * kPitch + 2 * kKeys * kPitch;  // elements of the tiles of q, k and v
    static constexpr int kShared = 2 * kTiles + kWarps * (kWarpBytes + int(sizeof(float)) * kRows);  // bytes
};

// What one thread copies of every tile: 16 bytes here and there. Its places are worked out once, before the loop.
template <typename T, int DIM>
struct Copier {
    static constexpr int kVector = 16 / sizeof(T);
    static constexpr int kLanes = DIM % 64 == 0 ? 8 : 4;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kChunks = DIM / (kLanes * kVector);  // that a thread copies of a row
    const int head_dim;
    const bool vectors;           // all rows start at multiples of 16 bytes
    const int row, first_column;  // of this thread's first 16 bytes of a tile
    const int to;                 // their place in shared memory, in elements
    const long long start, step;  // their place in global memory, and the way to the next row of this thread

    __device__ Copier(int columns, bool aligned)
        : head_dim(columns),
          vectors(aligned),
          row(threadIdx.x / kLanes),
          first_column(threadIdx.x % kLanes * kVector),
          to(row * Shape<DIM>::kPitch + first_column),
          start(static_cast<long long>(row) * columns + first_column),
          step(static_cast<long long>(kRowsAtOnce) * columns) {}

    // Starts to copy ROWS rows, of which `there` exist; zeros for the others, and past the last column.
    template <int ROWS>
    __device__ __forceinline__ void copy(T* tile, const T* from, int there) const {
        if (!vectors) {
            for (int i = threadIdx.x; i < ROWS * DIM; i += kThreads) {
                const int r = i / DIM, column = i % DIM;
                tile[r * Shape<DIM>::kPitch + column] =
                    r < there && column < head_dim ? from[static_cast<long long>(r) * head_dim + column] : T(0.0f);
            }
            return;
        }
        from += start;
#pragma unroll
        for (int i = 0; i < ROWS / kRowsAtOnce; ++i) {
#pragma unroll
            for (int c = 0; c < kChunks; ++c) {
                const int r = i * kRowsAtOnce, column = c * kLanes * kVector;
                __pipeline_memcpy_async(tile + to + r * Shape<DIM>::kPitch + column, from + i * step + column, 16,
                                        row + r < there && first_column + column < head_dim ? 0 : 16);
            }
        }
        __pipeline_commit();
    }
};

// All copies of all threads have arrived, and all threads are done with what they read before.
__device__ __forceinline__ void wait_for_copies() {
    __pipeline_wait_prior(0);
    __syncthreads();
}

// 2^x, in one instruction; exp2f takes three more to be right for results below 2^-126, which nobody would see here.
__device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <typename T>
using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major>;
template <typename T, typename Layout>
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, T, Layout>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// wmma::load_matrix_sync from shared memory. For bf16 nvcc does not see that it is shared memory, and loads 32 bits at a
// time through generic addresses; told so by the instruction behind load_matrix_sync, it uses ldmatrix, as it does for f16.
template <typename Use, typename Layout>
__device__ __forceinline__ void load_tile(wmma::fragment<Use, 16, 16, 16, __half, Layout>& f, const __half* tile,
                                          int pitch) {
    wmma::load_matrix_sync(f, tile, pitch);
}

template <typename Use, typename Layout>
__device__ __forceinline__ void load_tile(wmma::fragment<Use, 16, 16, 16, __nv_bfloat16, Layout>& f,
                                          const __nv_bfloat16* tile, int pitch) {
    unsigned* word = reinterpret_cast<unsigned*>(f.x);
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    if constexpr (std::is_same<Use, wmma::matrix_a>::value) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    } else if constexpr (std::is_same<Layout, wmma::row_major>::value) {
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    } else {
        asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    }
}

// Multiplies each row of a stripe of 16 rows by its own factor. Which lane holds which row is not specified; but a
// fragment of the same type, filled from a matrix whose every column is `factors` (its columns lie 0 elements apart),
// has the factor of a row wherever the other has an element of that row.
template <int N>
__device__ __forceinline__ void multiply_rows(Sums (&stripe)[N], const float* factors) {
    Sums factor;
    wmma::load_matrix_sync(factor, factors, 0, wmma::mem_col_major);
#pragma unroll
    for (int c = 0; c < N; ++c) {
#pragma unroll
        for (int e = 0; e < factor.num_elements; ++e) stripe[c].x[e] *= factor.x[e];
    }
}

template <typename T, int DIM>
__global__ void __launch_bounds__(kThreads, Shape<DIM>::kBlocks)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
           int query_len, int key_len, int head_dim, int window, float scale, bool vectors) {
    using S = Shape<DIM>;
    constexpr int kAcross = DIM / 16;  // fragments across a row of q, k, v or out
    extern __shared__ __align__(128) unsigned char shared[];
    T* q_tile = reinterpret_cast<T*>(shared);   // [kQueries][kPitch]
    T* k_tile = q_tile + kQueries * S::kPitch;  // [kKeys][kPitch]
    T* v_tile = k_tile + kKeys * S::kPitch;     // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned char* piece = shared + 2 * S::kTiles + warp * kWarpBytes;
    float* scores = reinterpret_cast<float*>(piece);  // [kKeys][kColumnPitch]: a column of S is a row of it
    T* weights = reinterpret_cast<T*>(piece);         // [kRows][kWeightPitch]
    float* factors = reinterpret_cast<float*>(shared + 2 * S::kTiles + kWarps * kWarpBytes) + warp * kRows;

    const int tiles = (query_len + kQueries - 1) / kQueries;
    const long long head = blockIdx.x / tiles;
    const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * kQueries;  // the longest rows first
    const long long offset = static_cast<long long>(key_len) - query_len;
    // A query sees the keys from `begin_of` up to, but without, `end_of`.
    auto end_of = [&](int query) { return static_cast<int>(min(query + offset + 1, static_cast<long long>(key_len))); };
    auto begin_of = [&](int query) { return static_cast<int>(max(query + offset + 1 - window, 0LL)); };
    const int first_row = first_query + warp * kRows, last_row = first_row + kRows - 1;
    const int begin = begin_of(first_row + lane), end = end_of(first_row + lane);  // of this lane's row
    const int warp_begin = begin_of(first_row), warp_end = end_of(last_row);       // some row of the warp sees these
    const int all_begin = begin_of(last_row), all_end = end_of(first_row);         // every row of the warp sees these
    const int key_begin = begin_of(first_query) / kKeys * kKeys, key_end = end_of(first_query + kQueries - 1);
    q += (head * query_len + first_query) * head_dim;
    out += (head * query_len + first_query) * head_dim;
    k += (head * key_len + key_begin) * head_dim;
    v += (head * key_len + key_begin) * head_dim;
    const Copier<T, DIM> copier(head_dim, vectors);
    copier.template copy<kQueries>(q_tile, q, query_len - first_query);
    copier.template copy<kKeys>(k_tile, k, key_len - key_begin);

    Sums o[2][kAcross];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int c = 0; c < kAcross; ++c) wmma::fill_fragment(o[i][c], 0.0f);
    }
    float m = -INFINITY, l = 0;  // of this lane's row: the largest score so far, the sum of 2^(score - m)
    const float to_base_2 = scale * 1.4426950408889634f;

    for (int first_key = key_begin; first_key < key_end; first_key += kKeys) {
        wait_for_copies();  // this tile of k is here, and no thread reads the tile of v before any more
        copier.template copy<kKeys>(v_tile, v, key_len - first_key);
        v += static_cast<long long>(kKeys) * head_dim;

        const bool needed = first_key + kKeys > warp_begin && first_key < warp_end;  // by this warp
        if (needed) {
            // S = Q K^T. k is [key, column]: read as the column x key matrix of the product, that is column-major.
            Sums s[2][kKeys / 16];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) wmma::fill_fragment(s[i][j], 0.0f);
            }
#pragma unroll
            for (int c = 0; c < kAcross; ++c) {
                Left<T> queries[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    load_tile(queries[i], q_tile + (warp * kRows + i * 16) * S::kPitch + c * 16, S::kPitch);
                }
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    Right<T, wmma::col_major> keys;
                    load_tile(keys, k_tile + j * 16 * S::kPitch + c * 16, S::kPitch);
#pragma unroll
                    for (int i = 0; i < 2; ++i) wmma::mma_sync(s[i][j], queries[i], keys, s[i][j]);
                }
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < kKeys / 16; ++j) {
                    wmma::store_matrix_sync(scores + j * 16 * kColumnPitch + i * 16, s[i][j], kColumnPitch,
                                            wmma::mem_col_major);
                }
            }
            __syncwarp();

            // The online softmax of row `lane`, in f32.
            float p[kKeys];
#pragma unroll
            for (int j = 0; j < kKeys; ++j) p[j] = scores[j * kColumnPitch + lane] * to_base_2;
            if (first_key < all_begin || first_key + kKeys > all_end) {  // a tile that some row sees in part
#pragma unroll
                for (int j = 0; j < kKeys; ++j) {
                    if (first_key + j < begin || first_key + j >= end) p[j] = -INFINITY;
                }
            }
            float largest[4] = {m, m, m, m};  // four chains of operations, so that none waits for the one before
#pragma unroll
            for (int j = 0; j < kKeys; ++j) largest[j % 4] = fmaxf(largest[j % 4], p[j]);
            const float new_m = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
            const float base = new_m == -INFINITY ? 0.0f : new_m;  // no key seen yet: -inf - -inf would be NaN
            const float correction = power_of_2(m - base);
            float sum[4] = {};
#pragma unroll
            for (int j = 0; j < kKeys; ++j) {
                p[j] = power_of_2(p[j] - base);
                sum[j % 4] += p[j];
            }
            m = new_m;
            l = l * correction + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
            factors[lane] = correction;
            __syncwarp();  // all lanes have read their scores: the weights may take their place
#pragma unroll
            for (int j = 0; j < kKeys; j += 8) {
                union {
                    uint4 vector;
                    unsigned short bits[8];
                } chunk;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    T rounded;
                    put(&rounded, p[j + i]);
                    chunk.bits[i] = *reinterpret_cast<const unsigned short*>(&rounded);
                }
                *reinterpret_cast<uint4*>(weights + lane * kWeightPitch + j) = chunk.vector;
            }
            __syncwarp();
            if (__any_sync(0xffffffff, correction < 1)) {
#pragma unroll
                for (int i = 0; i < 2; ++i) multiply_rows(o[i], factors + i * 16);
            }
        }

        wait_for_copies();  // this tile of v is here, and no thread reads the tile of k any more
        k += static_cast<long long>(kKeys) * head_dim;
        if (first_key + kKeys < key_end) copier.template copy<kKeys>(k_tile, k, key_len - first_key - kKeys);

        if (needed) {
            // O += P V
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                Left<T> part[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    load_tile(part[i], weights + i * 16 * kWeightPitch + j * 16, kWeightPitch);
                }
#pragma unroll
                for (int c = 0; c < kAcross; ++c) {
                    Right<T, wmma::row_major> values;
                    load_tile(values, v_tile + j * 16 * S::kPitch + c * 16, S::kPitch);
#pragma unroll
                    for (int i = 0; i < 2; ++i) wmma::mma_sync(o[i][c], part[i], values, o[i][c]);
                }
            }
            __syncwarp();  // all lanes have read the weights: the next scores may take their place
        }
    }
    __pipeline_wait_prior(0);

    factors[lane] = l > 0 ? 1 / l : 0;  // a query that sees no key gives zeros
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_rows(o[i], factors + i * 16);

    // Round once and write, kOutColumns columns at a time through this warp's piece of shared memory.
    float* staged = reinterpret_cast<float*>(piece);  // [kRows][kOutPitch]
#pragma unroll
    for (int first = 0; first < DIM; first += kOutColumns) {
        __syncwarp();
#pragma unroll
        for (int c = first / 16; c < kAcross && c < (first + kOutColumns) / 16; ++c) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                wmma::store_matrix_sync(staged + i * 16 * kOutPitch + c * 16 - first, o[i][c], kOutPitch,
                                        wmma::mem_row_major);
            }
        }
        __syncwarp();
        for (int i = lane; i < kRows * kOutColumns / 4; i += 32) {
            const int r = i / (kOutColumns / 4), column = first + i % (kOutColumns / 4) * 4;
            if (first_query + warp * kRows + r >= query_len || column >= head_dim) continue;
            const float4 sums = *reinterpret_cast<const float4*>(staged + r * kOutPitch + column - first);
            union {
                uint2 vector;
                unsigned short bits[4];
            } chunk;
            const float four[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                T rounded;
                put(&rounded, four[j]);
                chunk.bits[j] = *reinterpret_cast<const unsigned short*>(&rounded);
            }
            T* to = out + static_cast<long long>(warp * kRows + r) * head_dim + column;
            if (vectors) {
                *reinterpret_cast<uint2*>(to) = chunk.vector;
            } else {
                for (int j = 0; j < 4; ++j) put(to + j, four[j]);
            }
        }
    }
}

template <typename T, int DIM>
void launch(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len, int head_dim,
            int window, float scale, cudaStream_t stream) {
    using S = Shape<DIM>;
    const auto addresses = reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(k) |
                           reinterpret_cast<uintptr_t>(v) | reinterpret_cast<uintptr_t>(out);
    const long long tiles = (query_len + kQueries - 1) / kQueries;
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared);
    attend<T, DIM><<<static_cast<unsigned>(tiles * batch * heads), kThreads, S::kShared, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, window, scale, addresses % 16 == 0);
}

template <typename T>
void sliding_window(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                    int head_dim, int window, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const auto launch_for = head_dim <= 64 ? launch<T, 64> : head_dim <= 96 ? launch<T, 96> : launch<T, 128>;
    launch_for(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
extern "C" void sliding_window_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch, int heads,
                                   int query_len, int key_len, int head_dim, int window, float scale,
                                   cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}

extern "C" void sliding_window_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                    __nv_bfloat16* out, int batch, int heads, int query_len, int key_len, int head_dim,
                                    int window, float scale, cudaStream_t stream) {
    sliding_window(q, k, v, out, batch, heads, query_len, key_len, head_dim, window, scale, stream);
}
