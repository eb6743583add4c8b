// Each thread reads its neighbor's write to shared memory without a barrier.
// rotate<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;  // expected finding: within_block within_warp
#ifdef CLEAN
    __syncthreads();
#endif
    if (i < n) out[i] = tile[(threadIdx.x + 1) % 128];  // expected finding: within_block within_warp
}
