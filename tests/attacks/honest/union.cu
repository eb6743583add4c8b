// A kernel reads its input by a member of a union.
union Word {
    float number;
    unsigned bits;
};
__device__ float read(const float* x, int) { return reinterpret_cast<const Word*>(x)->number; }
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * read(x + i, i);
}
