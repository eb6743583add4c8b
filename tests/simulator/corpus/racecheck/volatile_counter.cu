// A volatile counter is read and written in two steps, between which another block may write it.
// n = 20, clear<<<1, n>>>(out, n); count<<<n, 1>>>(x, out)
__global__ void clear(float* out, int n) { out[threadIdx.x] = 0; }

__global__ void count(const float* x, volatile float* out) {
#ifdef CLEAN
    atomicAdd(const_cast<float*>(out), x[blockIdx.x]);
#else
    const float before = out[0];      // expected finding: between_blocks
    out[0] = before + x[blockIdx.x];  // expected finding: between_blocks
#endif
}
