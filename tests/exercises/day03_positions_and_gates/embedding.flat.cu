// Correct alternative: one thread per vector of the output, in a one-dimensional grid; every thread reads its token's
// id
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// table: [vocabulary, pieces]   ids: [tokens]   out: [tokens, pieces]
template <typename Piece>
__global__ void copy_piece(const Piece* table, const long long* ids, Piece* out, long long tokens, long long vocabulary,
                           int pieces) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= tokens * pieces) return;
    const long long id = ids[i / pieces];
    Piece value{};
    if (id >= 0 && id < vocabulary) value = table[id * pieces + i % pieces];
    out[i] = value;
}

template <typename T>
void embedding(const T* table, const long long* ids, T* out, long long tokens, long long vocabulary, int hidden,
               cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    const uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out);
    const int per_vector = bits % 16 == 0 && hidden * sizeof(T) % 16 == 0 ? 16 / sizeof(T) : 1;
    const long long pieces = tokens * (hidden / per_vector);
    const unsigned grid = static_cast<unsigned>((pieces + 127) / 128);
    if (per_vector > 1) {
        copy_piece<<<grid, 128, 0, stream>>>(reinterpret_cast<const float4*>(table), ids,
                                             reinterpret_cast<float4*>(out), tokens, vocabulary, hidden / per_vector);
    } else {
        copy_piece<<<grid, 128, 0, stream>>>(table, ids, out, tokens, vocabulary, hidden);
    }
}

// table: [vocabulary, hidden]   ids: [tokens]   out: [tokens, hidden]
