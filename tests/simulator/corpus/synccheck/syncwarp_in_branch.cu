// Even lanes call __syncwarp() with a full mask in a branch, while odd lanes wait at a barrier.
// n = 32, odd_even<<<1, 32>>>(x, out, n)
__global__ void odd_even(const float* x, float* out, int n) {
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x % 2 == 0) {
#ifdef CLEAN
        __syncwarp(0x55555555u);
#else
        __syncwarp();  // expected finding: deadlock
#endif
    }
    __syncthreads();  // expected finding: deadlock
    out[threadIdx.x] = tile[31 - threadIdx.x];
}
