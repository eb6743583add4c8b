// Atomic additions give a correct sum, but it is read before all threads have added.
// sum<<<1, 128>>>(x, out, n)
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&total, x[i]);  // expected finding: within_block within_warp
#ifdef CLEAN
    __syncthreads();
#endif
    const float seen = total;  // expected finding: within_block within_warp
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = seen;
}
