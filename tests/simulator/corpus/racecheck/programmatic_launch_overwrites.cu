// One thread waits for the previous grid. Other threads overwrite that grid's input before a barrier with the thread.
// n = 64 elements
__device__ float middle[64];

__global__ void first(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x] + middle[threadIdx.x];  // expected finding: between_grids
}

__global__ void second(const float* x) {
    if (threadIdx.x == 0) asm volatile("griddepcontrol.wait;" ::: "memory");
#ifdef CLEAN
    __syncthreads();
#endif
    middle[threadIdx.x] = x[threadIdx.x];  // expected finding: between_grids
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    first<<<1, 64, 0, stream>>>(x, out);
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {dim3(1), dim3(64), 0, stream, attribute, 1};
    cudaLaunchKernelEx(&config, second, x);
}
