// Another design: each thread places the tokens of one expert. It loops over all tokens.
#include <cuda_runtime.h>

__global__ void serial_kernel(const int* ids, int* places, int* slots, int* kept, int tokens, int experts,
                              int capacity) {
    const int expert = blockIdx.x * blockDim.x + threadIdx.x;
    if (expert >= experts) return;
    int count = 0;
    for (int token = 0; token < tokens; ++token) {
        if (ids[token] != expert) continue;
        const int place = expert * capacity + count;
        places[token] = count < capacity ? place : -1;
        if (count < capacity) {
            slots[place] = token;
            ++count;
        }
    }
    kept[expert] = count;
    for (int i = count; i < capacity; ++i) slots[expert * capacity + i] = -1;
}

extern "C" void lost_tokens(const int* ids, int* places, int* slots, int* kept, int tokens, int experts, int capacity,
                            cudaStream_t stream) {
    if (experts > 0) {
        serial_kernel<<<(experts + 31) / 32, 32, 0, stream>>>(ids, places, slots, kept, tokens, experts, capacity);
    }
}
