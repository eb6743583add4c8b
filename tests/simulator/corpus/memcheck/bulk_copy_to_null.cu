// A bulk copy stores to a null pointer.
// n = 32 elements
__global__ void store(const float* x, float* out, float* other, int n) {
    __shared__ __align__(16) float tile[32];
    tile[threadIdx.x] = out[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0) {
        unsigned from = (unsigned)__cvta_generic_to_shared(tile);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(other), "r"(from));  // expected finding: null_pointer
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* other = nullptr;
#ifdef CLEAN
    cudaMalloc(&other, n * sizeof(float));
#endif
    store<<<1, 32, 0, stream>>>(x, out, other, n);
#ifdef CLEAN
    cudaFree(other);
#endif
}
