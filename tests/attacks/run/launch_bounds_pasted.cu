// A macro pastes __launch_bounds__ together, and the launch has more threads.
// Expected: the build is refused.
#define PASTED(a, b) a##b
__global__ void PASTED(__launch, _bounds__)(32) kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
