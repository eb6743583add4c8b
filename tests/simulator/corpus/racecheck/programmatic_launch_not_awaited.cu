// A kernel that may overlap with the previous kernel reads the previous kernel's output before it waits for that
// kernel.
// n = 256 elements
__device__ float middle[256];

__global__ void first(const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    middle[i] = 2 * x[i];  // expected finding: between_grids
}

__global__ void second(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float own = x[i];  // no kernel writes x, so it may be read before the wait
#ifdef CLEAN
    cudaGridDependencySynchronize();
#endif
    float value = middle[n - 1 - i];  // expected finding: between_grids
#ifndef CLEAN
    cudaGridDependencySynchronize();
#endif
    out[i] = own + value;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    first<<<n / 64, 64, 0, stream>>>(x, n);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = n / 64;
    config.blockDim = 64;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, second, x, out, n);
}
