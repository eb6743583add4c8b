// Threads past the end exit before a barrier at which the other threads wait.
// rotate<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
#ifndef CLEAN
    if (i >= n) return;
#endif
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();  // expected finding: barrier_after_exit
    if (i < n) out[i] = tile[threadIdx.x ^ 1];
}
