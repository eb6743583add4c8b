// Another design: no look-back. Each block waits until the previous block has stored the sum of all elements up to the
// end of that block, so all blocks form a chain. A 64-bit word holds the sum and a flag. The word is stored with a
// release and loaded with an acquire.
#include <cuda_runtime.h>

constexpr int kThreads = 512;
constexpr int kTile = 4 * kThreads;

__global__ void __launch_bounds__(kThreads) chained_kernel(const int* x, int* out, unsigned long long* state, int n) {
    __shared__ int sums[2][kThreads];
    __shared__ int tile, before;
    if (threadIdx.x == 0) tile = static_cast<int>(atomicAdd(state, 1ull));
    __syncthreads();

    const int first = tile * kTile + 4 * static_cast<int>(threadIdx.x);
    int4 value = make_int4(0, 0, 0, 0);
    if (first + 3 < n) {
        value = *reinterpret_cast<const int4*>(x + first);
    } else {
        if (first < n) value.x = x[first];
        if (first + 1 < n) value.y = x[first + 1];
        if (first + 2 < n) value.z = x[first + 2];
    }
    const int own = value.x + value.y + value.z + value.w;
    int from = 0;
    sums[0][threadIdx.x] = own;
    for (int distance = 1; distance < kThreads; distance *= 2) {
        __syncthreads();
        int sum = sums[from][threadIdx.x];
        if (static_cast<int>(threadIdx.x) >= distance) sum += sums[from][threadIdx.x - distance];
        sums[1 - from][threadIdx.x] = sum;
        from = 1 - from;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        // state[1 + tile]: the lower half is the sum, and the upper half is 1 if the sum is valid.
        unsigned long long word = 1ull << 32;
        if (tile > 0) {
            do {
                asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state + tile) : "memory");
            } while (word >> 32 == 0);
        }
        before = static_cast<int>(word);
        word = 1ull << 32 | static_cast<unsigned>(before + sums[from][kThreads - 1]);
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state + 1 + tile), "l"(word) : "memory");
    }
    __syncthreads();
    int4 result;
    result.x = before + sums[from][threadIdx.x] - own;
    result.y = result.x + value.x;
    result.z = result.y + value.y;
    result.w = result.z + value.z;
    if (first + 3 < n + 1) {
        *reinterpret_cast<int4*>(out + first) = result;
    } else {
        if (first < n + 1) out[first] = result.x;
        if (first + 1 < n + 1) out[first + 1] = result.y;
        if (first + 2 < n + 1) out[first + 2] = result.z;
    }
}

extern "C" void exclusive_scan(const int* x, int* out, unsigned long long* state, int n, cudaStream_t stream) {
    const int tiles = n / kTile + 1;
    cudaMemsetAsync(state, 0, sizeof(unsigned long long) * (tiles + 1), stream);
    chained_kernel<<<tiles, kThreads, 0, stream>>>(x, out, state, n);
}
