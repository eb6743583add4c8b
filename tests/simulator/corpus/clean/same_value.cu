// Many threads set a flag to the same value, so the order of the writes does not matter.
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

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 1, 0, stream>>>();
    search<<<(n + 127) / 128, 128, 0, stream>>>(x, n);
    tell<<<1, 128, 0, stream>>>(out, n);
}
