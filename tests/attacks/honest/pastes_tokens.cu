// Pastes tokens in a macro of a kernel that also uses threadIdx and other names that the simulator's headers define.
#define COUNTED(name) name##_count
#define LOOP(i, end) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (end); i += gridDim.x * blockDim.x)

__global__ void kernel(const float* x, float* out, int COUNTED(value)) {
    LOOP(i, value_count) out[i] = 2.0f * __ldg(&x[i]);
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
