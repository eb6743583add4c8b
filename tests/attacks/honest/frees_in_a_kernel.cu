// Allocates with new and malloc in a kernel, and frees with delete and free.
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i % 32 == 0) {
        volatile int* one = new int(i);
        auto other = static_cast<volatile int*>(malloc(sizeof(int)));
        if (other) *other = *one;
        delete one;
        free(const_cast<int*>(other));
    }
    out[i] = 2.0f * x[i];
}
