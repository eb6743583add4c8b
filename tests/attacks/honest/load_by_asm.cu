// A kernel reads its input by PTX.
__device__ float read(const float* x, int) {
    float value;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(x));
    return value;
}
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * read(x + i, i);
}
