// Threads write neighboring halves and neighboring bytes of the same 4-byte word.
// n = 256 elements
#include <cuda_fp16.h>

__global__ void pack(const __half* x, __half* out, int n) {
    __shared__ __half halves[256];
    __shared__ bool flags[256];
    extern __shared__ unsigned char bytes[];
    const int t = threadIdx.x;
    halves[t] = x[t];
    flags[t] = t % 3 == 0;
    bytes[t] = t % 7;
    __syncthreads();
    out[t] = flags[255 - t] && bytes[t ^ 1] ? halves[255 - t] : halves[t];
}

extern "C" void run(const __half* x, __half* out, int n, cudaStream_t stream) { pack<<<1, 256, 256, stream>>>(x, out, n); }
