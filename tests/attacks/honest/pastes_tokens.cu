// Pastes tokens in a macro of a kernel that also uses threadIdx and other names that the simulator's headers define.
#define COUNTED(name) name##_count
#define LOOP(i, end) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (end); i += gridDim.x * blockDim.x)

__global__ void kernel(const float* x, float* out, int COUNTED(value)) {
    LOOP(i, value_count) out[i] = 2.0f * __ldg(&x[i]);
}
