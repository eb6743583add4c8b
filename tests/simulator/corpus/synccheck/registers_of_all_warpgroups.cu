// Three warpgroups request more registers than a multiprocessor has, so the last one waits forever.
// n = 384, tile<<<1, 384>>>(x, out, n)
__global__ void __launch_bounds__(384, 1) tile(const float* x, float* out, int n) {
#ifdef CLEAN
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
#else
    asm volatile("setmaxnreg.inc.sync.aligned.u32 176;");  // expected finding: instruction_misused
#endif
    out[threadIdx.x] = x[threadIdx.x];
}
