// Correct alternative: one warp per token, so that short rows do not leave most of a block idle; the number of blocks
// is limited
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ bool is_known(long long id, long long vocabulary) { return id >= 0 && id < vocabulary; }

// One warp copies one row, so short rows do not leave most of a block idle. A row is `pieces` values of type Piece:
// uint4 (16 bytes) where everything is aligned, and single elements otherwise.
//
// table: [vocabulary, pieces]   ids: [tokens]   out: [tokens, pieces]
template <typename Piece>
__global__ void copy_rows(const Piece* __restrict__ table, const long long* __restrict__ ids, Piece* __restrict__ out,
                          long long tokens, long long vocabulary, int pieces) {
    const int lane = threadIdx.x % 32;
    const long long warp = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / 32;
    for (long long token = warp; token < tokens; token += warps) {
        const long long id = ids[token];                       // all lanes read one address: a broadcast
        const bool known = is_known(id, vocabulary);           // checked before the id is used as an address
        const Piece* row = table + (known ? id : 0) * pieces;  // 64-bit: the table may exceed 2^31 elements
#pragma unroll 4                                               // four loads are in flight before the first store
        for (int i = lane; i < pieces; i += 32) {
            out[token * pieces + i] = known ? row[i] : Piece{};
        }
    }
}

template <typename T>
void embedding(const T* table, const long long* ids, T* out, long long tokens, long long vocabulary, int hidden,
               cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    const int block = 256;
    const long long blocks = (tokens + block / 32 - 1) / (block / 32);
    const int grid = blocks < 65536 ? static_cast<int>(blocks) : 65536;  // each warp then copies several rows
    const uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) | hidden * sizeof(T);
    if (bits % sizeof(uint4) == 0) {
        copy_rows<<<grid, block, 0, stream>>>(reinterpret_cast<const uint4*>(table), ids, reinterpret_cast<uint4*>(out),
                                              tokens, vocabulary, static_cast<int>(hidden * sizeof(T) / sizeof(uint4)));
    } else {
        copy_rows<<<grid, block, 0, stream>>>(table, ids, out, tokens, vocabulary, hidden);
    }
}

// table: [vocabulary, hidden]   ids: [tokens]   out: [tokens, hidden]
