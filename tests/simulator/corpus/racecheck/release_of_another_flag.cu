// A store with release order publishes only through its own flag, but the reader polls another flag. A fence would
// publish through every later store.
// n = 2, start<<<1, 2>>>(); follow<<<2, 1>>>(x, out)
__device__ int flags[2];

__global__ void start() { flags[threadIdx.x] = 0; }

__device__ void set_first() { asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(&flags[0]), "r"(1) : "memory"); }
__device__ void set_second() { asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(&flags[1]), "r"(1) : "memory"); }
__device__ int second() {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(&flags[1]) : "memory");
    return value;
}

__global__ void follow(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];  // expected finding: between_blocks
        set_first();
#ifdef CLEAN
        asm volatile("fence.release.gpu;" ::: "memory");
#endif
        set_second();
        return;
    }
    while (second() == 0) {
    }
    out[1] = out[0] + x[1];  // expected finding: between_blocks
}
