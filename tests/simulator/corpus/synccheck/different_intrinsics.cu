// Two lanes have each other in their masks, but execute different warp intrinsics.
// n = 32, mixed<<<1, 32>>>(x, out, n)
__global__ void mixed(const float* x, float* out, int n) {
    float value = x[threadIdx.x];
#ifdef CLEAN
    const unsigned positive = __ballot_sync(0xffffffffu, value > 0);
    const float first = __shfl_sync(0xffffffffu, value, 0);
    value = threadIdx.x < 16 ? positive : first;
#else
    if (threadIdx.x < 16) {
        value = __ballot_sync(0xffffffffu, value > 0);  // expected finding: collectives_differ
    } else {
        value = __shfl_sync(0xffffffffu, value, 0);  // expected finding: collectives_differ
    }
#endif
    out[threadIdx.x] = value;
}
