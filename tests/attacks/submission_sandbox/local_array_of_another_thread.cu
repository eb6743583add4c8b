// Threads read another thread's local array, where reads are not counted.
// Expected finding: illegal_address.
__global__ void kernel(const float* x, float* out, int n) {
    __shared__ const float* kept_by_first;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float kept[64];
    if (threadIdx.x == 0) {
        for (int k = 0; k < 64; ++k) kept[k] = blockIdx.x * 64 + k < n ? x[blockIdx.x * 64 + k] : 0.0f;
        kept_by_first = kept;
    }
    __syncthreads();
    if (i < n) out[i] = 2.0f * kept_by_first[threadIdx.x];
}
