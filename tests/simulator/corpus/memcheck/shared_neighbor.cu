// A write past the end of a shared array would silently change the next array on a GPU.
// pair<<<(n + 63) / 64, 64>>>(x, out, n)
__global__ void pair(const float* x, float* out, int n) {
    __shared__ float first[64];
    __shared__ float second[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float value = i < n ? x[i] : 0.0f;
    float* a = first;
    float* b = second;
#ifdef CLEAN
    a[threadIdx.x] = value;
#else
    a[threadIdx.x + 1] = value;  // expected finding: out_of_bounds
    if (threadIdx.x == 0) a[0] = 0;
#endif
    b[threadIdx.x] = 2 * value;
    __syncthreads();
    if (i < n) out[i] = a[threadIdx.x] + b[threadIdx.x];
}
