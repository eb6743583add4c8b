// atomicAdd reads uninitialized shared memory. It is uninitialized in each block, even if an earlier block wrote it.
// take<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void take(const float* x, float* out, int n) {
    __shared__ float slots[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    atomicExch(&slots[threadIdx.x], x[i]);
#else
    atomicAdd(&slots[threadIdx.x], x[i]);  // expected finding: uninitialized_read
#endif
    out[i] = slots[threadIdx.x];
}
