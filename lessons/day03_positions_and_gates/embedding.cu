// Embedding lookup, version by version: out[t, :] = table[ids[t], :].
//
// Version 1: one thread per token copies a whole row, element by element.
// Version 2: one block per token; neighboring threads copy neighboring elements.
// Version 3: the same in pieces of 16 bytes; an id outside the table gives zeros instead of reading other memory.
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. table is (vocabulary, hidden), ids is (tokens), out is (tokens, hidden).

// Version 1: neighboring threads read different rows at the same column: their addresses are a whole row apart.
__global__ void embedding_kernel1(const float* table, const long long* ids, float* out, int tokens, int hidden) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens) return;
    for (int i = 0; i < hidden; ++i) out[token * hidden + i] = table[ids[token] * hidden + i];
}

// Version 2: the threads of a block walk along one row together.
__global__ void embedding_kernel2(const float* table, const long long* ids, float* out, int hidden) {
    const long long id = ids[blockIdx.x];
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[blockIdx.x * hidden + i] = table[id * hidden + i];
}

// Version 3: a row is `pieces` float4 long. The kernel checks the id before it uses it in an address.
__global__ void embedding_kernel3(const float4* table, const long long* ids, float4* out, long long vocabulary,
                                  int pieces) {
    const long long id = ids[blockIdx.x];
    const bool known = id >= 0 && id < vocabulary;
    for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
        out[static_cast<long long>(blockIdx.x) * pieces + i] =
            known ? table[id * pieces + i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void embedding_1(const float* table, const long long* ids, float* out, int tokens, int hidden,
                            cudaStream_t stream) {
    embedding_kernel1<<<(tokens + 31) / 32, 32, 0, stream>>>(table, ids, out, tokens, hidden);
}

extern "C" void embedding_2(const float* table, const long long* ids, float* out, int tokens, int hidden,
                            cudaStream_t stream) {
    embedding_kernel2<<<tokens, 64, 0, stream>>>(table, ids, out, hidden);
}

// hidden is a multiple of 4.
extern "C" void embedding_3(const float* table, const long long* ids, float* out, int tokens, long long vocabulary,
                            int hidden, cudaStream_t stream) {
    embedding_kernel3<<<tokens, 64, 0, stream>>>(reinterpret_cast<const float4*>(table), ids,
                                                 reinterpret_cast<float4*>(out), vocabulary, hidden / 4);
}
