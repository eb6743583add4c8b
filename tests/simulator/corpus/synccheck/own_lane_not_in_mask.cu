// Lanes of the upper half of a warp pass a mask that names only the lower half.
// n = 32, half_sum<<<1, 32>>>(x, out, n)
__global__ void half_sum(const float* x, float* out, int n) {
    float value = x[threadIdx.x];
#ifdef CLEAN
    const unsigned mask = threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u;
#else
    const unsigned mask = 0x0000ffffu;
#endif
    value += __shfl_xor_sync(mask, value, 1);  // expected finding: own_lane_not_in_mask
    out[threadIdx.x] = value;
}
