// A different design: ordinary loads instead of ldmatrix. Each lane reads the elements that the PTX documentation
// assigns to it. A block computes 128 rows, which are queries of all heads of a group. A warp computes 16 of the rows.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "llmk/mma.cuh"

constexpr int kWarps = 8, kRows = 16 * kWarps, kKeys = 32;

template <typename T>
__device__ unsigned two_of_a_row(const T* row) {
    return *reinterpret_cast<const unsigned*>(row);
}

template <typename T>
__device__ unsigned two_of_a_column(const T* upper, int pitch) {
    const unsigned short* bits = reinterpret_cast<const unsigned short*>(upper);
    return bits[0] | static_cast<unsigned>(bits[pitch]) << 16;
}

template <typename T, int HEAD_DIM>
__global__ void __launch_bounds__(32 * kWarps)
    attend(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int heads,
           int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal) {
    constexpr int DIM = HEAD_DIM < 16 ? 16 : HEAD_DIM, kPitch = DIM + 8;  // mma.sync needs rows of at least 16 columns
    using Piece = std::conditional_t<HEAD_DIM == 4, uint2, uint4>;
    constexpr int kPiece = sizeof(Piece) / 2, kPieces = DIM / kPiece, kOutPieces = HEAD_DIM / kPiece;
    extern __shared__ __align__(16) unsigned char shared[];
    T* rows = reinterpret_cast<T*>(shared);  // [kRows][kPitch]: holds queries, later results
    T* keys = rows + kRows * kPitch;         // [kKeys][kPitch]
    T* values = keys + kKeys * kPitch;       // [kKeys][kPitch]
    const int warp = threadIdx.x / 32, high = threadIdx.x % 32 / 4, low = threadIdx.x % 4 * 2;
    const int group = heads / kv_heads, b = blockIdx.y / kv_heads, kv_head = blockIdx.y % kv_heads;
    const int query_len = query_starts[b + 1] - query_starts[b], key_len = key_starts[b + 1] - key_starts[b];
    const int first_row = blockIdx.x * kRows, all_rows = query_len * group;
    if (first_row >= all_rows) return;
    auto token = [&](int row) { return static_cast<long long>(query_starts[b] + row / group); };
    auto head = [&](int row) { return kv_head * group + row % group; };
    auto seen = [&](int row) { return causal ? min(row / group + 1 + key_len - query_len, key_len) : key_len; };

    for (int i = threadIdx.x; i < kRows * kPieces; i += blockDim.x) {
        const int row = first_row + i / kPieces, column = i % kPieces * kPiece;
        Piece piece = {};
        if (row < all_rows && column < HEAD_DIM)
            piece = *reinterpret_cast<const Piece*>(q + token(row) * q_stride + head(row) * HEAD_DIM + column);
        *reinterpret_cast<Piece*>(rows + i / kPieces * kPitch + column) = piece;
    }
    float o[DIM / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
    const int end = seen(min(first_row + kRows, all_rows) - 1);
    for (int first = 0; first < end; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * kPieces; i += blockDim.x) {
            const int key = i / kPieces, column = i % kPieces * kPiece;
            const long long from = (key_starts[b] + first + key) * kv_stride + kv_head * HEAD_DIM + column;
            Piece of_key = {}, of_value = {};
            if (first + key < key_len && column < HEAD_DIM) {
                of_key = *reinterpret_cast<const Piece*>(k + from);
                of_value = *reinterpret_cast<const Piece*>(v + from);
            }
            *reinterpret_cast<Piece*>(keys + key * kPitch + column) = of_key;
            *reinterpret_cast<Piece*>(values + key * kPitch + column) = of_value;
        }
        __syncthreads();
        float s[kKeys / 8][4] = {};
#pragma unroll 2
        for (int c = 0; c < DIM; c += 16) {
            const T* mine = rows + (warp * 16 + high) * kPitch + c + low;
            const unsigned a[4] = {two_of_a_row(mine), two_of_a_row(mine + 8 * kPitch), two_of_a_row(mine + 8),
                                   two_of_a_row(mine + 8 * kPitch + 8)};
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j) {
                const T* theirs = keys + (j * 8 + high) * kPitch + c + low;
                llmk::mma_m16n8k16<T>(s[j], a, two_of_a_row(theirs), two_of_a_row(theirs + 8));
            }
        }
        float correction[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int limit = seen(first_row + warp * 16 + h * 8 + high) - first - low;
            float largest = m[h];
#pragma unroll
            for (int e = 0; e < kKeys / 4; ++e) {
                float& score = s[e / 2][2 * h + e % 2];
                score = e / 2 * 8 + e % 2 < limit ? score * scale * 1.44269504f : -INFINITY;
                largest = fmaxf(largest, score);
            }
            for (int step = 1; step < 4; step *= 2) {
                largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
            }
            const float base = largest == -INFINITY ? 0.0f : largest;
            correction[h] = exp2f(m[h] - base);
            m[h] = largest;
            float sum = 0;
#pragma unroll
            for (int e = 0; e < kKeys / 4; ++e) {
                float& score = s[e / 2][2 * h + e % 2];
                sum += score = exp2f(score - base);
            }
            l[h] = l[h] * correction[h] + sum;
        }
#pragma unroll
        for (int c = 0; c < DIM / 8; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) o[c][e] *= correction[e / 2];
#pragma unroll
            for (int j = 0; j < kKeys / 8; j += 2) {
                const unsigned a[4] = {llmk::pack_pair<T>(s[j][0], s[j][1]), llmk::pack_pair<T>(s[j][2], s[j][3]),
                                       llmk::pack_pair<T>(s[j + 1][0], s[j + 1][1]),
                                       llmk::pack_pair<T>(s[j + 1][2], s[j + 1][3])};
                const T* theirs = values + (j * 8 + low) * kPitch + c * 8 + high;
                llmk::mma_m16n8k16<T>(o[c], a, two_of_a_column(theirs, kPitch),
                                      two_of_a_column(theirs + 8 * kPitch, kPitch));
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        for (int step = 1; step < 4; step *= 2) l[h] += __shfl_xor_sync(0xffffffff, l[h], step);
        T* mine = rows + (warp * 16 + h * 8 + high) * kPitch + low;
        const float factor = l[h] > 0 ? 1 / l[h] : 0.0f;
#pragma unroll
        for (int c = 0; c < DIM / 8; ++c) {
            *reinterpret_cast<unsigned*>(mine + c * 8) =
                llmk::pack_pair<T>(o[c][2 * h] * factor, o[c][2 * h + 1] * factor);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kRows * kOutPieces; i += blockDim.x) {
        const int row = first_row + i / kOutPieces, column = i % kOutPieces * kPiece;
        if (row >= all_rows) continue;
        *reinterpret_cast<Piece*>(out + (token(row) * heads + head(row)) * HEAD_DIM + column) =
            *reinterpret_cast<const Piece*>(rows + i / kOutPieces * kPitch + column);
    }
}

template <typename T, int DIM>
void launch(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int batch,
            int max_queries, int heads, int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal,
            cudaStream_t stream) {
    const dim3 grid((max_queries * (heads / kv_heads) + kRows - 1) / kRows, batch * kv_heads);
    const int bytes = 2 * (kRows + 2 * kKeys) * ((DIM < 16 ? 16 : DIM) + 8);
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    attend<T, DIM><<<grid, 32 * kWarps, bytes, stream>>>(q, k, v, query_starts, key_starts, out, heads, kv_heads,
                                                         q_stride, kv_stride, scale, causal);
}

template <typename T>
void mma_flash_attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                         int batch, int max_queries, int heads, int kv_heads, int head_dim, long long q_stride,
                         long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || max_queries == 0 || heads == 0) return;
    const auto launch_for = head_dim == 4     ? launch<T, 4>
                            : head_dim == 8   ? launch<T, 8>
                            : head_dim == 64  ? launch<T, 64>
                            : head_dim == 80  ? launch<T, 80>
                            : head_dim == 96  ? launch<T, 96>
                            : head_dim == 128 ? launch<T, 128>
                                              : launch<T, 256>;
    launch_for(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, q_stride, kv_stride, scale,
               causal, stream);
}
