// A macro contains the __launch_bounds__ of a kernel, which is launched with more threads.
// Expected finding: refused.
#define BOUNDS __launch_bounds__(32)
__global__ void BOUNDS kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
