// All threads write one structure with several stores. Only the value of its first member differs between threads.
// n = 64, choose<<<1, 64>>>(x, out, n)
struct Item {
    float values[12];
};

__global__ void choose(const float* x, float* out, int n) {
    __shared__ __align__(16) Item items[2];
    __shared__ __align__(16) Item chosen;
    if (threadIdx.x < 12) items[0].values[threadIdx.x] = items[1].values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
#ifndef CLEAN
    if (threadIdx.x == 0) items[1].values[0] = -1;
    __syncthreads();
#endif
    chosen = items[threadIdx.x % 2];  // expected finding: within_warp within_block
    __syncthreads();
    out[threadIdx.x] = chosen.values[threadIdx.x % 12];
}
