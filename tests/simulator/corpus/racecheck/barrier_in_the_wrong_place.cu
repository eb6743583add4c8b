// The barrier is after the read instead of before it.
// reverse<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void reverse(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;  // expected finding: within_block within_warp
#ifdef CLEAN
    __syncthreads();
#endif
    const float value = tile[127 - threadIdx.x];  // expected finding: within_block within_warp
#ifndef CLEAN
    __syncthreads();
#endif
    if (i < n) out[i] = value;
}
