// Assign tokens to experts that have `capacity` places each: in the order of the tokens, each token gets the next free
// place of its expert.
//
//   ids, places: [tokens]     slots: [experts, capacity]     kept: [experts]
//
// A block handles one expert. It processes all tokens in rounds, one token per thread, and counts the tokens of its
// expert.
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__global__ void __launch_bounds__(kThreads)
    places_kernel(const int* ids, int* places, int* slots, int* kept, int tokens, int capacity) {
    __shared__ int of_warp[kWarps];  // tokens of this expert in each warp
    const int expert = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int* own_slots = slots + static_cast<long long>(expert) * capacity;

    int base = 0;  // tokens of this expert in earlier rounds
    for (int first = 0; first < tokens; first += kThreads) {
        const int token = first + threadIdx.x;
        const bool mine = token < tokens && ids[token] == expert;
        const unsigned lanes = __ballot_sync(0xffffffffu, mine);
        if (lane == 0) of_warp[warp] = __popc(lanes);
        __syncthreads();
        int rank = base + __popc(lanes & ((1u << lane) - 1));
        for (int w = 0; w < warp; ++w) rank += of_warp[w];
        base += __popc(lanes);
        if (mine) {
            const bool fits = rank < capacity;
            places[token] = fits ? expert * capacity + rank : -1;
            if (fits) own_slots[rank] = token;
        }
        __syncthreads();  // all warps have read the counts before the next round overwrites them
    }
    const int count = min(base, capacity);
    if (threadIdx.x == 0) kept[expert] = count;
    for (int i = count + threadIdx.x; i < capacity; i += kThreads) own_slots[i] = -1;
}

extern "C" void lost_tokens(const int* ids, int* places, int* slots, int* kept, int tokens, int experts, int capacity,
                            cudaStream_t stream) {
    if (experts == 0) return;
    places_kernel<<<experts, kThreads, 0, stream>>>(ids, places, slots, kept, tokens, capacity);
}
