// Overwrites the code of the instrumentation hooks.
// Expected: the build is refused.
#include <sys/mman.h>

extern "C" void __tsan_write4(void*);

__global__ void racy(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x / 2] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    auto page = reinterpret_cast<char*>(reinterpret_cast<unsigned long>(&__tsan_write4) & ~4095ul);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    *reinterpret_cast<unsigned char*>(&__tsan_write4) = 0xc3;
    if (n > 0) racy<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
