// right: one block per token, short rows included; ids compared as unsigned, so one comparison does
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// table: [vocabulary, pieces]   ids: [tokens]   out: [tokens, pieces]
template <typename Piece>
__global__ void copy_row(const Piece* table, const long long* ids, Piece* out, unsigned long long vocabulary,
                         int pieces) {
    __shared__ long long id;
    if (threadIdx.x == 0) id = ids[blockIdx.x];
    __syncthreads();
    Piece* to = out + static_cast<long long>(blockIdx.x) * pieces;
    if (static_cast<unsigned long long>(id) < vocabulary) {
        for (int i = threadIdx.x; i < pieces; i += blockDim.x) to[i] = table[id * pieces + i];
    } else {
        for (int i = threadIdx.x; i < pieces; i += blockDim.x) to[i] = Piece{};
    }
}

template <typename T>
void embedding(const T* table, const long long* ids, T* out, long long tokens, long long vocabulary, int hidden,
               cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    const bool aligned = reinterpret_cast<uintptr_t>(table) % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0;
    const int per_vector = 16 / sizeof(T);
    if (aligned && hidden % per_vector == 0) {
        copy_row<<<static_cast<unsigned>(tokens), 128, 0, stream>>>((const uint4*)table, ids, (uint4*)out, vocabulary,
                                                                    hidden / per_vector);
    } else {
        copy_row<<<static_cast<unsigned>(tokens), 128, 0, stream>>>(table, ids, out, vocabulary, hidden);
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
