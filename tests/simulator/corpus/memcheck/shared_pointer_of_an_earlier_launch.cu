// A kernel leaves a pointer to its shared array to the next launch, whose kernel has no shared memory.
// n = 128
__device__ float in_global[128];
__device__ float* left_behind;

__global__ void leave(const float* x, int n) {
    __shared__ float tile[128];
    const int i = threadIdx.x;
    if (i >= n) return;
    tile[i] = in_global[i] = x[i];
#ifdef CLEAN
    if (i == 0) left_behind = in_global;
#else
    if (i == 0) left_behind = tile;
#endif
}

__global__ void take(float* out, int n) {
    const int i = threadIdx.x;
    if (i < n) out[i] = left_behind[i];  // expected finding: out_of_bounds
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    leave<<<1, 128, 0, stream>>>(x, n);
    take<<<1, 128, 0, stream>>>(out, n);
}
