// Two threads copy to the same memory. Only the first bytes of their data differ, so only these are a race.
// n = 64, choose<<<1, 64>>>(x, out, n)
__global__ void choose(const float* x, float* out, int n) {
    __shared__ __align__(16) float rows[2][32], chosen[32];
    if (threadIdx.x < 32) rows[0][threadIdx.x] = rows[1][threadIdx.x] = x[threadIdx.x];
    __syncthreads();
#ifndef CLEAN
    if (threadIdx.x == 0) rows[1][0] = -1;
    __syncthreads();
#endif
    if (threadIdx.x % 32 == 0) memcpy(chosen, rows[threadIdx.x / 32], sizeof chosen);  // expected finding: within_block
    __syncthreads();
    out[threadIdx.x] = chosen[threadIdx.x % 32];
}
