// Embedding lookup: out[t, :] = table[ids[t], :], zeros for an id outside the table.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// One block copies one row. A row is `pieces` values of type Piece: uint4 (16 bytes) if everything is aligned, else
// single elements.
//
// table: [vocabulary, pieces]   ids: [tokens]   out: [tokens, pieces]
template <typename Piece>
__global__ void copy_rows(const Piece* __restrict__ table, const long long* __restrict__ ids, Piece* __restrict__ out,
                          long long tokens, long long vocabulary, int pieces) {
    for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
        const long long id = ids[token];                // all threads read the same address, which is one broadcast
        const bool known = id >= 0 && id < vocabulary;  // checked before the id becomes an address
        const Piece* row = table + (known ? id : 0) * pieces;  // in 64 bits: the table may exceed 2^31 elements
#pragma unroll 4  // a thread starts four loads before it waits for the first
        for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
            out[token * pieces + i] = known ? row[i] : Piece{};
        }
    }
}

template <typename T>
void embedding(const T* table, const long long* ids, T* out, long long tokens, long long vocabulary, int hidden,
               cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    const int grid = tokens < INT32_MAX ? static_cast<int>(tokens) : INT32_MAX;  // a block may copy several rows
    if (llmk::rows_are_aligned(hidden, table, out)) {
        copy_rows<<<grid, 128, 0, stream>>>(reinterpret_cast<const uint4*>(table), ids, reinterpret_cast<uint4*>(out),
                                            tokens, vocabulary, static_cast<int>(hidden * sizeof(T) / sizeof(uint4)));
    } else {
        copy_rows<<<grid, 128, 0, stream>>>(table, ids, out, tokens, vocabulary, hidden);
    }
}

// table: [vocabulary, hidden]   ids: [tokens]   out: [tokens, hidden]
extern "C" void embedding_f32(const float* table, const long long* ids, float* out, long long tokens,
                              long long vocabulary, int hidden, cudaStream_t stream) {
    embedding(table, ids, out, tokens, vocabulary, hidden, stream);
}

extern "C" void embedding_f16(const __half* table, const long long* ids, __half* out, long long tokens,
                              long long vocabulary, int hidden, cudaStream_t stream) {
    embedding(table, ids, out, tokens, vocabulary, hidden, stream);
}

extern "C" void embedding_bf16(const __nv_bfloat16* table, const long long* ids, __nv_bfloat16* out, long long tokens,
                               long long vocabulary, int hidden, cudaStream_t stream) {
    embedding(table, ids, out, tokens, vocabulary, hidden, stream);
}
