// A reader of a flag executes fence.release instead of fence.acquire, so its later reads are not ordered after the
// writer.
// n = 64, clear<<<1, 64>>>(); chain<<<n, 1>>>(x, out, n)
__device__ unsigned flags[64];

__global__ void clear() { flags[threadIdx.x] = 0; }

__device__ unsigned read(const unsigned* flag) {
    unsigned value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__global__ void chain(const float* x, float* out, int n) {
    const int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        while (read(&flags[b - 1]) == 0) {
        }
#ifdef CLEAN
        asm volatile("fence.acquire.gpu;" ::: "memory");
#else
        asm volatile("fence.release.gpu;" ::: "memory");
#endif
        before = out[b - 1];  // expected finding: between_blocks
    }
    out[b] = before + x[b];  // expected finding: between_blocks
    asm volatile("fence.release.gpu;" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(&flags[b]), "r"(1) : "memory");
}
