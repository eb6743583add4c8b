// A barrier is in a loop whose number of iterations differs between threads.
// n = 200, sums<<<1, 128>>>(x, out, n)
__global__ void sums(const float* x, float* out, int n) {
    __shared__ float tile[128];
    float total = 0;
#ifdef CLEAN
    for (int first = 0; first < n; first += 128) {
        const int i = first + threadIdx.x;
        tile[threadIdx.x] = i < n ? x[i] : 0.0f;
#else
    for (int i = threadIdx.x; i < n; i += 128) {
        tile[threadIdx.x] = x[i];
#endif
        __syncthreads();  // expected finding: barrier_sites_differ
        total += tile[threadIdx.x ^ 1];
        __syncthreads();  // expected finding: barrier_after_exit
    }
    __syncthreads();  // expected finding: barrier_sites_differ
    for (int i = threadIdx.x; i < n; i += 128) out[i] = total;
}
