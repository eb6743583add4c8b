// Programmatic launches that do not overlap with the previous kernel: the host has waited, a copy is in between, or the
// launch attribute is missing.
// n = 64 elements
__device__ float middle[64];

__global__ void first(const float* x) { middle[threadIdx.x] = x[threadIdx.x]; }
__global__ void second(float* out) { out[threadIdx.x] = middle[63 - threadIdx.x]; }

static void launch_second(float* out, bool programmatic, cudaStream_t stream) {
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = programmatic;
    cudaLaunchConfig_t config = {dim3(1), dim3(64), 0, stream, attribute, 1};
    cudaLaunchKernelEx(&config, second, out);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    first<<<1, 64, 0, stream>>>(x);
    cudaStreamSynchronize(stream);
    launch_second(out, true, stream);
    cudaStreamSynchronize(stream);
    first<<<1, 64, 0, stream>>>(x);
    cudaMemsetAsync(out, 0, n * sizeof(float), stream);
    launch_second(out, true, stream);
    first<<<1, 64, 0, stream>>>(x);
    launch_second(out, false, stream);
}
