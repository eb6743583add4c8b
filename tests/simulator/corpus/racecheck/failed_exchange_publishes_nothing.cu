// A failed atomicCAS stores nothing, so a thread that reads the flag is not ordered after it.
// n = 64, start<<<1, 64>>>(x, out, n); follow<<<n, 1>>>(x, out)
#ifdef CLEAN
constexpr int kExpected = 0, kReady = 1;
#else
constexpr int kExpected = 1, kReady = 0;
#endif

__device__ int flag;

__global__ void start(const float* x, float* out, int n) {
    if (threadIdx.x == 0) flag = 0;
    if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x];
}

__global__ void follow(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];  // expected finding: between_blocks
        __threadfence();
        atomicCAS(&flag, kExpected, 1);
    } else {
        const int seen = atomicAdd(&flag, 0);
        __threadfence();
        if (seen == kReady) out[blockIdx.x] += out[0];  // expected finding: between_blocks
    }
}
