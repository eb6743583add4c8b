// Attention of many queries at once, as in prefill, in f32. Day 7 derives it.
//
// A block of 128 threads handles 64 rows, each the query of one head of a group, and reads the group's keys once for
// all of them. Thread (ty, tx) computes rows 4 ty ... 4 ty + 3: the scores of keys tx, tx + 8, tx + 16 and tx + 24, and
// the output columns 4 tx ... 4 tx + 3 of every 32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/vector.cuh"

namespace llmk {

template <int DIM>
struct PrefillShape {
    static constexpr int kThreads = 128;
    static constexpr int kRows = 64;            // rows per tile: queries of all heads of the group
    static constexpr int kKeys = 32;            // keys per tile
    static constexpr int kEach = 4;             // rows per thread, and keys per thread
    static constexpr int kPitch = DIM / 4 + 1;  // float4s from row to row: odd, so that 8 rows lie in different banks
    static constexpr int kWeightPitch = kKeys / 4 + 1;
    static constexpr int kSharedBytes = (kRows * kPitch + 2 * kKeys * kPitch + kRows * kWeightPitch) * 16;
};

// Convert 16 bytes of a row to floats, multiply by `factor`, and store them to shared memory.
template <typename T>
__device__ __forceinline__ void store_floats(float4* target, uint4 bits, float factor) {
    const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); j += 4) {
        target[j / 4] =
            make_float4(static_cast<float>(elements[j]) * factor, static_cast<float>(elements[j + 1]) * factor,
                        static_cast<float>(elements[j + 2]) * factor, static_cast<float>(elements[j + 3]) * factor);
    }
}

// Copy kCount rows to shared memory as floats; zeros where address(row) is nullptr and in columns from head_dim on.
template <typename T, int DIM, int kCount, typename Address>
__device__ __forceinline__ void load_tile(float4* tile, int head_dim, float factor, Address address) {
    constexpr int kWidth = 16 / sizeof(T), kPieces = DIM / kWidth;
#pragma unroll 4
    for (int i = threadIdx.x; i < kCount * kPieces; i += PrefillShape<DIM>::kThreads) {
        const int row = i / kPieces, column = i % kPieces * kWidth;
        const T* source = address(row);
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (source != nullptr && column < head_dim) bits = *reinterpret_cast<const uint4*>(source + column);
        store_floats<T>(tile + row * PrefillShape<DIM>::kPitch + column / 4, bits, factor);
    }
}

