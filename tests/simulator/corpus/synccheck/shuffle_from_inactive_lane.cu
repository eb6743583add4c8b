// 24 lanes execute a shuffle, and some of them read from lanes that do not.
// n = 24, sum<<<1, 32>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
#ifdef CLEAN
    float value = threadIdx.x < n ? x[threadIdx.x] : 0.0f;
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x < n) out[threadIdx.x] = value;
#else
    if (threadIdx.x >= n) return;
    float value = x[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0x00ffffffu, value, step);  // expected finding: shuffle_from_inactive_lane
    }
    out[threadIdx.x] = value;
#endif
}
