// Only 16 lanes reach a shuffle with a full mask, and the others wait at a barrier, so neither can continue.
// n = 32, half_sum<<<1, 32>>>(x, out, n)
__global__ void half_sum(const float* x, float* out, int n) {
    float value = x[threadIdx.x];
#ifdef CLEAN
    const float other = __shfl_xor_sync(0xffffffffu, value, 1);
    if (threadIdx.x < 16) value += other;
#else
    if (threadIdx.x < 16) value += __shfl_xor_sync(0xffffffffu, value, 1);  // expected finding: deadlock
#endif
    __syncthreads();  // expected finding: deadlock
    out[threadIdx.x] = value;
}
