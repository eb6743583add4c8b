// Some elements are copied to the front of out. Their threads get indices from a counter in shared memory, with one
// atomic for each warp.
// n = 512, keep<<<1, 512>>>(x, out, n)
__global__ void keep(const float* x, float* out, int n) {
    __shared__ int kept;
    __shared__ float survivors[512];
    const int t = threadIdx.x, lane = t % 32;
    if (t == 0) kept = 0;
    __syncthreads();
    const bool good = static_cast<int>(x[t]) % 3 == 0;
    const unsigned mask = __ballot_sync(0xffffffffu, good);
    int first = 0;
    if (lane == 0) first = atomicAdd(&kept, __popc(mask));
    first = __shfl_sync(0xffffffffu, first, 0);
    if (good) survivors[first + __popc(mask & ((1u << lane) - 1))] = x[t];
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) out[i] = i < kept ? survivors[i] : 0.0f;
}
