// Only two warps of a warpgroup execute setmaxnreg.
// n = 128, tile<<<1, 128>>>(x, out, n)
// clang-format off
// clang-format on

__global__ void __launch_bounds__(128, 1) tile(const float* x, float* out, int n) {
#ifndef CLEAN
    if (threadIdx.x < 64)
#endif
        asm volatile("setmaxnreg.dec.sync.aligned.u32 64;");  // expected finding: deadlock
    __syncthreads();                                          // expected finding: deadlock
    out[threadIdx.x] = x[threadIdx.x];
}
