// Embedding lookup: out[t, :] = table[ids[t], :], zeros for an id outside the table.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// table: [vocabulary, pieces]   ids: [tokens]   out: [tokens, pieces]
template <typename Piece>
__global__ void copy_rows(const Piece* __restrict__ table, const long long* __restrict__ ids, Piece* __restrict__ out,
                          long long tokens, long long vocabulary, int pieces) {
    // TODO: find this thread's token; check that its id is inside the table before you use it in an address; copy the
    // row together with the neighboring threads. Piece{} is a piece of zeros.
}

template <typename T>
void embedding(const T* table, const long long* ids, T* out, long long tokens, long long vocabulary, int hidden,
               cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    // TODO: choose a grid and a block and launch copy_rows: with Piece = uint4 where the row's bytes and both pointers
    // are multiples of 16, with Piece = T elsewhere.
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
