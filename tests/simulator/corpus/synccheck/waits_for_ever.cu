// The kernel polls a flag that is never set.
// n = 32 elements
__device__ volatile int flag;

__global__ void wait(const float* x, float* out, int n) {
#ifdef CLEAN
    if (threadIdx.x == 31) flag = 1;
#endif
    while (flag == 0) {  // expected finding: infinite_loop
    }
    out[threadIdx.x] = x[threadIdx.x];
}

__global__ void clear() { flag = 0; }

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 1, 0, stream>>>();
    wait<<<1, 32, 0, stream>>>(x, out, n);
}
