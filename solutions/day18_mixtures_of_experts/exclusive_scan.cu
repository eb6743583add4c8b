// Prefix sums in one pass: out[i] is the sum of x[0] ... x[i - 1], and out[n] the sum of all (decoupled look-back,
// Merrill & Garland 2016). Every element is read once and written once.
//
//   x: [n]     out: [n + 1]     state: [n / 1024 + 2]
//
// A block scans a tile in registers and publishes the tile's sum. To learn the sum of all tiles before, it looks back:
// it adds the sums of its predecessors until it finds one that has already published the sum up to its own end. Sum
// and flag are one 64-bit word, so a thread that reads the flag also reads the sum.
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRounds = 4;              // vectors of four elements per thread
constexpr int kOfWarp = kRounds * 128;  // neighboring elements that a warp scans
constexpr int kTile = kWarps * kOfWarp;

// A word of state: the flag in the upper 32 bits, the sum in the lower 32 bits.
using Word = unsigned long long;
constexpr unsigned kNothing = 0;        // nothing is published yet
constexpr unsigned kSumOfTile = 1;      // the sum of the tile alone
constexpr unsigned kSumUpToItsEnd = 2;  // the sum of this tile and all before it

__device__ __forceinline__ void publish(Word* to, unsigned flag, int sum) {
    const Word word = static_cast<Word>(flag) << 32 | static_cast<unsigned>(sum);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

__device__ __forceinline__ Word observe(const Word* from) {
    Word word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

// Return, in lane i, the sum over lanes 0 ... i.
__device__ __forceinline__ int warp_inclusive_scan(int mine) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(llmk::kAllLanes, mine, distance);
        if (lane >= distance) mine += other;
    }
    return mine;
}

// Return the sum of all tiles before `tile`. A whole warp calls it; lane i reads the word of the i-th predecessor.
__device__ __forceinline__ int look_back(const Word* tiles, int tile) {
    int before = 0;
    for (int last = tile - 1 - static_cast<int>(threadIdx.x % 32);; last -= 32) {
        Word word = static_cast<Word>(kSumUpToItsEnd) << 32;  // before the first tile the sum is 0
        if (last >= 0) {
            do word = observe(tiles + last);
            while (word >> 32 == kNothing);
        }
        const unsigned complete = __ballot_sync(llmk::kAllLanes, word >> 32 == kSumUpToItsEnd);
        // The search ends at the nearest predecessor whose word includes all tiles before it.
        const bool counts = complete == 0 || threadIdx.x % 32 < __ffs(static_cast<int>(complete));
        before += static_cast<int>(__reduce_add_sync(llmk::kAllLanes, counts ? static_cast<unsigned>(word) : 0u));
        if (complete != 0) return before;
    }
}

__global__ void __launch_bounds__(kThreads)
    scan_kernel(const int* __restrict__ x, int* __restrict__ out, Word* __restrict__ state, long long n) {
    __shared__ int warp_sums[kWarps];
    __shared__ int shared_tile, shared_before;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // Blocks take tiles in the order in which they start: the predecessors of a tile have started, so a wait for them
    // ends.
    if (threadIdx.x == 0) shared_tile = static_cast<int>(atomicAdd(state, 1ull));
    __syncthreads();
    const int tile = shared_tile;
    Word* tiles = state + 1;

    const long long first = static_cast<long long>(tile) * kTile + warp * kOfWarp + lane * 4;
    int4 value[kRounds];
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        const long long at = first + r * 128;
        value[r] = make_int4(0, 0, 0, 0);
        if (at + 4 <= n) {
            value[r] = *reinterpret_cast<const int4*>(x + at);
        } else if (at < n) {
            value[r].x = x[at];
            if (at + 1 < n) value[r].y = x[at + 1];
            if (at + 2 < n) value[r].z = x[at + 2];
        }
    }

    int before[kRounds];  // the sum of the warp's elements before this thread's vector
    int sum = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        const int mine = value[r].x + value[r].y + value[r].z + value[r].w;
        const int up_to_here = warp_inclusive_scan(mine);
        before[r] = sum + up_to_here - mine;
        sum += __shfl_sync(llmk::kAllLanes, up_to_here, 31);
    }
    if (lane == 0) warp_sums[warp] = sum;
    __syncthreads();

    if (warp == 0) {
        const int of_tile = static_cast<int>(
            __reduce_add_sync(llmk::kAllLanes, lane < kWarps ? static_cast<unsigned>(warp_sums[lane]) : 0u));
        if (lane == 0) publish(tiles + tile, kSumOfTile, of_tile);
        const int before_tile = look_back(tiles, tile);
        if (lane == 0) {
            publish(tiles + tile, kSumUpToItsEnd, before_tile + of_tile);
            shared_before = before_tile;
        }
    }
    __syncthreads();
    int before_warp = shared_before;
    for (int w = 0; w < warp; ++w) before_warp += warp_sums[w];

#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
        const long long at = first + r * 128;
        int4 result;
        result.x = before_warp + before[r];
        result.y = result.x + value[r].x;
        result.z = result.y + value[r].y;
        result.w = result.z + value[r].z;
        if (at + 4 <= n + 1) {
            *reinterpret_cast<int4*>(out + at) = result;
        } else if (at < n + 1) {
            out[at] = result.x;
            if (at + 1 < n + 1) out[at + 1] = result.y;
            if (at + 2 < n + 1) out[at + 2] = result.z;
        }
    }
}

extern "C" void exclusive_scan(const int* x, int* out, unsigned long long* state, int n, cudaStream_t stream) {
    const int tiles = n / kTile + 1;  // tiles of out, which has n + 1 elements
    cudaMemsetAsync(state, 0, (tiles + 1LL) * sizeof(Word), stream);
    scan_kernel<<<tiles, kThreads, 0, stream>>>(x, out, state, n);
}