// out = softmax(scale * q k^T) v for rows first_row ... first_row + 63 of `rows`. The caller defines the rows: row r is
// at q + place(r), its result at out + place(r), and it sees keys 0 ... visible(r) - 1; the last row sees the most. Key
// i is at k + key_place(i), its value at v + key_place(i). `shared` has kSharedBytes.
template <typename T, int DIM, typename Place, typename KeyPlace, typename Visible>
__device__ __forceinline__ void prefill_attention_rows(float4* shared, const T* q, const T* k, const T* v, T* out,
                                                       long long first_row, long long rows, int head_dim, float scale,
                                                       Place place, KeyPlace key_place, Visible visible) {
    using S = PrefillShape<DIM>;
    constexpr int kRows = S::kRows, kKeys = S::kKeys, kEach = S::kEach;
    constexpr int kPitch = S::kPitch, kWeightPitch = S::kWeightPitch;
    constexpr int kChunks = DIM / 32;           // float4s of the output per thread and row
    float4* q_tile = shared;                    // [kRows][kPitch]
    float4* k_tile = q_tile + kRows * kPitch;   // [kKeys][kPitch]
    float4* v_tile = k_tile + kKeys * kPitch;   // [kKeys][kPitch]
    float4* weights = v_tile + kKeys * kPitch;  // [kRows][kWeightPitch]
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    const long long last_row = min(first_row + kRows, rows) - 1;
    const int key_end = static_cast<int>(max(0LL, visible(last_row)));  // no row of the tile sees more keys

    load_tile<T, DIM, kRows>(q_tile, head_dim, scale * kLog2E,
                             [&](int row) { return first_row + row < rows ? q + place(first_row + row) : nullptr; });

    float o[kEach][4 * kChunks] = {};
    float m[kEach], l[kEach];
    int seen[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        m[i] = -INFINITY;
        l[i] = 0;
        seen[i] = static_cast<int>(max(0LL, visible(min(first_row + kEach * ty + i, last_row))));
    }

    for (int first_key = 0; first_key < key_end; first_key += kKeys) {
        __syncthreads();  // all threads have used the previous tile
        auto row_of = [&](const T* x) {
            return [=](int row) { return first_key + row < key_end ? x + key_place(first_key + row) : nullptr; };
        };
        load_tile<T, DIM, kKeys>(k_tile, head_dim, 1.0f, row_of(k));
        load_tile<T, DIM, kKeys>(v_tile, head_dim, 1.0f, row_of(v));
        __syncthreads();  // the tile is complete

        float s[kEach][kEach] = {};
#pragma unroll 2
        for (int c = 0; c < DIM / 4; ++c) {
            float4 key[kEach];
#pragma unroll
            for (int j = 0; j < kEach; ++j) key[j] = k_tile[(tx + 8 * j) * kPitch + c];
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const float4 query = q_tile[(kEach * ty + i) * kPitch + c];
#pragma unroll
                for (int j = 0; j < kEach; ++j) {
                    s[i][j] += query.x * key[j].x + query.y * key[j].y + query.z * key[j].z + query.w * key[j].w;
                }
            }
        }

        // The online softmax. The 8 threads of a row are neighboring lanes. Weight [row][4 tx + j] belongs to key tx +
        // 8 j.
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            float new_m = m[i];
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                if (first_key + tx + 8 * j >= seen[i]) s[i][j] = -INFINITY;
                new_m = fmaxf(new_m, s[i][j]);
            }
            new_m = warp_max<8>(new_m);
            const float base = finite_max_or_zero(new_m);
            const float correction = exp2f(m[i] - base);
            m[i] = new_m;
            l[i] *= correction;
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                s[i][j] = exp2f(s[i][j] - base);
                l[i] += s[i][j];  // over this thread's keys; the 8 partial sums are added at the end
            }
#pragma unroll
            for (int d = 0; d < 4 * kChunks; ++d) o[i][d] *= correction;
            weights[(kEach * ty + i) * kWeightPitch + tx] = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
        }
        __syncwarp();  // the weights of a row are written and read by the same warp

#pragma unroll 2
        for (int x = 0; x < 8; ++x) {  // keys x, x + 8, x + 16, x + 24
            float4 p[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) p[i] = weights[(kEach * ty + i) * kWeightPitch + x];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int c = 0; c < kChunks; ++c) {
                    const float4 value = v_tile[(x + 8 * j) * kPitch + tx + 8 * c];
#pragma unroll
                    for (int i = 0; i < kEach; ++i) {
                        const float weight = j == 0 ? p[i].x : j == 1 ? p[i].y : j == 2 ? p[i].z : p[i].w;
                        o[i][4 * c] += weight * value.x;
                        o[i][4 * c + 1] += weight * value.y;
                        o[i][4 * c + 2] += weight * value.z;
                        o[i][4 * c + 3] += weight * value.w;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        const float inverse = reciprocal_or_zero(warp_sum<8>(l[i]));
        const long long row = first_row + kEach * ty + i;
        if (row >= rows) continue;
        T* target = out + place(row);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            const int column = 32 * c + 4 * tx;
            if (column < head_dim) {
                const float four[4] = {o[i][4 * c] * inverse, o[i][4 * c + 1] * inverse, o[i][4 * c + 2] * inverse,
                                       o[i][4 * c + 3] * inverse};
                store_rounded(target + column, four, true, column, head_dim);
            }
        }
    }
}

}  // namespace llmk
