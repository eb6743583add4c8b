// The kernel polls a flag that is never set.
// n = 32, clear<<<1, 1>>>(); wait<<<1, 32>>>(x, out, n)
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
