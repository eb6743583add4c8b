// Many threads set a flag to the same value, so the order of the writes does not matter.
// clear<<<1, 1>>>(); search<<<(n + 127) / 128, 128>>>(x, n); tell<<<1, 128>>>(out, n)
__device__ int found;

__global__ void clear() { found = 0; }

__global__ void search(const float* x, int n) {
    __shared__ int here;
    here = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 10) here = 1;
    __syncthreads();
    if (here) found = 1;
}

__global__ void tell(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = found;
}
