// Lower bounds of the time of a matmul with int4 weights: an empty kernel, and one that only reads the words.
//
//   words: [count] of 16 bytes     sums: [kBlocks * kThreads / 32]
#include <cuda_runtime.h>

constexpr int kBlocks = 128, kThreads = 512;

__global__ void do_nothing() {}

// Each thread requests eight times 16 bytes before it waits for the first. measure.py checks the sum of all words.
__global__ void __launch_bounds__(kThreads) read_kernel(const uint4* words, unsigned* sums, long long count) {
    constexpr int kLoads = 8, kStride = kBlocks * kThreads;
    const int thread = blockIdx.x * kThreads + threadIdx.x;
    unsigned own = 0;
    for (long long i = thread; i < count; i += kLoads * kStride) {
        uint4 loaded[kLoads];
#pragma unroll
        for (int j = 0; j < kLoads; ++j)
            loaded[j] = i + j * kStride < count ? __ldcs(words + i + j * kStride) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < kLoads; ++j) own += loaded[j].x + loaded[j].y + loaded[j].z + loaded[j].w;
    }
    own = __reduce_add_sync(0xffffffffu, own);
    if (thread % 32 == 0) sums[thread / 32] = own;
}

extern "C" void nothing(cudaStream_t stream) { do_nothing<<<kBlocks, kThreads, 0, stream>>>(); }

extern "C" void read_words(const int* words, int* sums, long long count, cudaStream_t stream) {
    read_kernel<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(words),
                                                  reinterpret_cast<unsigned*>(sums), count);
}
