// Another design: one warp loops over all tokens. __match_any_sync finds lanes with the same expert, which gives each
// token its rank. The counts of all experts are in shared memory.
#include <cuda_runtime.h>

__global__ void matched_kernel(const int* ids, int* places, int* slots, int* kept, int tokens, int experts,
                               int capacity) {
    extern __shared__ int counts[];
    const int lane = threadIdx.x;
    for (int e = lane; e < experts; e += 32) counts[e] = 0;
    for (int i = lane; i < experts * capacity; i += 32) slots[i] = -1;
    __syncwarp();
    for (int first = 0; first < tokens; first += 32) {
        const int token = first + lane;
        const int expert = token < tokens ? ids[token] : -1;
        const unsigned same = __match_any_sync(0xffffffffu, expert);
        const int before = expert >= 0 ? counts[expert] : 0;
        const int rank = before + __popc(same & ((1u << lane) - 1));
        if (expert >= 0) {
            places[token] = rank < capacity ? expert * capacity + rank : -1;
            if (rank < capacity) slots[expert * capacity + rank] = token;
        }
        __syncwarp();
        if (expert >= 0 && lane == __ffs(static_cast<int>(same)) - 1) counts[expert] = before + __popc(same);
        __syncwarp();
    }
    for (int e = lane; e < experts; e += 32) kept[e] = min(counts[e], capacity);
}

extern "C" void lost_tokens(const int* ids, int* places, int* slots, int* kept, int tokens, int experts, int capacity,
                            cudaStream_t stream) {
    if (experts == 0) return;
    matched_kernel<<<1, 32, experts * sizeof(int), stream>>>(ids, places, slots, kept, tokens, experts, capacity);
}
