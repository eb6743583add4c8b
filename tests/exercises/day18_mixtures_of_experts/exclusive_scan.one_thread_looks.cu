// Another design: one thread looks back with atomics, one tile at a time. Each thread scans 16 neighboring elements.
// Shared memory makes the loads and stores coalesced.
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kEach = 16;
constexpr int kTile = kThreads * kEach;
constexpr int kPitch = kEach + 1;  // stride between threads' elements in `values`: odd, to avoid bank conflicts

__global__ void __launch_bounds__(kThreads)
    scan_kernel(const int* x, int* out, unsigned long long* state, long long n) {
    __shared__ int values[kThreads * kPitch];
    __shared__ int warp_sums[kThreads / 32];
    __shared__ int tile, before;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) tile = static_cast<int>(atomicAdd(state, 1ull));
    __syncthreads();
    const long long first = static_cast<long long>(tile) * kTile;
    for (int i = 4 * threadIdx.x; i < kTile; i += 4 * kThreads) {
        int4 four = make_int4(0, 0, 0, 0);
        int* each = reinterpret_cast<int*>(&four);
        if (first + i + 4 <= n) {
            four = *reinterpret_cast<const int4*>(x + first + i);
        } else {
            for (int j = 0; j < 4; ++j) each[j] = first + i + j < n ? x[first + i + j] : 0;
        }
        for (int j = 0; j < 4; ++j) values[(i + j) / kEach * kPitch + (i + j) % kEach] = each[j];
    }
    __syncthreads();

    int* own = values + threadIdx.x * kPitch;
    int sum = 0;
    for (int j = 0; j < kEach; ++j) {
        const int value = own[j];
        own[j] = sum;
        sum += value;
    }
    int up_to_here = sum;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, up_to_here, distance);
        if (lane >= distance) up_to_here += other;
    }
    if (lane == 31) warp_sums[warp] = up_to_here;
    __syncthreads();
    int offset = up_to_here - sum;
    for (int w = 0; w < warp; ++w) offset += warp_sums[w];

    if (threadIdx.x == kThreads - 1) {
        const unsigned of_tile = static_cast<unsigned>(offset + sum);
        unsigned before_tile = 0;
        atomicExch(state + 1 + tile, 1ull << 32 | of_tile);
        for (int other = tile - 1; other >= 0;) {
            const unsigned long long word = atomicAdd(state + 1 + other, 0ull);
            if (word >> 32 == 0) continue;
            before_tile += static_cast<unsigned>(word);
            if (word >> 32 == 2) break;
            --other;
        }
        atomicExch(state + 1 + tile, 2ull << 32 | (before_tile + of_tile));
        before = static_cast<int>(before_tile);
    }
    __syncthreads();
    for (int j = 0; j < kEach; ++j) own[j] += before + offset;
    __syncthreads();
    for (int i = 4 * threadIdx.x; i < kTile; i += 4 * kThreads) {
        int4 four;
        int* each = reinterpret_cast<int*>(&four);
        for (int j = 0; j < 4; ++j) each[j] = values[(i + j) / kEach * kPitch + (i + j) % kEach];
        if (first + i + 4 <= n + 1) {
            *reinterpret_cast<int4*>(out + first + i) = four;
        } else {
            for (int j = 0; j < 4; ++j) {
                if (first + i + j < n + 1) out[first + i + j] = each[j];
            }
        }
    }
}

extern "C" void exclusive_scan(const int* x, int* out, unsigned long long* state, int n, cudaStream_t stream) {
    const int tiles = n / kTile + 1;
    cudaMemsetAsync(state, 0, sizeof(unsigned long long) * (tiles + 1), stream);
    scan_kernel<<<tiles, kThreads, 0, stream>>>(x, out, state, n);
}
